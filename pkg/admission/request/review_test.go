// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// newReview returns the least that is judged.
func newReview() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "u",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: []byte(`{}`)},
	}
}

func withObject(object string) *admissionv1.AdmissionRequest {
	review := newReview()
	review.Object.Raw = []byte(object)
	return review
}

// fromReview sends the review as JSON.
func fromReview(t *testing.T, review *admissionv1.AdmissionRequest) (*request.Request, error) {
	t.Helper()
	data, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	var in request.Review
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &in); err != nil {
		t.Fatal(err)
	}
	return request.FromReview(&in)
}

// TestReviewHasAllFields compares the fields with those that API servers send.
func TestReviewHasAllFields(t *testing.T) {
	want, got := reflect.TypeFor[admissionv1.AdmissionRequest](), reflect.TypeFor[request.Review]()
	if got.NumField() != want.NumField() {
		t.Errorf("got %d fields, want %d", got.NumField(), want.NumField())
	}
	for field := range want.Fields() {
		own, ok := got.FieldByName(field.Name)
		if !ok || own.Tag.Get("json") != field.Tag.Get("json") {
			t.Errorf("%s: got %q, want it with the tag %q", field.Name, own.Tag.Get("json"), field.Tag.Get("json"))
		}
		if isObject := field.Type == reflect.TypeFor[runtime.RawExtension](); !isObject && own.Type != field.Type {
			t.Errorf("%s: got type %s, want %s", field.Name, own.Type, field.Type)
		}
	}
}

func TestFromReviewFields(t *testing.T) {
	review := newReview()
	review.SubResource = "status"
	review.RequestKind = &metav1.GroupVersionKind{Group: "g", Version: "v2", Kind: "K"}
	review.RequestResource = &metav1.GroupVersionResource{Group: "g", Version: "v2", Resource: "ks"}
	review.RequestSubResource = "scale"
	review.Name, review.Namespace = "name", "namespace"
	review.DryRun = ptr.To(true)
	review.UserInfo = authenticationv1.UserInfo{
		Username: "jane", UID: "42", Groups: []string{"devs"},
		Extra: map[string]authenticationv1.ExtraValue{"scope": {"a", "b"}},
	}
	review.Object.Raw = []byte(`{"kind":"New"}`)
	review.OldObject.Raw = []byte(`{"kind":"Old"}`)
	review.Options.Raw = []byte(`{"kind":"CreateOptions"}`)

	got, err := fromReview(t, review)
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != "u" || got.Kind != (schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) ||
		got.Resource != (schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}) || got.SubResource != "status" {
		t.Errorf("identity: got %+v", got.Fields)
	}
	if got.RequestKind != (schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "K"}) ||
		got.RequestResource != (schema.GroupVersionResource{Group: "g", Version: "v2", Resource: "ks"}) || got.RequestSubResource != "scale" {
		t.Errorf("original request: got %+v", got.Fields)
	}
	if got.Name != "name" || got.Namespace != "namespace" || got.Operation != admission.Create || !got.DryRun {
		t.Errorf("place and operation: got %+v", got.Fields)
	}
	if got.User.GetName() != "jane" || got.User.GetUID() != "42" || !reflect.DeepEqual(got.User.GetGroups(), []string{"devs"}) ||
		!reflect.DeepEqual(got.User.GetExtra(), map[string][]string{"scope": {"a", "b"}}) {
		t.Errorf("user: got %+v", got.User)
	}
	if got.Object.GetKind() != "New" || got.OldObject.GetKind() != "Old" || got.Options.GetKind() != "CreateOptions" {
		t.Errorf("objects: got %v, %v and %v", got.Object, got.OldObject, got.Options)
	}
}

// TestFromReviewDefaults pins what an absent optional field means.
func TestFromReviewDefaults(t *testing.T) {
	review := newReview()
	review.Operation, review.Object.Raw = admissionv1.Connect, nil
	got, err := fromReview(t, review)
	if err != nil {
		t.Fatal(err)
	}
	if got.RequestKind != got.Kind || got.RequestResource != got.Resource || got.RequestSubResource != got.SubResource {
		t.Errorf("original request: got %+v, want what is judged", got.Fields)
	}
	if got.Object != nil || got.OldObject != nil || got.Options != nil || got.DryRun {
		t.Errorf("got %+v, want no objects and no dry run", got.Fields)
	}
	if got.User == nil || got.User.GetName() != "" {
		t.Errorf("user: got %+v, want one without a name", got.User)
	}
}

func TestFromReviewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*admissionv1.AdmissionRequest)
		want   string
	}{
		{"no object to create", func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }, "request.object: required for CREATE"},
		{
			"no object to update", func(r *admissionv1.AdmissionRequest) {
				r.Operation, r.Object.Raw = admissionv1.Update, []byte("null")
			}, "request.object: required for UPDATE",
		},
		{
			"half of the original request", func(r *admissionv1.AdmissionRequest) {
				r.RequestResource = &metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			}, "request.requestKind: version and kind are required beside requestResource",
		},
		{
			"the other half", func(r *admissionv1.AdmissionRequest) {
				r.RequestKind = &metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
			}, "request.requestResource: version and resource are required beside requestKind",
		},
		{"no uid", func(r *admissionv1.AdmissionRequest) { r.UID = "" }, "request.uid: required: set a text that no other request has"},
		{
			"no kind", func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "" },
			`request.kind: version and kind are required, as in {"group":"apps","version":"v1","kind":"Deployment"}`,
		},
		{
			"no version of the kind", func(r *admissionv1.AdmissionRequest) { r.Kind.Version = "" },
			`request.kind: version and kind are required, as in {"group":"apps","version":"v1","kind":"Deployment"}`,
		},
		{
			"no resource", func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "" },
			`request.resource: version and resource are required, as in {"group":"apps","version":"v1","resource":"deployments"}`,
		},
		{
			"no version of the resource", func(r *admissionv1.AdmissionRequest) { r.Resource.Version = "" },
			`request.resource: version and resource are required, as in {"group":"apps","version":"v1","resource":"deployments"}`,
		},
		{"no operation", func(r *admissionv1.AdmissionRequest) { r.Operation = "" }, `request.operation: "" is not CREATE, UPDATE, DELETE or CONNECT`},
		{"unknown operation", func(r *admissionv1.AdmissionRequest) { r.Operation = "create" }, `request.operation: "create" is not CREATE, UPDATE, DELETE or CONNECT`},
		{"object is a list", func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`[]`) }, "request.object: must be a JSON object"},
		{"oldObject is a text", func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = []byte(`"a"`) }, "request.oldObject: must be a JSON object"},
		{"options are a number", func(r *admissionv1.AdmissionRequest) { r.Options.Raw = []byte(`1`) }, "request.options: must be a JSON object"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			review := newReview()
			test.change(review)
			_, err := fromReview(t, review)
			if err == nil || err.Error() != test.want {
				t.Errorf("got error\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

// TestFromReviewMetadata keeps labels and names readable: metadata of another
// shape must not look like no labels.
func TestFromReviewMetadata(t *testing.T) {
	tests := []struct{ metadata, want string }{
		{metadata: `null`},
		{metadata: `{}`},
		{metadata: `{"name":"n","labels":null,"creationTimestamp":null,"own":{"field":1}}`},
		{metadata: `[]`, want: "request.object: metadata: must be a JSON object"},
		{metadata: `"n"`, want: "request.object: metadata: must be a JSON object"},
		{metadata: `{"name":"n","labels":{"a":1}}`, want: "request.object: metadata.labels: does not fit ObjectMeta: cannot convert int64 to string"},
		{metadata: `{"labels":[]}`, want: "request.object: metadata.labels: does not fit ObjectMeta: cannot restore map from slice"},
		{metadata: `{"name":{}}`, want: "request.object: metadata.name: does not fit ObjectMeta: unrecognized type: string"},
		{metadata: `{"finalizers":"f"}`, want: "request.object: metadata.finalizers: does not fit ObjectMeta: cannot restore slice from string"},
	}
	for _, test := range tests {
		_, err := fromReview(t, withObject(`{"metadata":`+test.metadata+`}`))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("metadata %s: got error %q, want %q", test.metadata, got, test.want)
		}
	}
}

// TestObject pins how the JSON of an object is read.
func TestObject(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
	}
	tests := []struct {
		name, raw string
		want      map[string]any
	}{
		{name: "absent"},
		{name: "null", raw: `null`},
		{name: "null with space", raw: " null\n"},
		{name: "empty", raw: `{}`, want: map[string]any{}},
		{
			name: "numbers stay whole",
			raw:  `{"largest":9223372036854775807,"least":-9223372036854775808,"beyond":9223372036854775808,"fraction":1.0,"exponent":1e3}`,
			want: map[string]any{
				"largest": int64(9223372036854775807), "least": int64(-9223372036854775808),
				"beyond": float64(9223372036854775808), "fraction": float64(1), "exponent": float64(1000),
			},
		},
		{
			name: "keys are case-sensitive", raw: `{"Metadata":{"name":"a"},"METADATA":[],"KIND":"A"}`,
			want: map[string]any{"Metadata": map[string]any{"name": "a"}, "METADATA": []any{}, "KIND": "A"},
		},
		{name: "the last of equal keys counts", raw: `{"a":{"b":1},"a":{"c":2}}`, want: map[string]any{"a": map[string]any{"c": int64(2)}}},
		{name: "invalid UTF-8 is replaced", raw: "{\"a\":\"\xff\"}", want: map[string]any{"a": "\uFFFD"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := request.Object(&runtime.RawExtension{Raw: []byte(test.raw)})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				if got != nil {
					t.Errorf("got %v, want no object", got)
				}
				return
			}
			if got == nil || !reflect.DeepEqual(got.Object, test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
	if got, err := request.Object(nil); got != nil || err != nil {
		t.Errorf("no extension at all: got %v and error %v", got, err)
	}
	if got, err := request.Object(&runtime.RawExtension{Raw: []byte(nested(10_000))}); err != nil || got == nil {
		t.Errorf("as deep as is allowed: got error %v", err)
	}
	if _, err := request.Object(&runtime.RawExtension{Raw: []byte(nested(10_001))}); err == nil {
		t.Error("deeper than is allowed: got no error")
	}
}
