// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern_test

import "testing"

type match struct {
	pattern, value string
	want           bool
}

func check(t *testing.T, tests []match) {
	t.Helper()
	for _, test := range tests {
		compiled, value := compile(t, test.pattern), decode(t, test.value)
		if got := compiled.Match(value); got != test.want {
			t.Errorf("%s on %s: %v", test.pattern, test.value, got)
		}
		if got := compiled.MatchText(value); got != test.want {
			t.Errorf("%s on %s in an anchor: %v", test.pattern, test.value, got)
		}
	}
}

func TestObjects(t *testing.T) {
	check(t, []match{
		{`{}`, `{}`, true},
		{`{}`, `{"a": 1}`, true},
		{`{}`, `null`, false},
		{`{}`, `[]`, false},
		{`{"a": 1}`, `{"a": 1, "b": 2}`, true},
		{`{"a": 1}`, `{"a": 2}`, false},
		{`{"a": 1}`, `{}`, false},
		{`{"a": {"b": ">0"}}`, `{"a": {"b": 1}}`, true},
		{`{"a": {"b": ">0"}}`, `{"a": {}}`, false},
		{`{"a": {}}`, `{}`, false},
		{`{"a": null}`, `{}`, true},
		{`{"a": null}`, `{"a": ""}`, true},
		{`{"a": null}`, `{"a": {}}`, false},
		// An absent key is zero, and no text.
		{`{"a": "<5"}`, `{}`, true},
		{`{"a": "!b"}`, `{}`, false},
		// Any value but null is one.
		{`{"a": "*"}`, `{"a": {}}`, true},
		{`{"a": "*"}`, `{"a": []}`, true},
		{`{"a": "*"}`, `{"a": null}`, false},
		{`{"a": "*"}`, `{}`, false},
		{`{"a": "?*"}`, `{"a": {}}`, false},
	})
}

func TestLists(t *testing.T) {
	check(t, []match{
		{`[]`, `[]`, false},
		{`[]`, `[1]`, false},
		{`["a"]`, `[]`, true},
		{`["a*"]`, `["a", "ab"]`, true},
		{`["a*"]`, `["a", "b"]`, false},
		{`["a*"]`, `"a"`, false},
		{`["a*"]`, `[["a"]]`, false},
		{`"a*"`, `[["a"]]`, false},
		// Only the first scalar and the first object count.
		{`["a", "b"]`, `["a", "b"]`, false},
		{`["a", "b"]`, `["a", "a"]`, true},
		{`[{"a": 1}, {"a": 2}]`, `[{"a": 1}, {"a": 2}]`, false},
		{`[{"a": 1}, {"a": 2}]`, `[{"a": 1}]`, true},
		{`[{"a": 1}]`, `[]`, true},
		{`[{"a": 1}]`, `["a"]`, false},
		// Lists stand for the elements at their places.
		{`[[1], [2]]`, `[[1], [2], 3]`, true},
		{`[[1], [2]]`, `[[1]]`, false},
		{`[[1], "b", {"c": 1}]`, `[[1, 1], "b", {"c": 1}]`, true},
		{`[[1], "b"]`, `[[1], "c"]`, false},
		{`[[{"(a)": 1}], [{"(a)": 2}]]`, `[[{"a": 2}], [{"a": 1}]]`, false},
		{`[[{"(a)": 1}], [{"(a)": 2}]]`, `[[{"a": 1}], [{"a": 1}]]`, true},
	})
}

