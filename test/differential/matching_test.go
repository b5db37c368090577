// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// matchResources never has a nil selector: defaulting leaves none, and for one
// that escaped it upstream has another text than our fail-closed matcher.
func (g *generator) matchResources(rules int) *admissionregistrationv1.MatchResources {
	exact, equivalent := admissionregistrationv1.Exact, admissionregistrationv1.Equivalent
	resources := &admissionregistrationv1.MatchResources{
		MatchPolicy:       pick(g, &equivalent, &equivalent, &equivalent, &exact, nil),
		NamespaceSelector: g.selector(),
		ObjectSelector:    g.selector(),
	}
	for range rules {
		resources.ResourceRules = append(resources.ResourceRules, g.rule())
	}
	if g.chance(10) {
		resources.ExcludeResourceRules = append(resources.ExcludeResourceRules, g.rule())
	}
	return resources
}

// rule is mostly about a target of the scenario.
func (g *generator) rule() admissionregistrationv1.NamedRuleWithOperations {
	on := g.target()
	own, sub := on.resource, on.subresource
	if sub != "" {
		own += "/" + sub
	}
	var rule admissionregistrationv1.NamedRuleWithOperations
	if g.chance(2) {
		rule.Operations = []admissionregistrationv1.OperationType{"*"}
		rule.APIGroups, rule.APIVersions, rule.Resources = []string{on.group}, []string{on.version}, []string{own}
		if on.group == "example.com" && g.chance(2) { // another version, to which the object is converted
			rule.APIVersions = []string{pick(g, "v2", "v1", "v1beta1")}
		}
		return rule
	}
	rule.Operations = pick(g, []admissionregistrationv1.OperationType{"*"}, []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE", "CONNECT"},
		[]admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, []admissionregistrationv1.OperationType{"DELETE"},
		several[admissionregistrationv1.OperationType](g, "*", "CREATE", "UPDATE", "DELETE", "CONNECT"))
	rule.APIGroups = pick(g, []string{on.group}, []string{"*"}, []string{on.group}, several(g, "", "apps", "example.com", on.group))
	rule.APIVersions = pick(g, []string{on.version}, []string{"*"}, several(g, "v1", "v2", "v1beta1", on.version))
	rule.Resources = pick(g, []string{own}, []string{own}, []string{"*/*"}, []string{on.resource + "/*"}, []string{on.resource, "*/" + sub},
		[]string{"*"}, several(g, own, "pods", "*/status", "*/scale", "gadgets", "gadgets/status", "deployments/scale"))
	if scope := pick[admissionregistrationv1.ScopeType](g, "*", "-", "*", "-", "Namespaced", "Cluster"); scope != "-" {
		rule.Scope = &scope
	}
	if g.chance(10) {
		rule.ResourceNames = several(g, "a", "prod", "b", "")
	}
	return rule
}

// selector makes at most one mistake, because upstream reports one of several at
// random.
func (g *generator) selector() *metav1.LabelSelector {
	in := func(operator metav1.LabelSelectorOperator, key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	switch g.draw(45) {
	default:
		return &metav1.LabelSelector{}
	case 1, 2:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": pick(g, "prod", "test")}}
	case 3:
		return in(metav1.LabelSelectorOpNotIn, "env", "prod")
	case 4:
		return in(metav1.LabelSelectorOpIn, "env", "prod", "test")
	case 5:
		return in(metav1.LabelSelectorOpExists, pick(g, "team", "app"))
	case 6:
		return in(metav1.LabelSelectorOpDoesNotExist, "team")
	case 7:
		return in(metav1.LabelSelectorOpIn, "kubernetes.io/metadata.name", "prod")
	case 8:
		if g.chance(2) {
			return in("Around", "env", "prod")
		}
		return &metav1.LabelSelector{MatchLabels: map[string]string{"no/label/key": "x"}}
	}
}
