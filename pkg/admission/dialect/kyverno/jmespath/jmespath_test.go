// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	kjson "sigs.k8s.io/json"
)

// decode reads a document as requests are read.
func decode(t *testing.T, document string) any {
	t.Helper()
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// search compiles and searches with the standard functions.
func search(t *testing.T, expression string, data any) (any, error) {
	t.Helper()
	e, err := NewCompiler().Compile(expression)
	if err != nil {
		t.Fatalf("Compile(%s): %v", expression, err)
	}
	return e.Search(t.Context(), plenty(), data)
}

const document = `{
	"name": "web", "empty": "", "no": false, "yes": true, "nothing": null, "n": 3, "f": 2.5, "zero": 0,
	"big": 9007199254740993, "list": [3, 1, 2], "words": ["b", "a", "c"], "none": [], "object": {"z": 1, "a": 2, "m": 3}, "void": {},
	"nested": [[1, 2], [3, [4]], 5, null], "tree": {"b": {"v": 2}, "a": {"v": 1}, "c": {"w": 3}},
	"people": [{"name": "bob", "age": 30}, {"name": "ann", "age": 20}, {"name": "cid", "age": 30.0, "tags": ["x"]}, {"age": 10}]
}`

func TestSearch(t *testing.T) {
	tests := map[string]struct{ expression, want string }{
		"a field":                                 {"name", `"web"`},
		"a field of null":                         {"nothing.a.b", `null`},
		"a field of a text":                       {"name.a", `null`},
		"a field of a list":                       {"list.a", `null`},
		"the data":                                {"@.name", `"web"`},
		"a quoted field":                          {`"name"`, `"web"`},
		"an integer stays one":                    {"n", `3`},
		"a large integer stays one":               {"big", `9007199254740993`},
		"an index":                                {"list[0]", `3`},
		"an index from the end":                   {"list[-1]", `2`},
		"an index beyond the end":                 {"list[3]", `null`},
		"an index before the start":               {"list[-4]", `null`},
		"an index of an object":                   {"object[0]", `null`},
		"a slice":                                 {"list[1:]", `[1, 2]`},
		"a slice from the end":                    {"list[-2:]", `[1, 2]`},
		"a slice backwards":                       {"list[::-1]", `[2, 1, 3]`},
		"a slice with steps":                      {"list[::2]", `[3, 2]`},
		"a slice with an enormous step":           {"list[1::9223372036854775807]", `[1]`},
		"an empty slice":                          {"list[2:1]", `[]`},
		"a slice of no list":                      {"name[1:]", `null`},
		"a slice of step 0 of no list":            {"name[::0]", `null`},
		"or takes what is there":                  {"missing || name", `"web"`},
		"or takes the first that is true":         {"empty || no || nothing || none || void || n", `3`},
		"or of what is missing":                   {"missing || missing", `null`},
		"or ends with its last":                   {"missing || none", `[]`},
		"zero is true":                            {"zero || n", `0`},
		"and of what is missing":                  {"missing && name", `null`},
		"and ends with its last":                  {"yes && name", `"web"`},
		"and takes the first that is false":       {"empty && name", `""`},
		"not of what is missing":                  {"!missing", `true`},
		"not":                                     {"!name", `false`},
		"what is missing equals null":             {"missing == nothing", `true`},
		"equality of kinds of numbers":            {"n == `3.0` && people[0].age == people[2].age", `true`},
		"equality is exact":                       {"big == `9007199254740992`", `false`},
		"inequality":                              {"n != `3`", `false`},
		"equality inside lists":                   {"list == `[3.0, 1, 2]`", `true`},
		"equality inside objects":                 {"object == `{\"a\": 2, \"z\": 1, \"m\": 3}`", `true`},
		"other fields are not equal":              {"object == `{\"a\": 2, \"z\": 1, \"k\": 3}`", `false`},
		"a number is no text":                     {"n == '3'", `false`},
		"an order of kinds of numbers":            {"n > f", `true`},
		"an order of texts is null":               {"'b' > 'a'", `null`},
		"an order with what is missing":           {"missing > `1`", `null`},
		"at least":                                {"n >= `3`", `true`},
		"at most":                                 {"n <= f", `false`},
		"a pipe over what is missing":             {"missing | @", `null`},
		"a pipe":                                  {"people[*].age | [0]", `30`},
		"a list of expressions":                   {"[n, missing]", `[3, null]`},
		"a list over null":                        {"nothing.[n]", `null`},
		"an object of expressions":                {"{a: n, b: missing, a: f}", `{"a": 2.5, "b": null}`},
		"a projection leaves out null":            {"people[*].tags[0]", `["x"]`},
		"a projection of no list":                 {"name[*].a", `null`},
		"a projection of what is missing":         {"object.missing[*].a", `null`},
		"nested projections":                      {"nested[*][0]", `[1, 3]`},
		"projections end at a pipe":               {"people[*].name | [1]", `"ann"`},
		"flattening is one level deep":            {"nested[]", `[1, 2, 3, [4], 5]`},
		"flattening twice":                        {"nested[][]", `[1, 2, 3, 4, 5]`},
		"flattening what is missing":              {"missing[]", `null`},
		"a filter":                                {"people[?age > `15`].name", `["bob", "ann", "cid"]`},
		"a filter on what some have":              {"people[?contains(tags || `[]`, 'x')].name", `["cid"]`},
		"a filter of what is missing":             {"missing[?a]", `null`},
		"a filter forgets mistakes on its left":   {"abs('x')[?@]", `null`},
		"a filter looks for null":                 {"nested[?@ == null]", `[]`},
		"values by the order of keys":             {"object.*", `[2, 3, 1]`},
		"values of what some have":                {"tree.*.v", `[1, 2]`},
		"values of no object":                     {"list.*", `null`},
		"values forget mistakes on their left":    {"abs('x').*", `null`},
		"functions see the nulls in front":        {"void.*.type(@)", `[]`},
		"functions see the nulls of values":       {"object.*.type(@)", `["null", "null", "null", "number", "number", "number"]`},
		"flattening forgets mistakes on its left": {"abs('x')[]", `null`},
		"a literal":                               {"`{\"a\": [1, null]}`", `{"a": [1.0, null]}`},
		"a raw text":                              {`'a\'b\n'`, `"a'b\\n"`},
		"a call after a dot":                      {"object.keys(@)", `["a", "m", "z"]`},
		"a call on what is missing":               {"not_null(missing, name)", `"web"`},
	}
	data := decode(t, document)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := search(t, test.expression, data)
			if err != nil {
				t.Fatal(err)
			}
			same, err := equal(t.Context(), plenty(), got, decode(t, test.want), 0)
			if err != nil || !same {
				t.Errorf("%s is %#v, want %s", test.expression, got, test.want)
			}
		})
	}
	if !reflect.DeepEqual(data, decode(t, document)) {
		t.Error("the data has been changed")
	}
}

