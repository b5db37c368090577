// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// on returns criteria for one resource.
func on(resource string) *match.Criteria {
	return match.Compile(&admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			},
		}},
	})
}

// BenchmarkEdit measures what one write costs, by what is installed.
func BenchmarkEdit(b *testing.B) {
	for _, all := range []int{10, 10_000} {
		var units []*policy.Unit
		for i := range all {
			p := policyUnit(fmt.Sprint("p", i), true)
			p.Policy.Criteria = on(fmt.Sprint("things", i%500))
			units = append(units, p, bindingUnit(fmt.Sprint("b", i), p.ID.Name))
		}
		set := (&policy.Set{}).Edit(nil, units)
		b.Run(fmt.Sprintf("policyInto%d", all), func(b *testing.B) { benchmarkPut(b, set, units[0]) })
		b.Run(fmt.Sprintf("bindingInto%d", all), func(b *testing.B) { benchmarkPut(b, set, units[1]) })
	}
	b.Run("bindingInto10000ofOnePolicy", func(b *testing.B) {
		p := policyUnit("p", true)
		p.Policy.Criteria = on("things")
		units := []*policy.Unit{p}
		for i := range 10_000 {
			units = append(units, bindingUnit(fmt.Sprint("b", i), "p"))
		}
		benchmarkPut(b, (&policy.Set{}).Edit(nil, units), units[1])
	})
}

func benchmarkPut(b *testing.B, set *policy.Set, unit *policy.Unit) {
	put := []*policy.Unit{unit}
	b.ReportAllocs()
	for b.Loop() {
		set.Edit(nil, put)
	}
}
