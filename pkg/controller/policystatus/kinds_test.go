// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/fake"
)

// byID are reports of objects of any kind.
type byID map[policy.ID]catalog.Report

func (r byID) Report(id policy.ID) (catalog.Report, bool) {
	report, ok := r[id]
	return report, ok
}

func (byID) Watch(func(policy.ID)) (stop func()) { return func() {} }

// TestKinds: the conditions of each kind are written where it is stored, say what fits
// the kind, and are written once.
func TestKinds(t *testing.T) {
	object := metav1.ObjectMeta{Name: "p", UID: "u", Generation: 2}
	namespaced := object
	namespaced.Namespace = "team-a"
	ignored := kyvernov1.Spec{FailurePolicy: ptr(kyvernov1.Ignore)}
	strict := kyvernov1.Spec{FailurePolicy: ptr(kyvernov1.Ignore), WebhookConfiguration: &kyvernov1.WebhookConfiguration{FailurePolicy: ptr(kyvernov1.Fail)}}
	const matched = "it does not compile: each request that a rule at fault matches is handled by its failurePolicy "
	for _, test := range []struct {
		kind, ready, faulty string
		spec                kyvernov1.Spec
		observed            int64
	}{
		{
			reconcile.ValidatingAdmissionPolicy, "no binding names it: it judges nothing, as long as every binding can be read",
			"it does not compile: each request that it matches and that needs an expression at fault is handled by its failurePolicy Fail",
			kyvernov1.Spec{},
			0,
		},
		{reconcile.ClusterPolicy, "its rules apply to the requests that they match", matched + "Ignore", ignored, 2},
		{reconcile.Policy, "its rules apply to the requests that they match", matched + "Fail", strict, 2},
	} {
		t.Run(test.kind, func(t *testing.T) {
			clients := fake.NewClientset(
				&v1alpha1.ValidatingAdmissionPolicy{ObjectMeta: object},
				&v1alpha1.ClusterPolicy{ObjectMeta: object, Spec: test.spec},
				&v1alpha1.Policy{ObjectMeta: namespaced, Spec: test.spec},
			)
			kinds := KindsOf(clients.PolicyV1alpha1())
			id := policy.ID{Kind: test.kind, Name: "p"}
			if test.kind == reconcile.Policy {
				id.Namespace = "team-a"
			}
			reports := byID{id: {UID: types.UID("u"), Generation: 2}}
			controller := New(kinds, reports, nil)
			look := func(want string) {
				t.Helper()
				for range 2 {
					if err := controller.sync(t.Context(), id); err != nil {
						t.Fatal(err)
					}
				}
				stored, err := controller.kinds[test.kind].get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				ready := meta.FindStatusCondition(*stored.conditions, Ready)
				if ready == nil || ready.Message != want || ready.ObservedGeneration != 2 {
					t.Errorf("condition is %+v, want %s", ready, want)
				}
				if stored.observed != nil && *stored.observed != test.observed {
					t.Errorf("observed is generation %d, want %d", *stored.observed, test.observed)
				}
			}
			look(test.ready)
			reports[id] = catalog.Report{UID: "u", Generation: 2, Faults: reported("p", 2, 1, fault("bad")).Faults}
			look(test.faulty)
			writes := 0
			for _, action := range clients.Actions() {
				if action.GetVerb() == "update" && action.GetSubresource() == "status" && action.GetNamespace() == id.Namespace {
					writes++
				}
			}
			if writes != 2 {
				t.Errorf("%d writes, want 2", writes)
			}
		})
	}
}

// TestAllPoliciesAreLookedAt: at a resync, those of every kind and namespace.
func TestAllPoliciesAreLookedAt(t *testing.T) {
	clients := fake.NewClientset(
		&v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "c", Generation: 1}},
		&v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a", UID: "a", Generation: 1}},
		&v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "b", UID: "b", Generation: 1}},
	)
	reports := byID{
		{Kind: reconcile.ClusterPolicy, Name: "p"}:          {UID: "c", Generation: 1},
		{Kind: reconcile.Policy, Namespace: "a", Name: "p"}: {UID: "a", Generation: 1},
		{Kind: reconcile.Policy, Namespace: "b", Name: "p"}: {UID: "b", Generation: 1},
	}
	controller := New(KindsOf(clients.PolicyV1alpha1()), reports, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx)
	}()
	for id := range reports {
		eventually(t, fmt.Sprintf("%v has no conditions", id), func() bool {
			stored, err := controller.kinds[id.Kind].get(t.Context(), id)
			return err == nil && meta.IsStatusConditionTrue(*stored.conditions, Ready)
		})
	}
	cancel()
	<-ended
}
