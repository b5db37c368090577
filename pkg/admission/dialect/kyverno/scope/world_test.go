// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/function"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
`

const world = widgetDefinition + `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: s}}
---
apiVersion: v1
kind: Namespace
metadata: {name: lab}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: shop, labels: {grp: x}}
data: {v: one-v, json: '{"a": 1}', next: two}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: shop, labels: {grp: "y"}}
data: {v: two-v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: lab, labels: {grp: x}}
data: {v: lab-v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: base, namespace: default}
data: {v: default-v}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w1, namespace: shop}
spec: {size: 4}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice-reads, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: alice-edits}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: alice}]
`

func viewOf(t testing.TB, text string) cluster.View {
	t.Helper()
	objects, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	view, err := offline.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// value decodes YAML as the values of requests are decoded.
func value(t testing.TB, text string) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	fields, ok := value(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return &unstructured.Unstructured{Object: fields}
}

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: shop, labels: {cfg: one}}
spec: {size: 5, s: text, m: {x: 2, "null": null}, l: [3, 1, 2], many: "a/b"}
`

func newTemplates() *template.Compiler {
	return &template.Compiler{Expressions: jmespath.NewCompiler(function.All()...)}
}

func newRun() *jmespath.Run { return &jmespath.Run{Steps: 100_000, Bytes: 8 << 20} }

// widgetRequest is one that creates the widget.
func widgetRequest(t testing.TB) *request.Request {
	t.Helper()
	return request.New(request.Fields{
		UID: "u-1", Name: "w", Namespace: "shop", Operation: admission.Create, Object: object(t, widget),
		Kind:     schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		User:     &user.DefaultInfo{Name: "alice", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scopes": {"a", "b"}}},
	})
}

// compile compiles the entries of a context, given as YAML.
func compile(t testing.TB, namespace, text string) ([]*scope.Entry, []policy.Read, field.ErrorList) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"context": value(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Context []kyvernov1.ContextEntry `json:"context"`
	}
	if strict, err := kjson.UnmarshalStrict(raw, &rule); err != nil || len(strict) > 0 {
		t.Fatal(err, strict)
	}
	at := template.Place{Rule: value(t, string(raw)), Path: []string{"context"}}
	return scope.Compile(rule.Context, newTemplates(), at, namespace, field.NewPath("context"))
}

func mustCompile(t testing.TB, namespace, text string) []*scope.Entry {
	t.Helper()
	entries, _, errs := compile(t, namespace, text)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return entries
}

// resolve returns what an expression is to a rule, as JSON, or the error.
func resolve(t testing.TB, run *jmespath.Run, variables *scope.Variables, expression string) (string, error) {
	t.Helper()
	compiled, err := newTemplates().Expressions.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	found, err := compiled.Search(t.Context(), run, variables)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), nil
}
