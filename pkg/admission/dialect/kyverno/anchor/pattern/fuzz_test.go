// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/pattern"
)

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`"1-5 & !3 | >= 1Gi"`, `"2Gi"`},
		{`{"(a)": [{"=(b)": "x*"}], "X(c)": null, "^(d)": [{}], "<(e)": 1.5}`, `{"a": [{"b": "xy"}], "d": [{}]}`},
		{`{"metadata": {"labels": {"=(b*)": "?"}}}`, `{"metadata": {"labels": {"ba": "x"}}}`},
		{`[[1], null]`, `[[1], ""]`},
		{`"1h!-2h"`, `-0.5e300`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		var tree, value any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(source), &tree) != nil ||
			kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value) != nil {
			return
		}
		compiled, err := pattern.Compile(tree)
		if err != nil {
			return
		}
		treeBefore, valueBefore := runtime.DeepCopyJSONValue(tree), runtime.DeepCopyJSONValue(value)
		again, err := pattern.Compile(tree)
		if err != nil {
			t.Fatal(err)
		}
		matches, inAnchor := compiled.Match(value), compiled.MatchText(value)
		for range 3 {
			if again.Match(value) != matches || again.MatchText(value) != inAnchor {
				t.Fatalf("%s on %s: not the same twice", source, text)
			}
		}
		switch tree.(type) {
		case map[string]any, []any:
			if matches != inAnchor {
				t.Errorf("%s on %s: Match says %v, MatchText %v", source, text, matches, inAnchor)
			}
		default:
			if !compiled.Match(tree) || !compiled.MatchText(tree) {
				t.Errorf("%s does not match itself", source)
			}
		}
		if !cmp.Equal(tree, treeBefore) || !cmp.Equal(value, valueBefore) {
			t.Errorf("%s on %s: the input has changed", source, text)
		}
	})
}
