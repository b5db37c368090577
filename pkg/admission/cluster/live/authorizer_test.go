// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// enforced is a policy about everything, in force.
func enforced(t *testing.T, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) *policy.Set {
	t.Helper()
	equivalent := admissionregistrationv1.Equivalent
	spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: &equivalent,
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"*"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
		}}},
	}
	binding := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "p", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	named, compiler := metav1.ObjectMeta{Name: "p"}, catalog.New(dialect.All())
	var units []*policy.Unit
	for kind, obj := range map[string]runtime.Object{
		"ValidatingAdmissionPolicy":        &policyapi.ValidatingAdmissionPolicy{ObjectMeta: named, Spec: spec},
		"ValidatingAdmissionPolicyBinding": &policyapi.ValidatingAdmissionPolicyBinding{ObjectMeta: named, Spec: binding},
	} {
		unit, errs := compiler.Compile(t.Context(), kind, obj)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		units = append(units, unit)
	}
	return (&policy.Set{}).Edit(nil, units)
}

// judged is the verdict of a set on a ConfigMap.
func judged(t *testing.T, set *policy.Set, view cluster.View) verdict.Verdict {
	t.Helper()
	judge, err := plugin.NewRegistered(dialect.All(), chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := judge.Run(t.Context(), request.New(request.Fields{
		Kind: configMap, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Name: "x", Namespace: "default", Operation: admission.Create, User: &user.DefaultInfo{Name: "jane"},
		Object: object("v1", "ConfigMap", "default", "x", nil),
	}), view)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// ruled is a cluster whose RBAC objects say what users may do, as those do that a
// preview lays over it.
type ruled struct{ cluster.View }

func (r ruled) Authorizer() authorizer.UnconditionalAuthorizer { return rbac.New(r.View) }

// messageOf is why a request is denied.
func messageOf(v verdict.Verdict) string {
	if v.Allowed {
		return ""
	}
	return v.ReviewStatus().Message
}

// TestAuthorizerFails: where the cluster does not say what a user may do, the failure
// policy decides, and where it does, the policy.
func TestAuthorizerFails(t *testing.T) {
	const check = "authorizer.requestResource.check('quarantined').allowed()"
	validations := func(expression string) []admissionregistrationv1.Validation {
		return []admissionregistrationv1.Validation{{Expression: expression}}
	}
	specs := map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{
		"validation":      {Validations: validations("!" + check)},
		"match condition": {MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: check}}, Validations: validations("false")},
		"variable":        {Variables: []admissionregistrationv1.Variable{{Name: "v", Expression: check}}, Validations: validations("!variables.v")},
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			// An answer is remembered: each question has an API server of its own.
			ask := func(failurePolicy admissionregistrationv1.FailurePolicyType, allow, fails, byRoles bool) verdict.Verdict {
				s := newAPIServer(t)
				c := newCluster(t, s)
				run(t, c)
				s.change(func() {
					s.allow = allow
					if fails {
						s.refuse["review"] = apierrors.NewServiceUnavailable("not now")
					}
				})
				view := c.View()
				if byRoles {
					view = ruled{view}
				}
				spec.FailurePolicy = &failurePolicy
				return judged(t, enforced(t, spec), view)
			}
			for _, failurePolicy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
				ignores := failurePolicy == admissionregistrationv1.Ignore
				if got := ask(failurePolicy, false, false, false); !got.Allowed {
					t.Errorf("%s, no: got %q, want that it is admitted", failurePolicy, messageOf(got))
				}
				if got := ask(failurePolicy, true, false, false); got.Allowed {
					t.Errorf("%s, yes: it is admitted", failurePolicy)
				}
				if got := ask(failurePolicy, true, true, false); got.Allowed != ignores || !ignores && !strings.Contains(messageOf(got), "SubjectAccessReview: not now") {
					t.Errorf("%s, no answer: got allowed %t, %q", failurePolicy, got.Allowed, messageOf(got))
				}
				if got := ask(failurePolicy, true, false, true); got.Allowed != ignores || !ignores && !strings.Contains(messageOf(got), "RBAC: Roles cannot be read") {
					t.Errorf("%s, roles that cannot be listed: got allowed %t, %q", failurePolicy, got.Allowed, messageOf(got))
				}
			}
		})
	}
}

// TestAuthorizerSaysThatItFails: the error tells those who ask that it is no answer.
func TestAuthorizerSaysThatItFails(t *testing.T) {
	s := newAPIServer(t)
	c := newCluster(t, s)
	s.change(func() { s.refuse["review"] = forbidden("subjectaccessreviews") })
	decision, _, err := c.View().Authorizer().Authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "get", Path: "/"})
	unanswered := (*cluster.UnansweredError)(nil)
	if decision != authorizer.DecisionDeny || !errors.As(err, &unanswered) || !apierrors.IsForbidden(err) {
		t.Errorf("got %v, %v, want no answer, and why", decision, err)
	}
}
