// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConverges: the condition is there when a policy has been seen to change its own
// result, and goes with the generation that did.
func TestConverges(t *testing.T) {
	diverging := reported("p", 3, 1)
	diverging.Diverging = "rule r"
	api, told := &store{}, &reports{}
	api.put(stored("p", 3))
	c := New(kindsOf(api), told, nil)
	condition := func() *metav1.Condition {
		t.Helper()
		if err := c.sync(t.Context(), idOf("p")); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(api.byName["p"].Status.Conditions, Converges)
	}
	told.set("p", reported("p", 3, 1))
	if got := condition(); got != nil {
		t.Errorf("got %+v before anything was seen", got)
	}
	told.set("p", diverging)
	if got := condition(); got == nil || got.Status != metav1.ConditionFalse || got.Message != "rule r" || got.ObservedGeneration != 3 {
		t.Errorf("got %+v, want False", got)
	}
	rewritten := stored("p", 4)
	rewritten.Status = api.byName["p"].Status
	api.put(rewritten)
	told.set("p", reported("p", 4, 1))
	if got := condition(); got != nil {
		t.Errorf("got %+v of a generation that is gone", got)
	}
}
