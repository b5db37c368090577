// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/syntax"
)

func TestParseKey(t *testing.T) {
	for _, test := range []struct {
		source string
		anchor syntax.Anchor
		key    string
	}{
		{"a", syntax.None, "a"},
		{"", syntax.None, ""},
		{" ", syntax.None, " "},
		{"(a)", syntax.Condition, "a"},
		{"<(a)", syntax.Global, "a"},
		{"+(a)", syntax.Addition, "a"},
		{"=(a)", syntax.Equality, "a"},
		{"X(a)", syntax.Negation, "a"},
		{"^(a)", syntax.Existence, "a"},
		{" +(a b) ", syntax.Addition, "a b"},
		{"( a )", syntax.Condition, " a "},
		{"((a))", syntax.Condition, "(a)"},
		{"(a)(b)", syntax.Condition, "a)(b"},
		{"()", syntax.None, "()"},
		{"(", syntax.None, "("},
		{")(", syntax.None, ")("},
		{"(a", syntax.None, "(a"},
		{"(a)b", syntax.None, "(a)b"},
		{"x(a)", syntax.None, "x(a)"},
		{"++(a)", syntax.None, "++(a)"},
		{"+ (a)", syntax.None, "+ (a)"},
		{"(a\nb)", syntax.None, "(a\nb)"},
	} {
		if anchor, key := syntax.ParseKey(test.source); anchor != test.anchor || key != test.key {
			t.Errorf("%q is %d %q, want %d %q", test.source, anchor, key, test.anchor, test.key)
		}
	}
}
