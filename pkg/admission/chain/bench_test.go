// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// BenchmarkJudge measures what it costs to find and to ask policies that have
// nothing to object, and to hear them.
func BenchmarkJudge(b *testing.B) {
	for _, load := range []struct{ policies, bindings int }{{10, 1}, {1, 1_000}} {
		b.Run(fmt.Sprintf("%dx%d", load.policies, load.bindings), func(b *testing.B) {
			v, err := offline.New(nil)
			if err != nil {
				b.Fatal(err)
			}
			judging := judging((&policy.Set{}).Edit(nil, silent(load.policies, load.bindings)))
			b.ReportAllocs()
			for b.Loop() {
				got, err := judging.Run(b.Context(), chain.Trial{Request: pod("nginx", "default"), View: v})
				if err != nil || len(got.Evaluations) != 3*load.policies*load.bindings {
					b.Fatal(got, err)
				}
			}
		})
	}
}

// silent returns policies that pass three rules.
func silent(policies, bindings int) []*policy.Unit {
	findings := []verdict.Finding{{Kind: verdict.Pass}, {Kind: verdict.Pass, Index: 1}, {Kind: verdict.Pass, Index: 2}}
	criteria := match.Compile(&admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			},
		}},
	})
	var units []*policy.Unit
	for i := range policies {
		id := policy.ID{Kind: "Toy", Name: fmt.Sprint("p", i)}
		program := programFunc(func(context.Context, policy.Input) []verdict.Finding { return findings })
		units = append(units, &policy.Unit{ID: id, Policy: &policy.Policy{Criteria: criteria, NeedsBinding: true, Program: program}})
		for j := range bindings {
			units = append(units, unbounded(id, fmt.Sprintf("%s-%04d", id.Name, j)))
		}
	}
	return units
}
