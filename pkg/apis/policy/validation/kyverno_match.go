// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// validateMatches validates what a rule matches and excludes.
func (v *ruleValidator) validateMatches(rule *kyvernov1.Rule, path *field.Path) field.ErrorList {
	matchPath, excludePath := path.Child("match"), path.Child("exclude")
	if apiequality.Semantic.DeepEqual(&rule.Match, &kyvernov1.MatchResources{}) {
		return field.ErrorList{field.Required(matchPath, "say what the rule is for")}
	}
	errs := v.validateFilters(&rule.Match, true, matchPath)
	if rule.Exclude == nil {
		return errs
	}
	errs = append(errs, v.validateFilters(rule.Exclude, false, excludePath)...)
	return append(errs, refuseEmptyRest(&rule.Match, rule.Exclude, excludePath)...)
}

// validateFilters validates match or exclude. A filter of match needs kinds.
func (v *ruleValidator) validateFilters(match *kyvernov1.MatchResources, needsKinds bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(match.Any) > 0 && len(match.All) > 0 {
		errs = append(errs, field.Forbidden(path.Child("all"), "any is given already: write one of them"))
	}
	for i := range match.Any {
		errs = append(errs, v.validateFilter(&match.Any[i], needsKinds, path.Child("any").Index(i))...)
	}
	for i := range match.All {
		errs = append(errs, v.validateFilter(&match.All[i], needsKinds, path.Child("all").Index(i))...)
	}
	if len(match.Any)+len(match.All) == 0 {
		return append(errs, v.validateFilter(&match.ResourceFilter, needsKinds, path)...)
	}
	if !apiequality.Semantic.DeepEqual(&match.ResourceFilter, &kyvernov1.ResourceFilter{}) {
		errs = append(errs, field.Forbidden(path, "resources, subjects, roles and clusterRoles cannot stand beside any or all: move them into a filter of it"))
	}
	return errs
}

func (v *ruleValidator) validateFilter(filter *kyvernov1.ResourceFilter, needsKinds bool, path *field.Path) field.ErrorList {
	resources, resourcesPath := &filter.Resources, path.Child("resources")
	var errs field.ErrorList
	if needsKinds && len(resources.Kinds) == 0 {
		errs = append(errs, field.Required(resourcesPath.Child("kinds"), "name the kinds that the rule is for"))
	}
	errs = append(errs, validateKinds(resources.Kinds, resourcesPath.Child("kinds"))...)
	if resources.Name != "" && len(resources.Names) > 0 {
		errs = append(errs, field.Forbidden(resourcesPath.Child("name"), "names is given, too: move it there"))
	}
	errs = append(errs, refuseVariables(resourcesPath.Child("name"), resources.Name)...)
	errs = append(errs, refuseVariablesOf(resourcesPath.Child("names"), resources.Names)...)
	errs = append(errs, refuseVariablesOf(resourcesPath.Child("namespaces"), resources.Namespaces)...)
	if v.namespaced && len(resources.Namespaces) > 0 {
		errs = append(errs, field.Forbidden(resourcesPath.Child("namespaces"), "a Policy is for its own namespace: remove it, or write a ClusterPolicy"))
	}
	for _, key := range slices.Sorted(maps.Keys(resources.Annotations)) {
		errs = append(errs, refuseVariables(resourcesPath.Child("annotations").Key(key), key, resources.Annotations[key])...)
	}
	errs = append(errs, validateWildcardSelector(resources.Selector, resourcesPath.Child("selector"))...)
	if selector := resources.Selector; selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Required(resourcesPath.Child("selector"), "name labels, or remove it"))
	}
	errs = append(errs, validateWildcardSelector(resources.NamespaceSelector, resourcesPath.Child("namespaceSelector"))...)
	for i, operation := range resources.Operations {
		if !slices.Contains(operations(), operation) {
			errs = append(errs, field.NotSupported(resourcesPath.Child("operations").Index(i), operation, operations()))
		}
	}
	return append(errs, validateUsers(filter, path)...)
}

