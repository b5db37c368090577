// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/validation"
)

func clusterPolicies() Kind {
	status := PartOf(func(p *policy.ClusterPolicy) *policy.PolicyStatus { return &p.Status })
	return Kind{
		Resource:             "clusterpolicies",
		Singular:             "clusterpolicy",
		ShortNames:           []string{"pcpol"},
		Homes:                kyvernoVersions(),
		New:                  func() runtime.Object { return &policy.ClusterPolicy{} },
		NewList:              func() runtime.Object { return &policy.ClusterPolicyList{} },
		Spec:                 PartOf(func(p *policy.ClusterPolicy) *kyvernov1.Spec { return &p.Spec }),
		Annotations:          []string{kyvernov1.AutogenControllersAnnotation},
		Status:               &status,
		Validate:             Validation(validation.ValidateClusterPolicy),
		ValidateUpdate:       UpdateValidation(validation.ValidateClusterPolicyUpdate),
		ValidateStatusUpdate: UpdateValidation(validation.ValidateClusterPolicyStatusUpdate),
		Columns:              columns(rulesColumn(), readyColumn()),
		Cells: Cells(func(p *policy.ClusterPolicy) []any {
			return []any{p.Name, int64(len(p.Spec.Rules)), ready(p, p.Status.Conditions), age(p.CreationTimestamp)}
		}),
		salvage: salvageOf(func(p *policy.ClusterPolicy, spec fields, damage, advice string) {
			salvageRules(&p.Spec, spec)
			p.Status.Conditions = damagedRuleConditions(p.Generation, &p.Spec, damage, advice)
		}),
		validateSalvaged: Validation(func(p *policy.ClusterPolicy) field.ErrorList { return validation.ValidateRuleMatches(&p.Spec, false) }),
	}
}

func policies() Kind {
	status := PartOf(func(p *policy.Policy) *policy.PolicyStatus { return &p.Status })
	return Kind{
		Resource:             "policies",
		Singular:             "policy",
		ShortNames:           []string{"ppol"},
		Homes:                kyvernoVersions(),
		Namespaced:           true,
		New:                  func() runtime.Object { return &policy.Policy{} },
		NewList:              func() runtime.Object { return &policy.PolicyList{} },
		Spec:                 PartOf(func(p *policy.Policy) *kyvernov1.Spec { return &p.Spec }),
		Annotations:          []string{kyvernov1.AutogenControllersAnnotation},
		Status:               &status,
		Validate:             Validation(validation.ValidatePolicy),
		ValidateUpdate:       UpdateValidation(validation.ValidatePolicyUpdate),
		ValidateStatusUpdate: UpdateValidation(validation.ValidatePolicyStatusUpdate),
		Columns:              columns(rulesColumn(), readyColumn()),
		Cells: Cells(func(p *policy.Policy) []any {
			return []any{p.Name, int64(len(p.Spec.Rules)), ready(p, p.Status.Conditions), age(p.CreationTimestamp)}
		}),
		salvage: salvageOf(func(p *policy.Policy, spec fields, damage, advice string) {
			salvageRules(&p.Spec, spec)
			p.Status.Conditions = damagedRuleConditions(p.Generation, &p.Spec, damage, advice)
		}),
		validateSalvaged: Validation(func(p *policy.Policy) field.ErrorList { return validation.ValidateRuleMatches(&p.Spec, true) }),
	}
}

// kyvernoVersions are those of ClusterPolicy and Policy. v2beta1 has nothing that v1
// has not.
func kyvernoVersions() []schema.GroupVersion {
	return []schema.GroupVersion{kyvernov1.SchemeGroupVersion, {Group: kyvernov1.GroupName, Version: "v2beta1"}}
}

func rulesColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Rules", Type: "integer", Description: "Rules is the number of rules of the policy"}
}

// salvageRules keeps what says for which requests the rules are, and what an error
// leads to. Where that cannot be read of one rule there is none, and the policy is for
// all requests that it can be for. No rule changes anything.
func salvageRules(spec *kyvernov1.Spec, from fields) {
	spec.Rules = readMatches(from["rules"])
	failurePolicy := readField[kyvernov1.FailurePolicy](from, "failurePolicy")
	if _, given := from["webhookConfiguration"]; given {
		webhook := readField[fields](from, "webhookConfiguration")
		switch {
		case webhook == nil:
			failurePolicy = nil
		case (*webhook)["failurePolicy"] != nil:
			failurePolicy = readField[kyvernov1.FailurePolicy](*webhook, "failurePolicy")
		}
	}
	if failurePolicy != nil && *failurePolicy == kyvernov1.Ignore {
		spec.FailurePolicy = failurePolicy
	}
}

// readMatches returns nil unless it is known of every rule what it matches. Of a rule
// whose exclude cannot be read, nothing is excluded.
func readMatches(raw json.RawMessage) []kyvernov1.Rule {
	var rules []json.RawMessage
	if err := json.Unmarshal(raw, &rules); err != nil {
		return nil
	}
	matches := make([]kyvernov1.Rule, 0, len(rules))
	for _, rule := range rules {
		parts := readFields(rule)
		match := readField[kyvernov1.MatchResources](parts, "match")
		if match == nil {
			return nil
		}
		matches = append(matches, kyvernov1.Rule{
			Name: valueOr(readField[string](parts, "name"), ""), Match: *match,
			Exclude: readField[kyvernov1.MatchResources](parts, "exclude"),
		})
	}
	return matches
}

func damagedRuleConditions(generation int64, spec *kyvernov1.Spec, damage, advice string) []metav1.Condition {
	return damagedConditions(generation, len(spec.Rules) > 0, string(valueOr(spec.FailurePolicy, kyvernov1.Fail)), damage, advice)
}
