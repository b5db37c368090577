// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestApplyAgain applies the manifests of a cluster that serves once more, server-side:
// nothing is written, whatever the servers and the controllers have added.
func TestApplyAgain(t *testing.T) {
	c := shared.ControlPlane
	dir, err := shared.Kustomization()
	if err != nil {
		t.Fatal(err)
	}
	settle(t, c, dir)
	before := objectsOf(t, c, dir)
	if bundle, _, err := unstructured.NestedString(before["APIService /v1alpha1.policy.portcullis.dev"].Object, "spec", "caBundle"); err != nil || bundle == "" {
		t.Fatalf("the server has not written its authority, error %v", err)
	}
	if data, _, err := unstructured.NestedMap(before["Secret portcullis-system/portcullis-serving"].Object, "data"); err != nil || data["tls.crt"] == nil {
		t.Fatalf("the server has not written its certificate, error %v", err)
	}
	for range 2 {
		must(t, c, "", "apply", "--server-side", "-k", dir)
		compare(t, before, objectsOf(t, c, dir))
	}
	for _, side := range []string{"--server-side=true", "--server-side=false"} {
		if output := must(t, c, "", "diff", side, "-k", dir); output != "" {
			t.Errorf("%s: there is a difference:\n%s", side, output)
		}
	}
}