// validateWildcardSelector does not look at labels with wildcards, which Kyverno
// matches against the labels that there are. Other mistakes are refused, which Kyverno
// takes beside them: the selector would match nothing, and nobody would know.
func validateWildcardSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		keyPath, value := path.Child("matchLabels").Key(key), selector.MatchLabels[key]
		if hasVariable(key) || hasVariable(value) {
			errs = append(errs, refuseVariables(keyPath, key, value)...)
			continue
		}
		if !hasWildcard(key) {
			errs = append(errs, metav1validation.ValidateLabelName(key, keyPath)...)
		}
		if hasWildcard(value) {
			continue
		}
		for _, detail := range utilvalidation.IsValidLabelValue(value) {
			errs = append(errs, field.Invalid(keyPath, value, detail))
		}
	}
	wildcards := selectsByWildcard(selector) // Kyverno takes them in matchExpressions then, which match nothing
	for i, requirement := range selector.MatchExpressions {
		requirementPath := path.Child("matchExpressions").Index(i)
		for j, value := range requirement.Values {
			if hasWildcard(value) && !wildcards {
				errs = append(errs, field.Invalid(requirementPath.Child("values").Index(j), value, "only matchLabels can have wildcards"))
			}
		}
		if slices.ContainsFunc(requirement.Values, hasWildcard) {
			continue
		}
		errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(requirement, metav1validation.LabelSelectorValidationOptions{}, requirementPath)...)
	}
	return errs
}

// selectsByWildcard is LabelSelectorContainsWildcard of Kyverno's pkg/utils/kube.
func selectsByWildcard(selector *metav1.LabelSelector) bool {
	for key, value := range selector.MatchLabels {
		if hasWildcard(key) || hasWildcard(value) {
			return true
		}
	}
	return false
}

func hasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }

func validateUsers(filter *kyvernov1.ResourceFilter, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, role := range filter.Roles {
		rolePath := path.Child("roles").Index(i)
		if namespace, name, _ := strings.Cut(role, ":"); namespace == "" || name == "" {
			errs = append(errs, field.Invalid(rolePath, role, "must have the form namespace:name"))
		}
		errs = append(errs, refuseVariables(rolePath, role)...)
	}
	errs = append(errs, refuseVariablesOf(path.Child("clusterRoles"), filter.ClusterRoles)...)
	for i := range filter.Subjects {
		errs = append(errs, validateSubject(&filter.Subjects[i], path.Child("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(subject *rbacv1.Subject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	kinds := []string{rbacv1.GroupKind, rbacv1.ServiceAccountKind, rbacv1.UserKind}
	if subject.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), fmt.Sprintf("one of %s", strings.Join(kinds, ", "))))
	} else if !slices.Contains(kinds, subject.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind, kinds))
	}
	if subject.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "name the subject"))
	}
	if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "a ServiceAccount has a namespace"))
	}
	errs = append(errs, refuseVariables(path.Child("name"), subject.Name)...)
	return append(errs, refuseVariables(path.Child("namespace"), subject.Namespace)...)
}

func refuseVariablesOf(path *field.Path, texts []string) field.ErrorList {
	var errs field.ErrorList
	for i, text := range texts {
		errs = append(errs, refuseVariables(path.Index(i), text)...)
	}
	return errs
}

// refuseVariables refuses texts with variables: what a rule matches is prepared before
// there is a request.
func refuseVariables(path *field.Path, texts ...string) field.ErrorList {
	for _, text := range texts {
		if hasVariable(text) {
			return field.ErrorList{field.Invalid(path, text, "match and exclude cannot have variables: use preconditions")}
		}
	}
	return nil
}

// refuseEmptyRest refuses an exclude that says the same as match, as Kyverno's
// ValidateMatchExcludeConflict does: the rule would not be for anything.
func refuseEmptyRest(match, exclude *kyvernov1.MatchResources, path *field.Path) field.ErrorList {
	const detail = "match says the same, so the rule would not be for anything: narrow one of them"
	switch {
	case len(match.All) > 0 || len(exclude.All) > 0:
		return nil
	case len(match.Any) == 0 && len(exclude.Any) == 0:
		if apiequality.Semantic.DeepEqual(&match.ResourceFilter, &exclude.ResourceFilter) {
			return field.ErrorList{field.Invalid(path, field.OmitValueType{}, detail)}
		}
		return nil
	}
	matched := sets.New[string]()
	for i := range match.Any {
		matched.Insert(textOf(&match.Any[i]))
	}
	var errs field.ErrorList
	for i := range exclude.Any {
		if matched.Has(textOf(&exclude.Any[i])) {
			errs = append(errs, field.Invalid(path.Child("any").Index(i), field.OmitValueType{}, detail))
		}
	}
	return errs
}

// textOf is the same for filters that say the same.
func textOf(filter *kyvernov1.ResourceFilter) string {
	encoded, err := json.Marshal(filter)
	if err != nil {
		return fmt.Sprintf("%p", filter) // it is like no other
	}
	return string(encoded)
}
