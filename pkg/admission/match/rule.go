// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

const wildcard = "*"

// rule is one NamedRuleWithOperations. A list that is empty matches nothing,
// except names.
type rule struct {
	operations []string
	groups     []string
	versions   []string
	resources  []resourcePattern
	scope      admissionregistrationv1.ScopeType
	names      []string
}

// resourcePattern is "pods", "pods/log", "pods/*", "*/scale", "*" or "*/*". The
// subresource "*" includes the absent one, and "*" alone means no subresource.
type resourcePattern struct{ resource, subresource string }

func compileRules(named []admissionregistrationv1.NamedRuleWithOperations) []rule {
	rules := make([]rule, 0, len(named))
	for i := range named {
		rules = append(rules, compileRule(&named[i]))
	}
	return rules
}

func compileRule(named *admissionregistrationv1.NamedRuleWithOperations) rule {
	compiled := rule{
		groups:   slices.Clone(named.APIGroups),
		versions: slices.Clone(named.APIVersions),
		scope:    admissionregistrationv1.AllScopes,
		names:    slices.Clone(named.ResourceNames),
	}
	if named.Scope != nil {
		compiled.scope = *named.Scope
	}
	for _, operation := range named.Operations {
		compiled.operations = append(compiled.operations, string(operation))
	}
	for _, pattern := range named.Resources {
		resource, subresource, _ := strings.Cut(pattern, "/")
		compiled.resources = append(compiled.resources, resourcePattern{resource, subresource})
	}
	return compiled
}

// matches says whether the rule applies to the request when it is taken as one
// for resource. Names are not looked at. See Matcher in
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules.
func (r *rule) matches(req *request.Request, resource schema.GroupVersionResource) bool {
	return r.matchesScope(req.Namespace, resource) &&
		listed(r.operations, string(req.Operation)) &&
		listed(r.groups, resource.Group) &&
		listed(r.versions, resource.Version) &&
		r.matchesResource(resource.Resource, req.RequestSubResource)
}

func (r *rule) matchesScope(namespace string, resource schema.GroupVersionResource) bool {
	// The namespace of a request for a Namespace is its own name, and yet it is
	// cluster-scoped.
	namespaced := namespace != metav1.NamespaceNone &&
		resource != schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	switch r.scope {
	case admissionregistrationv1.AllScopes:
		return true
	case admissionregistrationv1.NamespacedScope:
		return namespaced
	case admissionregistrationv1.ClusterScope:
		return !namespaced
	default:
		return false
	}
}

func (r *rule) matchesResource(resource, subresource string) bool {
	for _, pattern := range r.resources {
		if (pattern.resource == wildcard || pattern.resource == resource) &&
			(pattern.subresource == wildcard || pattern.subresource == subresource) {
			return true
		}
	}
	return false
}

// matchesName says whether the rule names the object. A rule without names
// applies to all. The name is empty when the API server is yet to generate it.
func (r *rule) matchesName(name string) bool {
	return len(r.names) == 0 || slices.Contains(r.names, name)
}

func listed(items []string, wanted string) bool {
	for _, item := range items {
		if item == wildcard || item == wanted {
			return true
		}
	}
	return false
}