func TestAnchors(t *testing.T) {
	check(t, []match{
		{`{"(a)": 1}`, `{"a": 1}`, true},
		{`{"(a)": 1}`, `{"a": 2}`, false},
		{`{"(a)": 1}`, `{}`, false},
		{`{"(a)": "*"}`, `{"a": {}}`, false},
		{`{" (a) ": 1}`, `{"a": 1}`, true},
		{`{"(a)": {"(b)": 1}, "c": 1}`, `{"a": {"b": 1}, "c": 1}`, true},
		{`{"(a)": 1, "b": 2}`, `{"a": 1, "b": 3}`, false},

		{`{"<(a)": 1}`, `{"a": 1}`, true},
		{`{"<(a)": 1}`, `{"a": 2}`, false},
		{`{"<(a)": 1}`, `{}`, true},

		{`{"=(a)": 1}`, `{"a": 1}`, true},
		{`{"=(a)": 1}`, `{"a": 2}`, false},
		{`{"=(a)": 1}`, `{}`, true},
		{`{"=(a)": 1}`, `{"a": null}`, false},

		{`{"X(a)": "null"}`, `{}`, true},
		{`{"X(a)": null}`, `{"a": null}`, false},
		{`{"X(a)": 1}`, `{"a": 2}`, false},

		{`{"^(a)": [{"b": 1}]}`, `{}`, true},
		{`{"^(a)": [{"b": 1}]}`, `{"a": [{"b": 2}, {"b": 1}]}`, true},
		{`{"^(a)": [{"b": 1}]}`, `{"a": []}`, false},
		{`{"^(a)": [{"b": 1}, {"b": 2}]}`, `{"a": [{"b": 2}, {"b": 1}]}`, true},
		{`{"^(a)": [{"b": 1}, {"b": 2}]}`, `{"a": [{"b": 1}, {"b": 1}]}`, false},
		{`{"^(a)": [{"(b)": 1, "c": 1}]}`, `{"a": [{"b": 1, "c": 2}, {"b": 2, "c": 1}]}`, false},
		{`{"^(a)": [{"b": 1}]}`, `{"a": {"b": 1}}`, false},
		{`{"^(a)": []}`, `{"a": []}`, true},
		{`{"^(a)": [1]}`, `{"a": [1]}`, false},
		{`{"^(a)": {"b": 1}}`, `{"a": [{"b": 1}]}`, false},
		{`{"^(a)": {"b": 1}}`, `{}`, true},

		// Inside of a condition these are keys.
		{`{"a": {"+(b)": 1}}`, `{"a": {}}`, false},
		{`{"a": {"+(b)": 1}}`, `{"a": {"b": 1}}`, false},
		{`{"a": {"+(b)": 1}}`, `{"a": {"+(b)": 1}}`, true},
		{`{"()": 1}`, `{"()": 1}`, true},
		{`{"Y(a)": 1}`, `{"Y(a)": 1}`, true},
		{`{"(a": 1}`, `{"(a": 1}`, true},
		{`{"((a))": 1}`, `{"(a)": 1}`, true},
	})
}

// What conditions leave out counts as long as something is left.
func TestSkipping(t *testing.T) {
	check(t, []match{
		{`[{"(a)": 1, "b": 2}]`, `[{"a": 1, "b": 2}, {"a": 5}]`, true},
		{`[{"(a)": 1, "b": 2}]`, `[{"a": 1, "b": 3}, {"a": 5}]`, false},
		{`[{"(a)": 1, "b": 2}]`, `[{"a": 5}, {}]`, false},
		{`[{"(a)": 1, "b": 2}]`, `[]`, true},
		{`[{"(image)": "*a* | *b*"}]`, `[{"image": "xax"}, {"image": "c"}]`, true},
		{`[{"<(a)": 1}]`, `[{"a": 2}, {"a": 1}]`, true},
		{`[{"c": {"<(a)": 1}}]`, `[{"c": {"a": 2}}, {"c": {}}]`, true},
		{`[{"c": {"(a)": 1}}]`, `[{"c": {"a": 2}}]`, false},

		// One condition that is not met is enough, whatever the others say.
		{`{"(a)": 1, "(b)": 1}`, `{"a": 1, "b": 2}`, false},
		{`[{"(a)": 1, "X(b)": 1}]`, `[{"a": 1}, {"a": 2, "b": 1}]`, true},
		{`[{"(a)": 1, "X(b)": 1}]`, `[{"a": 1}, {"a": 1, "b": 1}]`, false},
		{`[{"=(a)": 1, "X(b)": 1}]`, `[{"a": 1}, {"a": 1, "b": 1}]`, false},
		// Conditions deeper down leave out what they are in, not what is beside that.
		{`{"=(a)": [{"(b)": 1}], "=(c)": 1}`, `{"a": [{"b": 2}], "c": 1}`, true},
		{`{"=(a)": [{"(b)": 1}]}`, `{"a": [{"b": 2}], "c": 1}`, false},
		{`{"=(a)": {"(b)": 1}, "=(c)": 1, "d": 1}`, `{"a": {"b": 2}, "c": 1, "d": 2}`, false},
		{`{"=(a)": {"(b)": 1}, "=(c)": 1}`, `{"a": {"b": 2}, "c": 2}`, false},

		// The first of the plain keys that does not hold decides: those with anchors
		// inside come first.
		{`[{"z": 1, "a": {"<(b)": 1}}]`, `[{"z": 2, "a": {"b": 2}}, {"z": 1, "a": {"b": 1}}]`, true},
		{`[{"z": 1, "a": {"=(b)": 1}}]`, `[{"z": 1, "a": {"b": 2}}, {"z": 1, "a": {"b": 1}}]`, false},
		{`[{"a": {"=(x)": 1}, "b": {"<(x)": 1}}]`, `[{"a": {"x": 2}, "b": {"x": 2}}, {"a": {}, "b": {}}]`, true},
		{`[{"b": {"=(x)": 1}, "a": {"<(x)": 1}}]`, `[{"a": {"x": 2}, "b": {"x": 2}}, {"a": {}, "b": {}}]`, false},
	})
}

