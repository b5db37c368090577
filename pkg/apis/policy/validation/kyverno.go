// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	// maxRules bounds the rules of one policy. Kyverno has no such limit; its own
	// policies have a dozen rules at most.
	maxRules = 1000
	// maxRuleName is that of the schema of kyverno.io/v1.
	maxRuleName = 63
	// minTimeoutSeconds and maxTimeoutSeconds are those of webhooks.
	minTimeoutSeconds, maxTimeoutSeconds = 1, 30
)

// ValidateClusterPolicy returns what is wrong with a new ClusterPolicy. Its rules are
// those of Kyverno's pkg/validation/policy, pkg/policy/mutate and api/kyverno/v1 for
// mutate rules, as far as they can be checked without a cluster and without the
// language of the rules: what templates, patches and JMESPath say is asked elsewhere.
func ValidateClusterPolicy(p *policy.ClusterPolicy) field.ErrorList {
	return validateClusterPolicy(p, ruleValidator{})
}

// ValidateClusterPolicyUpdate returns what is wrong with a ClusterPolicy that is to
// replace oldPolicy. A spec that stays as it is is not looked at again: an old policy
// stays writable.
func ValidateClusterPolicyUpdate(newPolicy, oldPolicy *policy.ClusterPolicy) field.ErrorList {
	return validateClusterPolicy(newPolicy, ruleValidator{stored: &oldPolicy.Spec})
}

func validateClusterPolicy(p *policy.ClusterPolicy, v ruleValidator) field.ErrorList {
	path := field.NewPath("spec")
	written := policy.ClusterPolicy{ObjectMeta: p.ObjectMeta, Spec: p.Spec} // the status follows from it, in the room that is left
	if errs := validateSize(&written, path); len(errs) > 0 {                // the size bounds the work of everything below
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&p.ObjectMeta, false,
		apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, v.validateSpec(&p.Spec, path)...)
}

// ValidatePolicy is ValidateClusterPolicy for a Policy, which must not reach beyond
// its namespace.
func ValidatePolicy(p *policy.Policy) field.ErrorList {
	return validateNamespacedPolicy(p, ruleValidator{namespaced: true, namespace: p.Namespace})
}

// ValidatePolicyUpdate is ValidateClusterPolicyUpdate for a Policy.
func ValidatePolicyUpdate(newPolicy, oldPolicy *policy.Policy) field.ErrorList {
	return validateNamespacedPolicy(newPolicy, ruleValidator{namespaced: true, namespace: newPolicy.Namespace, stored: &oldPolicy.Spec})
}

func validateNamespacedPolicy(p *policy.Policy, v ruleValidator) field.ErrorList {
	path := field.NewPath("spec")
	written := policy.Policy{ObjectMeta: p.ObjectMeta, Spec: p.Spec}
	if errs := validateSize(&written, path); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&p.ObjectMeta, true,
		apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, v.validateSpec(&p.Spec, path)...)
}

// ValidateRuleMatches returns what is wrong with what the rules match and exclude, and
// nothing else. The paths start at the object.
func ValidateRuleMatches(spec *kyvernov1.Spec, namespaced bool) field.ErrorList {
	v, path := ruleValidator{namespaced: namespaced}, field.NewPath("spec", "rules")
	var errs field.ErrorList
	for i := range spec.Rules {
		errs = append(errs, v.validateMatches(&spec.Rules[i], path.Index(i))...)
	}
	return errs
}

// ruleValidator validates the spec of one policy.
type ruleValidator struct {
	// namespaced says that the policy is a Policy, in namespace.
	namespaced bool
	namespace  string
	// stored is nil for a new policy.
	stored *kyvernov1.Spec
}

