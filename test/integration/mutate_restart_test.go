// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// TestRulesSurviveRestart: a server that is ready has the stored rules in force.
func TestRulesSurviveRestart(t *testing.T) {
	a := newAPI(t)
	a.storeRules(t, map[string]string{"kept": mutateRule("restart", labelPatch("kept", "1")), "gone": mutateRule("restart", labelPatch("gone", "2"))})
	spec := "rules:\n" + nextRule("change", "", "kinds: [ConfigMap]", labelPatch("own", "3"))
	if _, err := a.policiesOf("restart").Create(t.Context(), namespacedPolicy(t, "restart", "kept", spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context) (v1alpha1.PolicyStatus, error) {
		p, err := a.policiesOf("restart").Get(ctx, "kept", metav1.GetOptions{})
		return p.Status, err
	}
	a.awaitStatus(t, "kept", 1, read)
	if err := a.clusterPolicies().Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	object, want := configMapOf(t, "restart", "c", ""), configMapOf(t, "restart", "c", `kept: "1", own: "3"`)
	a.awaitPatched(t, object, want)
	before, err := a.clusterPolicies().Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	a.Restart(t)
	a.connect(t)
	// The first request after it is ready.
	wantObject(t, patched(t, a.changes(t, mutating.direct, mutateReview(t, admissionv1.Create, object)), object), want)
	after, err := a.clusterPolicies().Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || after.UID != before.UID || after.Generation != 1 {
		t.Errorf("read back is %+v, error %v", after, err)
	}
	a.awaitRules(t, "kept", 1)
	a.awaitStatus(t, "kept", 1, read)
}
