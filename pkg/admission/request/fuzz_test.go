// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"bytes"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// FuzzFromReview looks for reviews that panic, and for requests that change when
// they are written as a review and read again. Written once, a number has its
// final form (1.0 becomes 1), so it is the second writing that must not differ.
func FuzzFromReview(f *testing.F) {
	const head = `{"uid":"u","kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"operation":"CREATE"`
	for _, seed := range []string{
		`{}`, `null`, head + `}`,
		head + `,"object":{"metadata":{"name":"n","labels":{"a":"b"}},"data":{"a":"b"}},"oldObject":null}`,
		head + `,"object":{"metadata":null,"n":[1,1.0,-0,-0.0,1e3,1e300,9223372036854775808],"n":1,"\ud800":"\u0000"}}`,
		head + `,"requestKind":{"kind":"K"},"requestResource":{"resource":"r"},"dryRun":true,"userInfo":{"username":"a","groups":[],"extra":{"k":[]}}}`,
		head + `,"object":{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}],"creationTimestamp":"2026-01-02T03:04:05Z"}},"options":{"a":[{}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, ok := readReview(data)
		if !ok {
			return
		}
		second, ok := readReview(writeReview(t, first))
		if !ok {
			t.Fatal("what was read is refused when it is read again")
		}
		written := writeReview(t, second)
		third, ok := readReview(written)
		if !ok {
			t.Fatal("what was read twice is refused")
		}
		if again := writeReview(t, third); !bytes.Equal(written, again) {
			t.Errorf("read again, the request has changed:\n%s\nwas\n%s", again, written)
		}
	})
}

func readReview(data []byte) (*request.Request, bool) {
	var review request.Review
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &review); err != nil {
		return nil, false
	}
	req, err := request.FromReview(&review)
	return req, err == nil
}

func writeReview(t *testing.T, r *request.Request) []byte {
	t.Helper()
	extra := map[string]authenticationv1.ExtraValue{}
	for key, values := range r.User.GetExtra() {
		extra[key] = values
	}
	kind, resource := metav1.GroupVersionKind(r.RequestKind), metav1.GroupVersionResource(r.RequestResource)
	data, err := json.Marshal(&admissionv1.AdmissionRequest{
		UID: r.UID, Kind: metav1.GroupVersionKind(r.Kind), Resource: metav1.GroupVersionResource(r.Resource), SubResource: r.SubResource,
		RequestKind: &kind, RequestResource: &resource, RequestSubResource: r.RequestSubResource,
		Name: r.Name, Namespace: r.Namespace, Operation: admissionv1.Operation(r.Operation), DryRun: &r.DryRun,
		UserInfo: authenticationv1.UserInfo{Username: r.User.GetName(), UID: r.User.GetUID(), Groups: r.User.GetGroups(), Extra: extra},
		Object:   writeObject(t, r.Object), OldObject: writeObject(t, r.OldObject), Options: writeObject(t, r.Options),
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeObject(t *testing.T, object *unstructured.Unstructured) runtime.RawExtension {
	t.Helper()
	if object == nil {
		return runtime.RawExtension{}
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}