func (v *ruleValidator) validateSpec(spec *kyvernov1.Spec, path *field.Path) field.ErrorList {
	if v.stored != nil && apiequality.Semantic.DeepEqual(spec, v.stored) {
		return nil
	}
	errs := v.validateSettings(spec, path)
	rulesPath := path.Child("rules")
	switch {
	case len(spec.Rules) == 0:
		errs = append(errs, field.Required(rulesPath, "a policy needs a rule"))
	case len(spec.Rules) > maxRules:
		return append(errs, field.TooMany(rulesPath, len(spec.Rules), maxRules))
	}
	names := sets.New[string]()
	for i := range spec.Rules {
		rule, rulePath := &spec.Rules[i], rulesPath.Index(i)
		errs = append(errs, validateRuleName(rule.Name, names, rulePath.Child("name"))...)
		errs = append(errs, v.validateRule(rule, rulePath)...)
	}
	return errs
}

func validateRuleName(name string, names sets.Set[string], path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "a rule needs a name")}
	case len(name) > maxRuleName:
		return field.ErrorList{field.TooLong(path, name, maxRuleName)}
	case names.Has(name):
		return field.ErrorList{field.Duplicate(path, name)}
	}
	names.Insert(name)
	return nil
}

// validateSettings validates what stands beside the rules.
func (v *ruleValidator) validateSettings(spec *kyvernov1.Spec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if apply := spec.ApplyRules; apply != nil && *apply != kyvernov1.ApplyAll && *apply != kyvernov1.ApplyOne {
		errs = append(errs, field.NotSupported(path.Child("applyRules"), *apply, []kyvernov1.ApplyRules{kyvernov1.ApplyAll, kyvernov1.ApplyOne}))
	}
	if spec.Admission != nil && !*spec.Admission {
		errs = append(errs, field.Forbidden(path.Child("admission"), "mutate rules are for requests: remove the field, or the policy"))
	}
	if spec.MutateExistingOnPolicyUpdate {
		errs = append(errs, field.Forbidden(path.Child("mutateExistingOnPolicyUpdate"), noTargets+": remove the field"))
	}
	errs = append(errs, validateOnFailure(spec.FailurePolicy, path.Child("failurePolicy"))...)
	errs = append(errs, validateTimeout(spec.WebhookTimeoutSeconds, path.Child("webhookTimeoutSeconds"))...)
	webhook, webhookPath := spec.WebhookConfiguration, path.Child("webhookConfiguration")
	if webhook == nil {
		return errs
	}
	errs = append(errs, validateOnFailure(webhook.FailurePolicy, webhookPath.Child("failurePolicy"))...)
	errs = append(errs, validateTimeout(webhook.TimeoutSeconds, webhookPath.Child("timeoutSeconds"))...)
	const twice = "%s says the same: remove this field"
	if spec.FailurePolicy != nil && webhook.FailurePolicy != nil {
		errs = append(errs, field.Forbidden(path.Child("failurePolicy"), fmt.Sprintf(twice, webhookPath.Child("failurePolicy"))))
	}
	if spec.WebhookTimeoutSeconds != nil && webhook.TimeoutSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("webhookTimeoutSeconds"), fmt.Sprintf(twice, webhookPath.Child("timeoutSeconds"))))
	}
	conditions := policyValidator{environment: kubernetesEnvironment()}
	if v.stored != nil && v.stored.WebhookConfiguration != nil {
		conditions.stored = storedMatchConditions(v.stored.WebhookConfiguration.MatchConditions)
	}
	return append(errs, conditions.validateMatchConditions(webhook.MatchConditions, webhookPath.Child("matchConditions"))...)
}

func validateOnFailure(failurePolicy *kyvernov1.FailurePolicy, path *field.Path) field.ErrorList {
	if failurePolicy == nil || *failurePolicy == kyvernov1.Fail || *failurePolicy == kyvernov1.Ignore {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *failurePolicy, []kyvernov1.FailurePolicy{kyvernov1.Fail, kyvernov1.Ignore})}
}

func validateTimeout(seconds *int32, path *field.Path) field.ErrorList {
	if seconds == nil || *seconds >= minTimeoutSeconds && *seconds <= maxTimeoutSeconds {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, fmt.Sprintf("must be between %d and %d seconds", minTimeoutSeconds, maxTimeoutSeconds))}
}
