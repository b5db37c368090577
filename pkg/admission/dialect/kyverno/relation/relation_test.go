// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package relation_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/relation"
)

func TestOf(t *testing.T) {
	for _, test := range []struct {
		pattern  string
		want     relation.Relation
		from, to string
	}{
		{"", relation.Equal, "", ""},
		{"a", relation.Equal, "", ""},
		{"!", relation.Equal, "", ""},
		{">", relation.Equal, "", ""},
		{"!a", relation.NotEqual, "", ""},
		{">1", relation.MoreThan, "", ""},
		{">=", relation.MoreOrEqual, "", ""},
		{"<=1Gi", relation.LessOrEqual, "", ""},
		{"<1-5", relation.LessThan, "", ""},
		{"1-5", relation.InRange, "1", "5"},
		{"1!-5", relation.OutOfRange, "1", "5"},
		{"-10--8", relation.InRange, "-10", "-8"},
		{"-10!--8", relation.OutOfRange, "-10", "-8"},
		{"+1.5Gi-|2Gi", relation.InRange, "+1.5Gi", "|2Gi"},
		{"1h-2d", relation.InRange, "1h", "2d"},
		{"1.-5", relation.Equal, "", ""},
		{"1-", relation.Equal, "", ""},
		{"-5", relation.Equal, "", ""},
		{"--5", relation.Equal, "", ""},
		{"1-5 ", relation.Equal, "", ""},
		{"1-5-9", relation.Equal, "", ""},
		{"test-5", relation.Equal, "", ""},
		{"1!5", relation.Equal, "", ""},
	} {
		got := relation.Of(test.pattern)
		if got != test.want {
			t.Errorf("%q is %q, want %q", test.pattern, got, test.want)
		}
		if test.from == "" {
			continue
		}
		if from, to, ok := got.Ends(test.pattern); !ok || from != test.from || to != test.to {
			t.Errorf("%q has the ends %q and %q, %v; want %q and %q", test.pattern, from, to, ok, test.from, test.to)
		}
	}
}

func TestHolds(t *testing.T) {
	for by, want := range map[relation.Relation][3]bool{
		relation.Equal:       {false, true, false},
		relation.NotEqual:    {true, false, true},
		relation.MoreThan:    {false, false, true},
		relation.MoreOrEqual: {false, true, true},
		relation.LessThan:    {true, false, false},
		relation.LessOrEqual: {true, true, false},
		relation.InRange:     {},
		relation.OutOfRange:  {},
	} {
		if got := [3]bool{by.Holds(-1), by.Holds(0), by.Holds(1)}; got != want {
			t.Errorf("%q holds for less, equal and more: %v, want %v", by, got, want)
		}
	}
}
