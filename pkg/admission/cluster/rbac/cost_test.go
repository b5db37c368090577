// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// many is a source where each of many users and groups has a binding of its own.
func many(t testing.TB, bindings int) source {
	var text strings.Builder
	text.WriteString(clusterRole("r", getPods))
	for i := range bindings {
		text.WriteString(clusterRoleBinding(fmt.Sprintf("b%05d", i), "r", fmt.Sprintf("u%d", i)))
		text.WriteString(roleBinding("blue", fmt.Sprintf("b%05d", i), fmt.Sprintf("roleRef: {kind: Role, name: none}, subjects: [{kind: Group, name: g%d}]", i)))
	}
	return sourceOf(t, text.String())
}

// TestCostOfQuestion holds that a question costs what concerns its user, and not
// what is in the cluster.
func TestCostOfQuestion(t *testing.T) {
	cost := func(bindings int) float64 {
		evaluator := rbac.New(many(t, bindings))
		asked := mayGetPods("u7", "g3", "g4")
		asked.Verb = "delete"
		return testing.AllocsPerRun(100, func() {
			if decision, _, err := evaluator.Authorize(t.Context(), asked); decision != authorizer.DecisionNoOpinion || err != nil {
				t.Fatal(decision, err)
			}
		})
	}
	// Pools are emptied at random, by the race detector above all; one allocation a binding
	// would be 1,990 more.
	if few, all := cost(10), cost(2_000); all > few+5 {
		t.Errorf("got %v allocations with 10 bindings and %v with 2,000, want the same", few, all)
	}
}

func BenchmarkAuthorize(b *testing.B) {
	for _, bindings := range []int{10, 10_000} {
		evaluator := rbac.New(many(b, bindings))
		asked := mayGetPods("u7", "g3", "system:authenticated")
		asked.Verb = "delete"
		if _, _, err := evaluator.Authorize(b.Context(), asked); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(bindings), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = evaluator.Authorize(b.Context(), asked)
			}
		})
	}
}

// BenchmarkRead is the cost of the first question.
func BenchmarkRead(b *testing.B) {
	objects := many(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := rbac.New(objects).Authorize(b.Context(), mayGetPods("u")); err != nil {
			b.Fatal(err)
		}
	}
}
