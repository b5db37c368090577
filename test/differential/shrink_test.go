// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"context"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxTries bounds how long a pair is made smaller.
const maxTries = 600

// shrink leaves out of a pair what the difference does not need.
func (c *comparison) shrink(ctx context.Context, s *scenario, q *question, more more) (*scenario, *question) {
	if c.fresh(ctx, s, q, more) == "" {
		return s, q
	}
	tries := maxTries
	for {
		smaller := false
		for _, cut := range cuts(s, q) {
			if tries--; tries < 0 {
				return s, q
			}
			cutScenario, cutQuestion := cut()
			if c.fresh(ctx, cutScenario, cutQuestion, more) != "" {
				s, q, smaller = cutScenario, cutQuestion, true
				break
			}
		}
		if !smaller {
			return s, q
		}
	}
}

type cut func() (*scenario, *question)

// cuts are the ways to leave one thing out, the large ones first.
func cuts(s *scenario, q *question) []cut {
	var all []cut
	for i := range s.policies {
		all = append(all, func() (*scenario, *question) {
			c := s.copy()
			c.policies = slices.Delete(c.policies, i, i+1)
			return c, q
		})
	}
	for i := range s.bindings {
		all = append(all, func() (*scenario, *question) {
			c := s.copy()
			c.bindings = slices.Delete(c.bindings, i, i+1)
			return c, q
		})
	}
	for i := range s.policies {
		for _, edit := range policyEdits(&s.policies[i].Spec) {
			all = append(all, func() (*scenario, *question) {
				c := s.copy()
				edit(&c.policies[i].Spec)
				return c, q
			})
		}
	}
	for i := range s.bindings {
		for _, edit := range bindingEdits(&s.bindings[i].Spec) {
			all = append(all, func() (*scenario, *question) {
				c := s.copy()
				edit(&c.bindings[i].Spec)
				return c, q
			})
		}
	}
	for _, edit := range questionEdits(q) {
		all = append(all, func() (*scenario, *question) {
			c := q.copy()
			edit(c)
			return s, c
		})
	}
	return all
}

func policyEdits(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) []func(*admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	type edit = func(*admissionregistrationv1.ValidatingAdmissionPolicySpec)
	var edits []edit
	for i := range spec.Validations {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.Validations = slices.Delete(s.Validations, i, i+1)
		})
		if spec.Validations[i].MessageExpression != "" {
			edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.Validations[i].MessageExpression = ""
			})
		}
	}
	for i := range spec.MatchConditions {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.MatchConditions = slices.Delete(s.MatchConditions, i, i+1)
		})
	}
	for i := range spec.AuditAnnotations {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.AuditAnnotations = slices.Delete(s.AuditAnnotations, i, i+1)
		})
	}
	for i := range spec.Variables {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.Variables = slices.Delete(s.Variables, i, i+1)
		})
	}
	if spec.ParamKind != nil {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) { s.ParamKind = nil })
	}
	for i := range spec.MatchConstraints.ResourceRules[1:] {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules = slices.Delete(s.MatchConstraints.ResourceRules, i, i+1)
		})
	}
	if len(spec.MatchConstraints.ExcludeResourceRules) > 0 {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.ExcludeResourceRules = nil
		})
	}
	return edits
}

func bindingEdits(spec *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) []func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
	var edits []func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec)
	if spec.MatchResources != nil {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) { s.MatchResources = nil })
	}
	if spec.ParamRef != nil {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) { s.ParamRef = nil })
	}
	if len(spec.ValidationActions) > 1 {
		edits = append(edits, func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
			s.ValidationActions = s.ValidationActions[:1]
		})
	}
	return edits
}

func questionEdits(q *question) []func(*question) {
	var edits []func(*question)
	if q.ForwardedAs != "" {
		edits = append(edits, func(q *question) { q.ForwardedAs = "" })
	}
	if q.Options != nil {
		edits = append(edits, func(q *question) { q.Options = nil })
	}
	for _, of := range []func(*question) *unstructured.Unstructured{
		func(q *question) *unstructured.Unstructured { return q.Object },
		func(q *question) *unstructured.Unstructured { return q.OldObject },
	} {
		if of(q) == nil {
			continue
		}
		for _, part := range []string{"spec", "metadata"} {
			fields, _, _ := unstructured.NestedMap(of(q).Object, part)
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				edits = append(edits, func(q *question) { unstructured.RemoveNestedField(of(q).Object, part, name) })
			}
		}
	}
	return edits
}

func (s *scenario) copy() *scenario {
	c := &scenario{}
	for _, policy := range s.policies {
		c.policies = append(c.policies, policy.DeepCopy())
	}
	for _, binding := range s.bindings {
		c.bindings = append(c.bindings, binding.DeepCopy())
	}
	return c
}

func (q *question) copy() *question {
	c := *q
	if q.Object != nil {
		c.Object = q.Object.DeepCopy()
	}
	if q.OldObject != nil {
		c.OldObject = q.OldObject.DeepCopy()
	}
	return &c
}
