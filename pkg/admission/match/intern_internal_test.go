// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"reflect"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInternSelectors: selectors of different policies are one when they select the
// same by the same terms, in whatever order and for whatever they are used.
func TestInternSelectors(t *testing.T) {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	selecting := func(terms ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: terms}
	}
	var interner Interner
	compiled := func(namespaces, objects *metav1.LabelSelector) *Criteria {
		c := Compile(&admissionregistrationv1.MatchResources{NamespaceSelector: namespaces, ObjectSelector: objects})
		before := *c
		shared := interner.Criteria(c)
		if c.namespaces != before.namespaces || c.objects != before.objects {
			t.Error("the criteria were changed")
		}
		return shared
	}
	ab := compiled(selecting(in("app", "a", "b"), in("env", "prod")), &metav1.LabelSelector{})
	again := compiled(selecting(in("env", "prod"), in("app", "b", "a")), selecting(in("app", "a", "b"), in("env", "prod")))
	other := compiled(selecting(in("app", "a", "b")), nil)
	if ab.namespaces.parsed != again.namespaces.parsed || ab.namespaces.parsed != again.objects.parsed {
		t.Error("equal selectors are not one")
	}
	if ab.namespaces.parsed == other.namespaces.parsed {
		t.Error("different selectors are one")
	}
	if ab.objects.parsed != nil || other.objects.err == nil {
		t.Error("a selector of everything, or a missing one, has become another")
	}
	if interner.Criteria(nil) != nil {
		t.Error("no criteria have become some")
	}
}

// TestInternCriteria: criteria are one when they are equal in everything.
func TestInternCriteria(t *testing.T) {
	exact, equivalent, cluster := admissionregistrationv1.Exact, admissionregistrationv1.Equivalent, admissionregistrationv1.ClusterScope
	named := func(group, version, resource, operation string, names ...string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{ResourceNames: names, RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(operation)},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	usual := func() *admissionregistrationv1.MatchResources {
		return &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: &equivalent,
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{named("apps", "v1", "deployments", "CREATE")},
		}
	}
	rule := func(other admissionregistrationv1.NamedRuleWithOperations) func(*admissionregistrationv1.MatchResources) {
		return func(m *admissionregistrationv1.MatchResources) { m.ResourceRules[0] = other }
	}
	selects := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	var interner Interner
	known := map[*Criteria]string{}
	for name, change := range map[string]func(*admissionregistrationv1.MatchResources){
		"usual":      func(*admissionregistrationv1.MatchResources) {},
		"exact":      func(m *admissionregistrationv1.MatchResources) { m.MatchPolicy = &exact },
		"namespaces": func(m *admissionregistrationv1.MatchResources) { m.NamespaceSelector = selects },
		"objects":    func(m *admissionregistrationv1.MatchResources) { m.ObjectSelector = selects },
		"no rules":   func(m *admissionregistrationv1.MatchResources) { m.ResourceRules = nil },
		"excludes": func(m *admissionregistrationv1.MatchResources) {
			m.ExcludeResourceRules, m.ResourceRules = m.ResourceRules, nil
		},
		"scope":        func(m *admissionregistrationv1.MatchResources) { m.ResourceRules[0].Scope = &cluster },
		"group":        rule(named("batch", "v1", "deployments", "CREATE")),
		"version":      rule(named("apps", "v2", "deployments", "CREATE")),
		"resource":     rule(named("apps", "v1", "daemonsets", "CREATE")),
		"subresource":  rule(named("apps", "v1", "deployments/scale", "CREATE")),
		"operation":    rule(named("apps", "v1", "deployments", "UPDATE")),
		"name":         rule(named("apps", "v1", "deployments", "CREATE", "a")),
		"quoted names": rule(named("apps", "v1", "deployments", "CREATE", `a" "b`)),
		"two names":    rule(named("apps", "v1", "deployments", "CREATE", "a", "b")),
	} {
		resources, again := usual(), usual()
		change(resources)
		change(again)
		c := interner.Criteria(Compile(resources))
		if !reflect.DeepEqual(c, Compile(resources)) {
			t.Errorf("%s: the criteria have become others", name)
		}
		if interner.Criteria(Compile(again)) != c {
			t.Errorf("%s: equal criteria are not one", name)
		}
		if other, ok := known[c]; ok {
			t.Errorf("%q and %q are one", name, other)
		}
		known[c] = name
	}
	broken := Compile(&admissionregistrationv1.MatchResources{})
	if got := interner.Criteria(broken); got.namespaces.err == nil || got.objects.err == nil {
		t.Error("the errors of criteria were lost")
	}
	if got := interner.Criteria(&Criteria{}); got.compiled {
		t.Error("criteria that were not compiled have become some")
	}
}
