// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// kindsPerRule is maxTypesToCheck of upstream's type checker: a rule that has
	// named so many kinds ends the search in all rules.
	kindsPerRule = 10
	// maxLookups bounds the resources that are looked up for one policy. Each rule
	// may name as many as the product of three lists.
	maxLookups = 10_000
)

// kindsOf returns the kinds that rules name, sorted, as typesToCheck of upstream's
// type checker does: it passes over rules with a wildcard in a group or version,
// resources with a wildcard, subresources, and resources that nobody serves. It
// reports whether all resources were looked up within maxLookups.
func kindsOf(mapper meta.RESTMapper, constraints *admissionregistrationv1.MatchResources) (kinds []schema.GroupVersionKind, complete bool) {
	if constraints == nil {
		return nil, true
	}
	s := search{mapper: mapper, found: sets.New[schema.GroupVersionKind]()}
	for i := range constraints.ResourceRules {
		if more := s.rule(&constraints.ResourceRules[i].Rule); !more {
			break
		}
	}
	kinds = s.found.UnsortedList()
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds, !s.cut
}

// search collects the kinds of rules.
type search struct {
	mapper  meta.RESTMapper
	found   sets.Set[schema.GroupVersionKind]
	lookups int
	cut     bool
}

// rule collects the kinds of one rule, and reports whether to go on with the next.
func (s *search) rule(rule *admissionregistrationv1.Rule) (more bool) {
	count := 0
	for resource := range resourcesOf(rule) {
		if s.lookups == maxLookups {
			s.cut = true
			return false
		}
		s.lookups++
		kinds, err := s.mapper.KindsFor(resource)
		if err != nil {
			continue // it is not served, which is no fault of an expression
		}
		for _, kind := range kinds {
			s.found.Insert(kind)
			if count++; count == kindsPerRule {
				return false
			}
		}
	}
	return true
}

// resourcesOf yields the resources that a rule names, in their order by group,
// version and name.
func resourcesOf(rule *admissionregistrationv1.Rule) iter.Seq[schema.GroupVersionResource] {
	return func(yield func(schema.GroupVersionResource) bool) {
		wild := func(name string) bool { return strings.Contains(name, "*") }
		if slices.ContainsFunc(rule.APIGroups, wild) || slices.ContainsFunc(rule.APIVersions, wild) {
			return
		}
		resources := slices.DeleteFunc(slices.Sorted(slices.Values(rule.Resources)), func(name string) bool {
			return strings.ContainsAny(name, "*/")
		})
		for _, group := range slices.Sorted(slices.Values(rule.APIGroups)) {
			for _, version := range slices.Sorted(slices.Values(rule.APIVersions)) {
				for _, resource := range resources {
					if !yield(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}) {
						return
					}
				}
			}
		}
	}
}

// paramKind returns the kind of the params, the empty one when there is none or it
// cannot be read: params are then of any type.
func paramKind(policy *admissionregistrationv1.ValidatingAdmissionPolicySpec) schema.GroupVersionKind {
	if policy.ParamKind == nil {
		return schema.GroupVersionKind{}
	}
	version, err := schema.ParseGroupVersion(policy.ParamKind.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return version.WithKind(policy.ParamKind.Kind)
}