func TestMetadataWildcards(t *testing.T) {
	check(t, []match{
		{`{"metadata": {"labels": {"ba*": "no"}}}`, `{"metadata": {"labels": {"backup": "no"}}}`, true},
		{`{"metadata": {"labels": {"ba*": "no"}}}`, `{"metadata": {"labels": {"backup": "yes"}}}`, false},
		{`{"metadata": {"labels": {"ba*": "no"}}}`, `{"metadata": {"labels": {"app": "no"}}}`, false},
		{`{"metadata": {"labels": {"ba*": "no"}}}`, `{"metadata": {}}`, false},
		{`{"metadata": {"annotations": {"ba?": "*"}}}`, `{"metadata": {"annotations": {"bar": ""}}}`, true},
		{`{"a": {"=(metadata)": {"<(labels)": {"(b*)": "c"}}}}`, `{"a": {"metadata": {"labels": {"b": "c"}}}}`, true},
		{`{"metadata": {"labels": {"X(b*)": "c"}}}`, `{"metadata": {"labels": {"b": "d"}}}`, false},
		{`{"metadata": {"labels": {"X(b*)": "c"}}}`, `{"metadata": {"labels": {"a": "d"}}}`, true},
		{`{"metadata": {"labels": {"=(b*)": "c"}}}`, `{"metadata": {"labels": {"b": "d"}}}`, false},
		{`{"metadata": {"labels": {"=(b*)": "c"}}}`, `{"metadata": {"labels": {"a": "d"}}}`, true},
		// Nowhere else.
		{`{"labels": {"ba*": "no"}}`, `{"labels": {"backup": "no"}}`, false},
		{`{"metadata": {"ba*": "no"}}`, `{"metadata": {"backup": "no"}}`, false},
		{`{"metadata": {"finalizers": {"ba*": "no"}}}`, `{"metadata": {"finalizers": {"backup": "no"}}}`, false},
		{`{"metadata": {"labels": {"a": {"ba*": "no"}}}}`, `{"metadata": {"labels": {"a": {"backup": "no"}}}}`, false},
		{`{"ba*": "no"}`, `{"backup": "no"}`, false},
	})
}

// Kyverno is of no use as a model here: it leaves conditions out, or takes whichever
// key the order of a map brings first.
func TestDifferences(t *testing.T) {
	check(t, []match{
		// Labels in the pattern that are no texts.
		{`{"metadata": {"labels": {"a": 5}}}`, `{"metadata": {"labels": {"a": "6"}}}`, false},
		{`{"metadata": {"labels": {"a": 5}}}`, `{"metadata": {"labels": {"a": "5"}}}`, true},
		{`{"metadata": {"labels": {"X(a)": null}}}`, `{"metadata": {"labels": {"a": "6"}}}`, false},
		// Several labels for one key.
		{`{"metadata": {"labels": {"b*": "x"}}}`, `{"metadata": {"labels": {"ba": "y", "bb": "x", "bc": "z"}}}`, true},
		{`{"metadata": {"labels": {"(b*)": "x"}}}`, `{"metadata": {"labels": {"ba": "y", "bb": "x", "bc": "z"}}}`, true},
		{`{"metadata": {"labels": {"=(b*)": "x"}}}`, `{"metadata": {"labels": {"ba": "x", "bb": "y", "bc": "x"}}}`, false},
		{`{"metadata": {"labels": {"<(b*)": "x"}}}`, `{"metadata": {"labels": {"ba": "x", "bb": "y", "bc": "x"}}}`, false},
		{`{"metadata": {"labels": {"=(b*)": "x"}}}`, `{"metadata": {"labels": {"ba": "x", "bb": "x"}}}`, true},
		// Several keys for one label.
		{`{"metadata": {"labels": {"b*": "x", "ba*": "y"}}}`, `{"metadata": {"labels": {"bar": "x"}}}`, false},
		// Each element of a list has labels of its own.
		{
			`[{"metadata": {"labels": {"b*": "x"}}}]`,
			`[{"metadata": {"labels": {"ba": "x"}}}, {"metadata": {"labels": {"bb": "x"}}}]`, true,
		},
	})
}
