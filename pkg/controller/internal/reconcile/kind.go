// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// The kinds of policies.
const (
	ValidatingAdmissionPolicy = "ValidatingAdmissionPolicy"
	ClusterPolicy             = "ClusterPolicy"
	Policy                    = "Policy"
)

// Client reaches the stored policies of one kind, in one namespace if they have one. T is
// the type of a policy, and L that of a list of them.
type Client[T metav1.Object, L runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	UpdateStatus(ctx context.Context, stored T, options metav1.UpdateOptions) (T, error)
}

// Policies are the stored ValidatingAdmissionPolicies.
type Policies = Client[*v1alpha1.ValidatingAdmissionPolicy, *v1alpha1.ValidatingAdmissionPolicyList]

// Kind is a kind of policies that a controller looks at.
type Kind struct {
	// Name is that of the kind.
	Name string

	// due returns the policies that are to be looked at at a resync.
	due func(ctx context.Context) []policy.ID
}

// KindOf returns the kind of that name, whose policies list lists. At a resync, those are
// looked at of which due says so; nil means each.
func KindOf[T metav1.Object, L runtime.Object](name string, list func(context.Context, metav1.ListOptions) (L, error), due func(T) bool) Kind {
	return Kind{Name: name, due: func(ctx context.Context) []policy.ID {
		ctx, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		listed, err := list(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil
		}
		var ids []policy.ID
		_ = meta.EachListItem(listed, func(item runtime.Object) error { // the function does not fail
			if stored, ok := item.(T); ok && (due == nil || due(stored)) {
				ids = append(ids, policy.ID{Kind: name, Namespace: stored.GetNamespace(), Name: stored.GetName()})
			}
			return nil
		})
		return ids
	}}
}
