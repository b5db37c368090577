// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// explained returns the number of the first evaluations of one request that have
// values; program returns what judges in each of them. All others must say how
// long they took, and nothing else.
func explained(t *testing.T, req *request.Request, evaluations int, program func(i int) policy.Program) int {
	t.Helper()
	ask := asking{request: req, explain: mayReadAll(), view: emptyCluster(t)}
	first := -1
	for i := range evaluations {
		trace := ask.with(t, program(i))[0].Trace
		switch {
		case trace == nil || trace.Took <= 0:
			t.Fatalf("evaluation %d: %+v, want the time that it took", i, trace)
		case first < 0 && trace.Values == nil:
			first = i
		case first >= 0 && (trace.Values != nil || trace.Cost != 0):
			t.Fatalf("evaluation %d: %+v, though evaluation %d had no room", i, trace, first)
		}
	}
	if first < 0 {
		return evaluations
	}
	return first
}

// costly returns an expression of some cost in two lists.
func costly() string {
	list := "[" + strings.Repeat("1,", 99) + "1]"
	return list + ".all(a, " + list + ".all(b, a + b + object.spec.replicas > 0))"
}

func TestExplainIsPaidFor(t *testing.T) {
	dialect := cel.New()
	judging := func(expressions ...string) policy.Program {
		var rules []admissionregistrationv1.Validation
		for _, expression := range expressions {
			rules = append(rules, admissionregistrationv1.Validation{Expression: expression})
		}
		return compiled(t, dialect, withVariables(rules...)).Policy.Program
	}
	many := func(n int, expression string) func(int) policy.Program {
		programs := make([]policy.Program, n)
		for i := range programs {
			programs[i] = judging(fmt.Sprintf("%s || object.spec.replicas > %d", expression, i))
		}
		return func(i int) policy.Program { return programs[i%n] }
	}
	for name, test := range map[string]struct {
		programs    func(int) policy.Program
		least, most int
	}{
		"cheap, many times":      {many(1, "object.spec.paused == true"), 1_000, 1_000},
		"costly":                 {many(1, costly()), 5, 14},
		"asks the authorizer":    {many(1, "authorizer.path('/healthz').check('get').allowed()"), 1_000, 1_000},
		"many policies":          {many(203, "object.spec.paused == true"), 50, 200},
		"policies that are long": {many(40, strings.Repeat("object.spec.paused == true || ", 100)+"false"), 5, 30},
	} {
		t.Run(name, func(t *testing.T) {
			var counts []int
			for range 3 { // the tracers of the last one are ready
				counts = append(counts, explained(t, web(), test.most+3, test.programs))
			}
			if counts[0] < test.least || counts[0] > test.most {
				t.Errorf("%d evaluations have values, want %d to %d", counts[0], test.least, test.most)
			}
			for _, again := range counts {
				if again != counts[0] {
					t.Errorf("evaluations with values: %v, want always as many", counts)
				}
			}
		})
	}
}

// TestExplainPaysForLooking: a value that is shown in few bytes may need a long
// look, which has a bound too.
func TestExplainPaysForLooking(t *testing.T) {
	nested := map[string]any{}
	for range 5 {
		next := map[string]any{"a0": nested, "a1": nested}
		for i := range 990 {
			next[fmt.Sprintf("k%03d", i)] = int64(1)
		}
		nested = next
	}
	fields := web().Fields
	fields.Object = fields.Object.DeepCopy()
	fields.Object.Object["nested"] = nested
	fields.Object.Object["long"] = map[string]any{strings.Repeat("x", 1<<20): strings.Repeat("y", 1<<20)}
	for expression, want := range map[string][2]int{"object.nested != 1": {1, 30}, "object.long != 1": {500, 500}} {
		program := compiled(t, cel.New(), validating(expression)).Policy.Program
		n := explained(t, request.New(fields), max(want[1], 50), func(int) policy.Program { return program })
		if n < want[0] || n > want[1] {
			t.Errorf("%s: %d evaluations have values, want %d to %d", expression, n, want[0], want[1])
		}
	}
}

// TestExplainLeavesLargePoliciesOut: what is too large has no values, and takes
// nothing from the others.
func TestExplainLeavesLargePoliciesOut(t *testing.T) {
	var many []admissionregistrationv1.Variable
	for i := range 257 {
		many = append(many, admissionregistrationv1.Variable{Name: fmt.Sprint("v", i), Expression: "1"})
	}
	rule := []admissionregistrationv1.Validation{{Expression: "object.spec.replicas == 6"}}
	for name, test := range map[string]struct {
		spec   spec
		values string
	}{
		"as many variables as may be":   {spec{Variables: many[:256], Validations: rule}, `{"object.spec.replicas":6}`},
		"too many variables":            {spec{Variables: many, Validations: rule}, `null`},
		"expressions that are too long": {spec{Validations: append(rule, admissionregistrationv1.Validation{Expression: "'" + strings.Repeat("x", 64<<10) + "' != ''"})}, `null`},
	} {
		findings := asking{policy: stored(test.spec), request: web(), explain: mayReadAll()}.findings(t)
		if got := marshalled(t, findings[0].Trace.Values); got != test.values {
			t.Errorf("%s: got %s, want %s", name, got, test.values)
		}
		if findings[0].Kind != verdict.Pass || findings[0].Trace.Took <= 0 {
			t.Errorf("%s: got %+v", name, findings[0])
		}
	}
}
