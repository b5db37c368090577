// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"math/rand/v2"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// requestContent returns what expressions can find in a request, as JSON has it.
func requestContent(req *admissionv1.AdmissionRequest) any {
	texts := func(list []string) any {
		content := make([]any, len(list))
		for i := range list {
			content[i] = list[i]
		}
		return content
	}
	extra := map[string]any{}
	for key, values := range req.UserInfo.Extra {
		extra[key] = texts(values)
	}
	// One for all kinds and resources, as long as any of them.
	named := map[string]any{
		"group":    longest(req.Kind.Group, req.Resource.Group, req.RequestKind.Group, req.RequestResource.Group),
		"version":  longest(req.Kind.Version, req.Resource.Version, req.RequestKind.Version, req.RequestResource.Version),
		"resource": longest(req.Kind.Kind, req.Resource.Resource, req.RequestKind.Kind, req.RequestResource.Resource),
	}
	content := map[string]any{
		"kind": named, "resource": named, "requestKind": named, "requestResource": named,
		"subResource": req.SubResource, "requestSubResource": req.RequestSubResource,
		"name": req.Name, "namespace": req.Namespace, "operation": string(req.Operation), "dryRun": *req.DryRun,
		"userInfo": map[string]any{
			"username": req.UserInfo.Username, "uid": req.UserInfo.UID, "groups": texts(req.UserInfo.Groups), "extra": extra,
		},
	}
	switch options := req.Options.Object.(type) {
	case nil:
	case *unstructured.Unstructured:
		content["options"] = options.Object
	default:
		content["options"] = options
	}
	return content
}

// TestRequestSizes: what is measured of a request is what measuring all of it gives.
func TestRequestSizes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	text := func() string { return strings.Repeat("x", 1<<r.IntN(11)-r.IntN(2)) }
	texts := func() []string {
		list := make([]string, r.IntN(40))
		for i := range list {
			list[i] = text()
		}
		return list
	}
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	options := map[string]func() runtime.Object{
		"no": func() runtime.Object { return nil },
		"some": func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"fieldManager": text(), "list": make([]any, r.IntN(70)), "metadata": map[string]any{"a": text()}}}
		},
		"deep":  func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{"a": deep}} },
		"typed": func() runtime.Object { return &metav1.CreateOptions{FieldManager: text()} },
	}
	known := map[string]bool{}
	for range 500 {
		for name, some := range options {
			var who user.Info
			if r.IntN(5) > 0 {
				own := &user.DefaultInfo{Name: text(), UID: text(), Groups: texts(), Extra: map[string][]string{}}
				for range r.IntN(20) {
					own.Extra[text()] = texts()
				}
				who = own
			}
			attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{Group: text(), Version: text(), Kind: text()}, text(), text(),
				schema.GroupVersionResource{Group: text(), Version: text(), Resource: text()}, text(), admission.Operation(text()), some(), r.IntN(2) == 0, who)
			kind := schema.GroupVersionKind{Group: text(), Version: text(), Kind: text()}
			resource := schema.GroupVersionResource{Group: text(), Version: text(), Resource: text()}
			want := bound.Measure(requestContent(plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))))
			if got := requestSizes(attributes, kind, resource); got != want {
				t.Fatalf("seed %d, %s options: measured %v, want %v", seed, name, got, want)
			}
			known[name] = want != bound.Sizes{}
		}
	}
	if !known["no"] || !known["some"] || known["deep"] || !known["typed"] {
		t.Errorf("measured %v, want all but deep options", known)
	}
}