func TestSearchFails(t *testing.T) {
	tests := map[string]struct{ expression, want string }{
		"a missing field":                     {"missing", `Unknown key "missing" in path`},
		"a field of a missing field":          {"object.missing.a", `Unknown key "missing" in path`},
		"at the end of and":                   {"yes && missing", `Unknown key "missing" in path`},
		"after a projection's end":            {"(people[*].name).missing || object.missing.a.b && yes | @.a.b.c || `1` > `2` && list[9].c", ""},
		"a slice of step 0":                   {"list[::0]", "the step of a slice is 0"},
		"of a wrong type":                     {"length(n)", "function length: argument 1 is 3; it must be a string, a list or an object"},
		"of what is missing":                  {"length(missing)", "function length: argument 1 is null; it must be a string, a list or an object"},
		"of a text for a number":              {"abs(name)", `function abs: argument 1 is the string "web"; it must be a number`},
		"of a list of other things":           {"join(',', nested)", "function join: argument 2 is a list whose item 0 is a list; it must be a list of strings"},
		"of a list of numbers":                {"join(',', list)", "function join: argument 2 is a list of numbers; it must be a list of strings"},
		"of a mixed list":                     {"sort([n, name])", "function sort: argument 1 is a list of numbers and strings; it must be a list of numbers or a list of strings"},
		"of the second of many":               {"merge(object, list)", "function merge: argument 2 is a list of numbers; it must be an object"},
		"of a reference":                      {"length(&a)", "function length: argument 1 is an expression (&...); it must be a string, a list or an object"},
		"without a reference":                 {"map(name, list)", `function map: argument 1 is the string "web"; it must be an expression (&...)`},
		"of a long text":                      {"abs('" + strings.Repeat("€", 100) + "')", `function abs: argument 1 is the string "` + strings.Repeat("€", 21) + `..."; it must be a number`},
		"a list in a list":                    {"contains(nested, list)", "function contains: a list or an object cannot be looked for in a list"},
		"sorting by what some have":           {"sort_by(people, &name)", `function sort_by: the expression is null for item 3 and the string "bob" for item 0; it must be numbers only, or strings only`},
		"sorting by nothing":                  {"sort_by(people, &missing)", "function sort_by: the expression is null for item 0; it must be a number or a string"},
		"the largest by a list":               {"max_by(people[2:], &tags)", "function max_by: the expression is a list of strings for item 0; it must be a number or a string"},
		"an average of nothing":               {"avg(none)", "the result is no number of JSON"},
		"an average of nothing in a list":     {"[avg(none)]", "the result is no number of JSON"},
		"an average of nothing in a map":      {"map(&avg(@), [none])", "the result is no number of JSON"},
		"an average of nothing in a text":     {"to_string(avg(none))", "the result is no number of JSON"},
		"an average of nothing per item":      {"[none][*].avg(@)", "the result is no number of JSON"},
		"an average of nothing per match":     {"[none][?!@].avg(@)", "the result is no number of JSON"},
		"an average of nothing, made a list":  {"to_array(avg(none))", "the result is no number of JSON"},
		"an average of nothing is not missed": {"[avg(none)][]", "the result is no number of JSON"},
		"infinity":                            {"to_number('inf')", "the result is no number of JSON"},
		"values of which some are wrong":      {"object.*.length(@)", "function length: argument 1 is null; it must be a string, a list or an object"},
	}
	data := decode(t, document)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := search(t, test.expression, data)
			if test.want == "" {
				if err != nil {
					t.Fatalf("got error %v", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, error %v\nwant error %s", got, err, test.want)
			}
			if missing := strings.HasPrefix(test.want, "Unknown key"); missing != isMissing(err) {
				t.Errorf("got %T, want a NotFoundError: %t", err, missing)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	data := decode(t, document)
	e, err := NewCompiler().Compile("[sort_by(people[?age], &age)[*].age, sort(words), object.*, to_string(@), missing || reverse(list), merge(object, tree)]")
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.Search(t.Context(), plenty(), data)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			got, err := e.Search(t.Context(), plenty(), data)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, error %v, want %v", got, err, want)
			}
		})
	}
	group.Wait()
}
