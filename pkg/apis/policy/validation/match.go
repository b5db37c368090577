// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wildcard matches every value of its list.
const wildcard = "*"

// validateMatchConstraints validates what a policy matches. It needs a rule,
// for types are checked against the kinds that the rules name.
func validateMatchConstraints(constraints *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if constraints == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validateMatchResources(constraints, path)
	if len(constraints.ResourceRules) == 0 {
		errs = append(errs, field.Required(path.Child("resourceRules"), ""))
	}
	return errs
}

// validateMatchResources accepts nil, which matches all that a policy matches.
func validateMatchResources(match *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if match == nil {
		return nil
	}
	var errs field.ErrorList
	errs = append(errs, validateMatchPolicy(match.MatchPolicy, path.Child("matchPolicy"))...)
	errs = append(errs, validateSelector(match.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, validateSelector(match.ObjectSelector, path.Child("objectSelector"))...)
	for i := range match.ResourceRules {
		errs = append(errs, validateNamedRule(&match.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range match.ExcludeResourceRules {
		errs = append(errs, validateNamedRule(&match.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateMatchPolicy(matchPolicy *admissionregistrationv1.MatchPolicyType, path *field.Path) field.ErrorList {
	if matchPolicy == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	switch *matchPolicy {
	case admissionregistrationv1.Equivalent, admissionregistrationv1.Exact:
		return nil
	default:
		return field.ErrorList{field.NotSupported(path, *matchPolicy, []admissionregistrationv1.MatchPolicyType{
			admissionregistrationv1.Equivalent, admissionregistrationv1.Exact,
		})}
	}
}

// validateSelector requires a selector: one that is absent has become the empty
// one by default, and nil would match nothing.
func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateNamedRule(rule *admissionregistrationv1.NamedRuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, name := range rule.ResourceNames {
		namePath := path.Child("resourceNames").Index(i)
		for _, detail := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(namePath, name, detail))
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(namePath, name))
		}
		names.Insert(name)
	}
	errs = append(errs, validateOperations(rule.Operations, path.Child("operations"))...)
	return append(errs, validateRule(&rule.Rule, path)...)
}

func validateOperations(operations []admissionregistrationv1.OperationType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	supported := sets.New(
		admissionregistrationv1.OperationAll,
		admissionregistrationv1.Connect,
		admissionregistrationv1.Create,
		admissionregistrationv1.Delete,
		admissionregistrationv1.Update,
	)
	if len(operations) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if len(operations) > 1 && slices.Contains(operations, admissionregistrationv1.OperationAll) {
		errs = append(errs, field.Invalid(path, operations, "if '*' is present, must not specify other operations"))
	}
	for i, operation := range operations {
		if !supported.Has(operation) {
			errs = append(errs, field.NotSupported(path.Index(i), operation, sets.List(supported)))
		}
	}
	return errs
}

func validateRule(rule *admissionregistrationv1.Rule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// An empty group is the core group.
	errs = append(errs, validateWildcardList(rule.APIGroups, "API groups", path.Child("apiGroups"))...)
	versionsPath := path.Child("apiVersions")
	errs = append(errs, validateWildcardList(rule.APIVersions, "API versions", versionsPath)...)
	for i, version := range rule.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(versionsPath.Index(i), ""))
		}
	}
	errs = append(errs, validateResources(rule.Resources, path.Child("resources"))...)
	if rule.Scope == nil {
		return errs
	}
	scopes := sets.New(admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)
	if !scopes.Has(*rule.Scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), *rule.Scope, sets.List(scopes)))
	}
	return errs
}

// validateWildcardList requires an entry, and a wildcard to be the only one.
func validateWildcardList(entries []string, noun string, path *field.Path) field.ErrorList {
	if len(entries) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(entries) > 1 && slices.Contains(entries, wildcard) {
		return field.ErrorList{field.Invalid(path, entries, "if '*' is present, must not specify other "+noun)}
	}
	return nil
}

// validateResources refuses entries that an earlier wildcard covers, and `*`
// together with resources. Of the entries without a subresource only the last
// one counts for the latter, as upstream: ["pods", "*"] is accepted.
func validateResources(resources []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	allSubresourcesOf, allResourcesWith := sets.New[string](), sets.New[string]()
	endsWithResource := false
	for i, entry := range resources {
		if entry == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		resource, subresource, found := strings.Cut(entry, "/")
		if !found {
			endsWithResource = entry != wildcard
			continue
		}
		if allSubresourcesOf.Has(resource) {
			errs = append(errs, field.Invalid(path.Index(i), entry, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, entry)))
		}
		if allResourcesWith.Has(subresource) {
			errs = append(errs, field.Invalid(path.Index(i), entry, fmt.Sprintf("if '*/%s' is present, must not specify %s", subresource, entry)))
		}
		if subresource == wildcard {
			allSubresourcesOf.Insert(resource)
		}
		if resource == wildcard {
			allResourcesWith.Insert(subresource)
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if endsWithResource && slices.Contains(resources, wildcard) {
		errs = append(errs, field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}
