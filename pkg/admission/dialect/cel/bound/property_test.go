// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/cel-go/common/types/ref"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// outcome is what became of one random expression.
type outcome struct {
	compiled, bounded, errored bool
}

// TestCostIsAtLeastTheTrackedCost runs random expressions over random data.
func TestCostIsAtLeastTheTrackedCost(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 400
	}
	random := rand.New(rand.NewPCG(1, 2))
	compiled, bounded, evaluated := 0, 0, 0
	for range rounds {
		entropy := make([]byte, 3000)
		for i := range entropy {
			entropy[i] = byte(random.Uint32())
		}
		o := try(t, entropy)
		if o.compiled {
			compiled++
		}
		if o.bounded {
			bounded++
			if !o.errored {
				evaluated++
			}
		}
	}
	t.Logf("%d expressions, %d of them compiled, %d of those bounded, %d of those without an error", rounds, compiled, bounded, evaluated)
	if bounded < rounds/10 || evaluated < rounds/40 {
		t.Error("too few expressions were compared for the test to mean something")
	}
}

// FuzzCost lets the fuzzer make the decisions of the generator.
func FuzzCost(f *testing.F) {
	f.Add([]byte("\x07\x06\x05\x04\x03\x02\x01\x00"))
	f.Fuzz(func(t *testing.T, entropy []byte) {
		try(t, entropy)
	})
}

// try compares the bound of one random expression, and those of two variables that
// it may read, with what evaluating it costs.
func try(t *testing.T, entropy []byte) outcome {
	t.Helper()
	c := &choices{bytes: entropy[len(entropy)/2:]}
	source := &choices{bytes: entropy[:len(entropy)/2]}
	data := map[string]any{}
	var measured []any
	for _, name := range []string{"object", "oldObject", "request", "params"} {
		object := source.object(4)
		data[name] = object
		measured = append(measured, object)
	}
	sizes := bound.Measure(measured...)
	variables, known := map[string]ref.Val{}, map[string]*bound.Expression{}
	data["variables"] = variables
	for _, name := range []string{"v", "w"} {
		e, result, o := run(t, c.any(3), known, data, sizes)
		if o.compiled && !o.errored {
			known[name], variables[name] = e, result
		}
	}
	_, _, o := run(t, c.of(c.boolean(4), c.text(4), c.list(4), c.any(5), c.boolean(3)), known, data, sizes)
	return o
}

// run evaluates source, and checks that it costs no more than its bound.
func run(t *testing.T, source string, known map[string]*bound.Expression, data map[string]any, sizes bound.Sizes) (*bound.Expression, ref.Val, outcome) {
	t.Helper()
	ast, program, err := planned(t, source)
	if err != nil {
		return nil, nil, outcome{}
	}
	e := bound.Analyze(ast.NativeRep(), known)
	limit, ok := e.Cost(sizes)
	result, cost, err := evaluate(t, program, data)
	if ok && cost > limit {
		t.Errorf("%s\ncosts %d, more than the bound %d, on %v", source, cost, limit, data)
	}
	return e, result, outcome{compiled: true, bounded: ok, errored: err != nil}
}
