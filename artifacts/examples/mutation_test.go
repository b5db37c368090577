// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const clusterPolicyKind = "ClusterPolicy"

// mutates says whether the example has mutate rules.
func mutates(t *testing.T, ex example) bool {
	t.Helper()
	for _, raw := range ex.policies {
		var object metav1.TypeMeta
		if err := json.Unmarshal(raw.Raw, &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == clusterPolicyKind {
			return true
		}
	}
	return false
}

// compareObject compares what has become of the object of an admitted request, and looks
// that the patch leads there.
func compareObject(t *testing.T, status v1alpha1.AdmissionPreviewStatus, c testCase) {
	t.Helper()
	if !c.want.Allowed || c.request.Object == nil {
		return
	}
	want := c.want.Object
	if want == nil {
		want = c.request.Object
		if len(status.Patch) != 0 {
			t.Errorf("patch %s, want none", marshal(t, status.Patch))
		}
	}
	if status.Object == nil {
		t.Fatal("no object")
	}
	if diff := cmp.Diff(decode(t, want.Raw), decode(t, status.Object.Raw)); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if len(status.Patch) == 0 {
		return
	}
	patch, err := jsonpatch.DecodePatch(marshal(t, status.Patch))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(c.request.Object.Raw)
	if err != nil {
		t.Fatalf("the patch does not apply: %v", err)
	}
	if diff := cmp.Diff(decode(t, want.Raw), decode(t, patched)); diff != "" {
		t.Errorf("patched object (-want +got):\n%s", diff)
	}
}

// decode tells whole numbers from others.
func decode(t *testing.T, object []byte) any {
	t.Helper()
	var decoded any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func marshal(t *testing.T, object any) []byte {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
