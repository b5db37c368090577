// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

const (
	// maxLookups bounds the resources that are looked up for one policy. Each rule may
	// name as many as the product of three lists.
	maxLookups = 1000
	// maxOthers bounds the resources that a writer is told are not looked at.
	maxOthers = 5
)

// target is a resource whose existing objects a policy may judge.
type target struct {
	mapping   *meta.RESTMapping
	operation admission.Operation
}

// targetsOf returns the resources that constraints name, in the order of the rules,
// and tells of what else they name. Versions of one resource have the same objects.
//
// When ctx ends it tells of what it has not looked up.
func targetsOf(ctx context.Context, mapper meta.RESTMapper, constraints *admissionregistrationv1.MatchResources) (targets []target, others []string) {
	if constraints == nil {
		return nil, nil
	}
	s := named{mapper: mapper, seen: map[string]bool{}}
	for i := range constraints.ResourceRules {
		s.rule(ctx, &constraints.ResourceRules[i].RuleWithOperations)
	}
	if left := len(s.others) - maxOthers; left > 0 {
		s.others = append(s.others[:maxOthers], fmt.Sprintf("%d more", left))
	}
	if s.late {
		s.others = append(s.others, "what the rules name that was not looked up in time")
	}
	if s.cut {
		s.others = append(s.others, fmt.Sprintf("what the rules name beyond %d resources", maxLookups))
	}
	return s.targets, s.others
}

// named collects what rules name.
type named struct {
	mapper  meta.RESTMapper
	targets []target
	others  []string
	seen    map[string]bool // of others
	lookups int
	cut     bool // by maxLookups
	late    bool
}

// ends says that nothing more is looked up.
func (s *named) ends(ctx context.Context) bool {
	s.late = s.late || ctx.Err() != nil
	return s.late || s.cut
}

func (s *named) rule(ctx context.Context, rule *admissionregistrationv1.RuleWithOperations) {
	operation, ok := operationOf(rule.Operations)
	for _, resource := range rule.Resources {
		name, subresource, _ := strings.Cut(resource, "/")
		if s.ends(ctx) {
			return
		}
		switch {
		case name == "*":
			s.other(resource + " (names no resource)")
		case subresource != "" && subresource != "*":
			s.other(resource + " (a subresource)")
		case !ok:
			s.other(resource + " (only on CONNECT)")
		default:
			s.resource(ctx, name, rule, operation)
		}
	}
}

// operationOf returns the operation with which existing objects are judged: as new
// ones, if the rule is about that.
func operationOf(operations []admissionregistrationv1.OperationType) (admission.Operation, bool) {
	for _, operation := range []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete} {
		if slices.Contains(operations, operation) || slices.Contains(operations, admissionregistrationv1.OperationAll) {
			return admission.Operation(operation), true
		}
	}
	return "", false
}

// resource adds a resource in those groups of the rule that have it, each in the
// first version of the rule that is served. That the others do not have it is no
// news: a rule names all its resources in all its groups.
func (s *named) resource(ctx context.Context, name string, rule *admissionregistrationv1.RuleWithOperations, operation admission.Operation) {
	found := false
	var fault error
	for _, group := range s.groups(name, rule.APIGroups) {
		for _, version := range rule.APIVersions {
			s.lookups++
			s.cut = s.lookups > maxLookups
			if s.ends(ctx) {
				return
			}
			if version == "*" {
				version = ""
			}
			mapping, err := listed(s.mapper, schema.GroupVersionResource{Group: group, Version: version, Resource: name})
			if err == nil {
				found = true
				s.add(target{mapping: mapping, operation: operation})
				break
			}
			fault = err
		}
	}
	switch {
	case found:
	case fault != nil:
		s.other(fault.Error())
	default:
		s.other("the cluster has no " + name)
	}
}

// groups returns those groups in which a rule may name a resource.
func (s *named) groups(resource string, named []string) []string {
	if !slices.Contains(named, "*") {
		return named
	}
	found, err := s.mapper.ResourcesFor(schema.GroupVersionResource{Resource: resource})
	if err != nil {
		return nil
	}
	var groups []string
	for _, one := range found {
		if one.Resource == resource && !slices.Contains(groups, one.Group) {
			groups = append(groups, one.Group)
		}
	}
	return groups
}

func (s *named) add(found target) {
	resource := found.mapping.Resource.GroupResource()
	for i := range s.targets {
		if s.targets[i].mapping.Resource.GroupResource() != resource {
			continue
		}
		if rank(found.operation) < rank(s.targets[i].operation) {
			s.targets[i] = found
		}
		return
	}
	if len(s.targets) == maxForecastTargets {
		s.other(resource.String())
		return
	}
	s.targets = append(s.targets, found)
}

func rank(operation admission.Operation) int {
	return slices.Index([]admission.Operation{admission.Create, admission.Update, admission.Delete}, operation)
}

// other notes once what is not looked at.
func (s *named) other(text string) {
	if !s.seen[text] {
		s.seen[text] = true
		s.others = append(s.others, text)
	}
}
