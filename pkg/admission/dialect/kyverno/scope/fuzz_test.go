// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// FuzzContext has any entries and any object give the same values each time, and leave
// the object as it was.
func FuzzContext(f *testing.F) {
	const pod = `{"kind":"Pod","metadata":{"name":"one"},"spec":{"containers":[{"name":"a","image":"x:1"}]}}`
	for _, entries := range []string{
		`[{"name":"v","variable":{"value":{"a":"{{request.object.metadata.name}}"},"jmesPath":"a","default":[1]}}]`,
		`[{"name":"a","variable":{"jmesPath":"images.containers.a.tag"}},{"name":"b","variable":{"value":"{{a}}{{a}}"}}]`,
		`[{"name":"v","configMap":{"name":"{{request.object.metadata.name}}","namespace":"shop"}}]`,
		`[{"name":"v","apiCall":{"urlPath":"/api/v1/namespaces/shop/configmaps?labelSelector=grp={{element}}","jmesPath":"items[].data"}}]`,
		`[{"name":"v","apiCall":{"urlPath":"/apis/authorization.k8s.io/v1/subjectaccessreviews","method":"POST","data":[{"key":"spec","value":{"user":"{{element}}","resourceAttributes":{"verb":"get"}}}]}}]`,
	} {
		f.Add(entries, pod)
	}
	view, templates := viewOf(f, world), newTemplates()
	f.Fuzz(func(t *testing.T, entries, text string) {
		var specs []kyvernov1.ContextEntry
		var fields map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(entries), &specs) != nil || kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &fields) != nil || fields == nil {
			return
		}
		before := runtime.DeepCopyJSON(fields)
		req := request.New(request.Fields{Object: &unstructured.Unstructured{Object: fields}, Namespace: "shop"})
		compiled, _, _ := scope.Compile(specs, templates, template.Place{Path: []string{"context"}}, "", field.NewPath("context"))
		look := func() (values []any) {
			run := &jmespath.Run{Steps: 20_000, Bytes: 1 << 20}
			variables := scope.New(policy.Input{Request: req, View: view}, run)
			defer variables.Push("x", 0)()
			defer variables.Begin(compiled)()
			for _, entry := range compiled {
				value, ok, err := variables.Field(t.Context(), entry.Name())
				values = append(values, value, ok, err != nil)
			}
			return append(values, variables.Read())
		}
		if first, second := look(), look(); !reflect.DeepEqual(first, second) {
			t.Errorf("got %v, then %v", first, second)
		}
		if !reflect.DeepEqual(before, fields) {
			t.Errorf("%v has become %v", before, fields)
		}
	})
}
