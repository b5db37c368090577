// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
	policyclient "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
)

// Kind is a kind of policies whose conditions are written.
type Kind struct {
	kind  reconcile.Kind
	words words
	get   func(ctx context.Context, id policy.ID) (*object, error)
}

// object is a stored policy of any kind.
type object struct {
	metav1.Object
	conditions *[]metav1.Condition
	// observed is the generation that the status is about. It is nil where another
	// controller says that.
	observed      *int64
	failurePolicy string
	// derive writes into the status what follows from the rest of the object, and says
	// whether that is new. It may be nil.
	derive func() bool
	// update writes the status.
	update func(ctx context.Context) error
}

// words are what conditions of a kind say.
type words struct {
	// compiled, inForce and faulty are said of a policy that compiles, of one that is in
	// force, and of the requests for which one that does not compile is.
	compiled, inForce, faulty string
	// unbound is said of a policy without a binding. It is empty for kinds that need none.
	unbound string
}

// ValidatingAdmissionPolicies are the policies of that kind.
func ValidatingAdmissionPolicies(client reconcile.Policies) Kind {
	return newKind(reconcile.ValidatingAdmissionPolicy, celWords(), func(string) reconcile.Policies { return client },
		func(p *v1alpha1.ValidatingAdmissionPolicy) object {
			return object{conditions: &p.Status.Conditions, failurePolicy: stringOf(p.Spec.FailurePolicy)}
		})
}

// KindsOf returns all kinds of policies, as they are reached by the clients of the group.
func KindsOf(clients policyclient.PolicyV1alpha1Interface) []Kind {
	type (
		clusterClient    = reconcile.Client[*v1alpha1.ClusterPolicy, *v1alpha1.ClusterPolicyList]
		namespacedClient = reconcile.Client[*v1alpha1.Policy, *v1alpha1.PolicyList]
	)
	return []Kind{
		ValidatingAdmissionPolicies(clients.ValidatingAdmissionPolicies()),
		newKind(reconcile.ClusterPolicy, ruleWords(), func(string) clusterClient { return clients.ClusterPolicies() },
			func(p *v1alpha1.ClusterPolicy) object { return ruleObject(p.Annotations, &p.Spec, &p.Status) }),
		newKind(reconcile.Policy, ruleWords(), func(namespace string) namespacedClient { return clients.Policies(namespace) },
			func(p *v1alpha1.Policy) object { return ruleObject(p.Annotations, &p.Spec, &p.Status) }),
	}
}

func celWords() words {
	return words{
		compiled: "every expression compiles",
		inForce:  "it judges the requests that it matches",
		faulty:   "each request that it matches and that needs an expression at fault",
		unbound:  "no binding names it: it judges nothing, as long as every binding can be read",
	}
}

func ruleWords() words {
	return words{
		compiled: "every rule compiles",
		inForce:  "its rules apply to the requests that they match",
		faulty:   "each request that a rule at fault matches",
	}
}

func ruleObject(annotations map[string]string, spec *kyvernov1.Spec, status *v1alpha1.PolicyStatus) object {
	failurePolicy := spec.FailurePolicy
	if webhook := spec.WebhookConfiguration; webhook != nil && webhook.FailurePolicy != nil {
		failurePolicy = webhook.FailurePolicy
	}
	return object{
		conditions: &status.Conditions, observed: &status.ObservedGeneration, failurePolicy: stringOf(failurePolicy),
		derive: func() bool {
			derived := generatedRules(annotations, spec)
			if apiequality.Semantic.DeepEqual(derived, status.Autogen) {
				return false
			}
			status.Autogen = derived
			return true
		},
	}
}

// stringOf is Fail for a failurePolicy that is absent.
func stringOf[S ~string](failurePolicy *S) string {
	if failurePolicy == nil {
		return "Fail"
	}
	return string(*failurePolicy)
}

// newKind makes a kind of its typed client. of returns what the controller needs of a
// policy that is its own, and points into it.
func newKind[T metav1.Object, L runtime.Object](name string, words words, client func(namespace string) reconcile.Client[T, L], of func(T) object) Kind {
	return Kind{
		kind:  reconcile.KindOf[T](name, client(metav1.NamespaceAll).List, nil),
		words: words,
		get: func(ctx context.Context, id policy.ID) (*object, error) {
			policies := client(id.Namespace)
			// What has been reported has come through the cache that answers.
			stored, err := policies.Get(ctx, id.Name, metav1.GetOptions{ResourceVersion: "0"})
			if err != nil {
				return nil, err
			}
			found := of(stored)
			found.Object = stored
			found.update = func(ctx context.Context) error {
				_, err := policies.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
				return err
			}
			return &found, nil
		},
	}
}
