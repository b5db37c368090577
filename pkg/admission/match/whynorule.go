// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// aspect is one thing that a rule asks for, in the order in which an explanation
// looks: the rule that fails last is the nearest, and its last failure is what a
// reader wants to know.
type aspect uint8

const (
	byResource aspect = iota // group, version, resource and subresource
	byScope
	byOperation
	byName
)

// fails returns the first aspect in which the rule does not apply to the request
// when it is taken as one for resource.
func (r *rule) fails(req *request.Request, resource schema.GroupVersionResource) aspect {
	switch {
	case !listed(r.groups, resource.Group), !listed(r.versions, resource.Version),
		!r.matchesResource(resource.Resource, req.RequestSubResource):
		return byResource
	case !r.matchesScope(req.Namespace, resource):
		return byScope
	case !listed(r.operations, string(req.Operation)):
		return byOperation
	}
	return byName
}

// whyNoRule says in which aspect the nearest rules do not apply. It is asked only
// when none does.
func (c *Criteria) whyNoRule(s *Subject) string {
	req := s.request
	nearest, rules := c.nearest(s)
	var wanted enumeration
	switch nearest {
	case byScope:
		return whyNotScope(req, rules)
	case byOperation:
		for _, r := range rules {
			wanted.addAll(r.operations)
		}
		return fmt.Sprintf("operation %s is none of %s", seen(string(req.Operation)), &wanted)
	case byName:
		for _, r := range rules {
			wanted.addAll(r.names)
		}
		return fmt.Sprintf("name %s is none of the resourceNames %s", seen(req.Name), &wanted)
	case byResource:
	}
	for _, r := range rules {
		r.addResources(&wanted)
	}
	return fmt.Sprintf("resource %s is none of %s", resourceText(req.RequestResource, req.RequestSubResource), &wanted) + c.leftOut(s)
}

// nearest returns the rules that fail last, and in what.
func (c *Criteria) nearest(s *Subject) (aspect, []*rule) {
	req := s.request
	resources := []schema.GroupVersionResource{req.RequestResource}
	if c.equivalent {
		for _, other := range s.equivalents() {
			if other.Resource != req.RequestResource {
				resources = append(resources, other.Resource)
			}
		}
	}
	nearest := byResource
	var rules []*rule
	for i := range c.rules {
		last := byResource
		for _, resource := range resources {
			last = max(last, c.rules[i].fails(req, resource))
		}
		if last > nearest {
			nearest, rules = last, nil
		}
		if last == nearest {
			rules = append(rules, &c.rules[i])
		}
	}
	return nearest, rules
}

// leftOut names the equivalent resource under which a rule would match if the
// matchPolicy were Equivalent.
func (c *Criteria) leftOut(s *Subject) string {
	if c.equivalent {
		return ""
	}
	req := s.request
	for _, other := range s.equivalents() {
		for i := range c.rules {
			if c.rules[i].matches(req, other.Resource) && c.rules[i].matchesName(req.Name) {
				return fmt.Sprintf("; the matchPolicy Exact leaves out that it is also served as %s", resourceText(other.Resource, req.RequestSubResource))
			}
		}
	}
	return ""
}

func whyNotScope(req *request.Request, rules []*rule) string {
	var wanted enumeration
	for _, r := range rules {
		if wanted.full() {
			break
		}
		wanted.add(string(r.scope))
	}
	is := admissionregistrationv1.NamespacedScope
	if (&rule{scope: admissionregistrationv1.ClusterScope}).matchesScope(req.Namespace, req.RequestResource) {
		is = admissionregistrationv1.ClusterScope
	}
	return fmt.Sprintf("scope %s of %s is not %s", is, resourceText(req.RequestResource, req.RequestSubResource), &wanted)
}

// addResources adds what the rule asks for in the form of resourceText.
func (r *rule) addResources(wanted *enumeration) {
	for _, group := range r.groups {
		for _, version := range r.versions {
			for _, pattern := range r.resources {
				if wanted.full() {
					return
				}
				resource := schema.GroupVersionResource{Group: group, Version: version, Resource: pattern.resource}
				wanted.add(resourceText(resource, pattern.subresource))
			}
		}
	}
}

// resourceText returns for example "deployments/scale (apps/v1)".
func resourceText(resource schema.GroupVersionResource, subresource string) string {
	name := resource.Resource
	if subresource != "" {
		name += "/" + subresource
	}
	return fmt.Sprintf("%s (%s)", seen(name), seen(resource.GroupVersion().String()))
}
