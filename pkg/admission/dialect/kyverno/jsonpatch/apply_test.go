// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
)

const maxBytes = 3 << 20

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func encode(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse(t testing.TB, text string) []jsonpatch.Operation {
	t.Helper()
	operations, err := jsonpatch.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return operations
}

func TestApply(t *testing.T) {
	tests := map[string]struct{ object, patch, want, wantErr string }{
		"add a field":                   {object: `{"a":{}}`, patch: `[{"op":"add","path":"/a/b","value":null}]`, want: `{"a":{"b":null}}`},
		"add replaces":                  {object: `{"a":[1]}`, patch: `[{"op":"add","path":"/a","value":[2]}]`, want: `{"a":[2]}`},
		"missing parents":               {object: `{}`, patch: `[{"op":"add","path":"/a/b/c","value":1}]`, want: `{"a":{"b":{"c":1}}}`},
		"missing list":                  {object: `{}`, patch: `[{"op":"add","path":"/a/0","value":1}]`, want: `{"a":[1]}`},
		"missing list, end":             {object: `{}`, patch: `[{"op":"add","path":"/a/-","value":1}]`, want: `{"a":[1]}`},
		"missing list, -1":              {object: `{}`, patch: `[{"op":"add","path":"/a/-1","value":1}]`, want: `{"a":[1]}`},
		"missing list, -2":              {object: `{}`, patch: `[{"op":"add","path":"/a/-2","value":1}]`, wantErr: "operation 0, add /a/-2: the list is missing, and -2 is no index of an empty one"},
		"missing list, padded":          {object: `{}`, patch: `[{"op":"add","path":"/a/2","value":1}]`, want: `{"a":[null,null,1]}`},
		"missing list, padded, within":  {object: `{}`, patch: `[{"op":"add","path":"/a/1/b/-","value":1}]`, want: `{"a":[null,{"b":[1]}]}`},
		"padding is bounded":            {object: `{}`, patch: `[{"op":"add","path":"/a/1000000000","value":1}]`, wantErr: "index 1000000000 is more than 1000 beyond the end of the list"},
		"padding on the way is bounded": {object: `{"a":[]}`, patch: `[{"op":"add","path":"/a/1000000000/b","value":1}]`, wantErr: "index 1000000000 is more than 1000 beyond the end of the list"},
		"null is missing":               {object: `{"a":null}`, patch: `[{"op":"add","path":"/a/b","value":1}]`, want: `{"a":{"b":1}}`},
		"null of the patch is missing":  {object: `{}`, patch: `[{"op":"add","path":"/a","value":null},{"op":"add","path":"/a/b","value":1}]`, want: `{"a":{"b":1}}`},
		"null in a list stays":          {object: `{"a":[null]}`, patch: `[{"op":"add","path":"/a/0/b","value":1}]`, want: `{"a":[{"b":1},null]}`},
		"scalar parent":                 {object: `{"a":"x"}`, patch: `[{"op":"add","path":"/a/b","value":1}]`, wantErr: "operation 0, add /a/b: the parent of this path is missing"},
		"insert":                        {object: `{"a":[1,2,3]}`, patch: `[{"op":"add","path":"/a/1","value":9}]`, want: `{"a":[1,9,2,3]}`},
		"append":                        {object: `{"a":[1,2,3]}`, patch: `[{"op":"add","path":"/a/3","value":9}]`, want: `{"a":[1,2,3,9]}`},
		"append, -1":                    {object: `{"a":[1,2,3]}`, patch: `[{"op":"add","path":"/a/-1","value":9}]`, want: `{"a":[1,2,3,9]}`},
		"insert, -2":                    {object: `{"a":[1,2,3]}`, patch: `[{"op":"add","path":"/a/-2","value":9}]`, want: `{"a":[1,2,9,3]}`},
		"insert, -4":                    {object: `{"a":[1,2,3]}`, patch: `[{"op":"add","path":"/a/-4","value":9}]`, want: `{"a":[9,1,2,3]}`},
		"insert, -5":                    {object: `{"a":[1,2,3]}`, patch: `[{"op":"add","path":"/a/-5","value":9}]`, wantErr: "index -5 is beyond the list, which has 3 elements"},
		"beyond the end":                {object: `{"a":[1]}`, patch: `[{"op":"add","path":"/a/2","value":9}]`, wantErr: "index 2 is beyond the list, which has 1 elements"},
		"beyond the end on the way":     {object: `{"a":[1]}`, patch: `[{"op":"add","path":"/a/2/b","value":9}]`, want: `{"a":[1,null,{"b":9}]}`},
		"end on the way":                {object: `{"a":[1]}`, patch: `[{"op":"add","path":"/a/-/b","value":9}]`, wantErr: "the parent of this path is missing"},
		"last on the way":               {object: `{"a":[1,{}]}`, patch: `[{"op":"add","path":"/a/-1/b","value":9}]`, want: `{"a":[1,{"b":9}]}`},
		"name in a list":                {object: `{"a":[1]}`, patch: `[{"op":"add","path":"/a/b","value":9}]`, wantErr: `"b" is no index of a list`},
		"escapes":                       {object: `{"a/b":{"~":1}}`, patch: `[{"op":"add","path":"/a~1b/~01","value":2},{"op":"remove","path":"/a~1b/~0"}]`, want: `{"a/b":{"~1":2}}`},
		"escapes of missing parents":    {object: `{}`, patch: `[{"op":"add","path":"/a~1b/c","value":2}]`, want: `{"a/b":{"c":2}}`},
		"empty name":                    {object: `{}`, patch: `[{"op":"add","path":"/a//b","value":2}]`, want: `{"a":{"":{"b":2}}}`},
		"remove":                        {object: `{"a":{"b":1,"c":2}}`, patch: `[{"op":"remove","path":"/a/b"}]`, want: `{"a":{"c":2}}`},
		"remove, missing":               {object: `{"a":[1]}`, patch: `[{"op":"remove","path":"/b/c"},{"op":"remove","path":"/b"},{"op":"remove","path":"/a/1"},{"op":"remove","path":"/a/-2"},{"op":"remove","path":"/a/x/y"},{"op":"remove","path":"/a/0/y"}]`, want: `{"a":[1]}`},
		"remove, last":                  {object: `{"a":[1,2]}`, patch: `[{"op":"remove","path":"/a/-1"}]`, want: `{"a":[1]}`},
		"remove, no index":              {object: `{"a":[1]}`, patch: `[{"op":"remove","path":"/a/x"}]`, wantErr: `operation 0, remove /a/x: "x" is no index of a list`},
		"replace":                       {object: `{"a":[1,{"b":null}]}`, patch: `[{"op":"replace","path":"/a/-1/b","value":2},{"op":"replace","path":"/a/0","value":{}}]`, want: `{"a":[{},{"b":2}]}`},
		"replace, missing":              {object: `{"a":{}}`, patch: `[{"op":"test","path":"/a","value":{}},{"op":"replace","path":"/a/b","value":2}]`, wantErr: "operation 1, replace /a/b: there is nothing at this path"},
		"replace, missing parent":       {object: `{}`, patch: `[{"op":"replace","path":"/a/b","value":2}]`, wantErr: "the parent of this path is missing"},
		"replace, end":                  {object: `{"a":[1]}`, patch: `[{"op":"replace","path":"/a/-","value":2}]`, wantErr: `"-" is no index of a list`},
		"move":                          {object: `{"a":{"b":1}}`, patch: `[{"op":"move","from":"/a/b","path":"/c"}]`, want: `{"a":{},"c":1}`},
		"move in a list":                {object: `{"a":[1,2,3]}`, patch: `[{"op":"move","from":"/a/0","path":"/a/-1"}]`, want: `{"a":[2,3,1]}`},
		"move, missing":                 {object: `{}`, patch: `[{"op":"move","from":"/a","path":"/b"}]`, wantErr: "operation 0, move /b: from: there is nothing at this path"},
		"move makes no parents":         {object: `{"a":1}`, patch: `[{"op":"move","from":"/a","path":"/b/c"}]`, wantErr: "the parent of this path is missing"},
		"move into itself":              {object: `{"a":{}}`, patch: `[{"op":"move","from":"/a","path":"/a/b"}]`, wantErr: "the parent of this path is missing"},
		"copy":                          {object: `{"a":{"b":[]}}`, patch: `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/-","value":1}]`, want: `{"a":{"b":[]},"c":{"b":[1]}}`},
		"copy of what was changed":      {object: `{"a":{"b":[]}}`, patch: `[{"op":"add","path":"/a/b/-","value":0},{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/-","value":1}]`, want: `{"a":{"b":[0]},"c":{"b":[0,1]}}`},
		"copy into itself":              {object: `{"a":{"b":1}}`, patch: `[{"op":"copy","from":"/a","path":"/a/c"}]`, want: `{"a":{"b":1,"c":{"b":1}}}`},
		"copy of the whole":             {object: `{"a":1}`, patch: `[{"op":"copy","from":"","path":"/b"}]`, want: `{"a":1,"b":{"a":1}}`},
		"copy makes no parents":         {object: `{"a":1}`, patch: `[{"op":"copy","from":"/a","path":"/b/c"}]`, wantErr: "the parent of this path is missing"},
		"test":                          {object: `{"a":{"b":[1,null]}}`, patch: `[{"op":"test","path":"/a","value":{"b":[1.0,null]}},{"op":"test","path":"/a/c","value":null},{"op":"test","path":"/a/b/1","value":null}]`, want: `{"a":{"b":[1,null]}}`},
		"test fails":                    {object: `{"a":"1"}`, patch: `[{"op":"test","path":"/a","value":1}]`, wantErr: "operation 0, test /a: what stands there is not the value that it is tested for"},
		"test, missing":                 {object: `{"a":"1"}`, patch: `[{"op":"test","path":"/b","value":1}]`, wantErr: "there is nothing at this path"},
		"the whole":                     {object: `{"a":1}`, patch: `[{"op":"test","path":"","value":{"a":1}},{"op":"replace","path":"","value":{"b":1}},{"op":"add","path":"/c","value":1}]`, want: `{"b":1,"c":1}`},
		"the whole is an object":        {object: `{"a":1}`, patch: `[{"op":"replace","path":"","value":[]}]`, wantErr: "an object can only become an object"},
		"nothing moves to the whole":    {object: `{"a":{}}`, patch: `[{"op":"move","from":"/a","path":""}]`, wantErr: "the whole object cannot be moved"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := decode(t, test.object)
			got, err := jsonpatch.Apply(object, parse(t, test.patch), maxBytes)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got error %v, want %s", err, test.wantErr)
				}
			} else if err != nil || encode(t, got) != test.want {
				t.Errorf("got %s and error %v, want %s", encode(t, got), err, test.want)
			}
			if after := encode(t, object); after != test.object {
				t.Errorf("the object was modified: it is %s", after)
			}
		})
	}
}

// What Parse has not read can be applied as well, and says what is wrong with it.
func TestApplyOperationsOfOthers(t *testing.T) {
	object := map[string]any{"a": int64(1)}
	got, err := jsonpatch.Apply(object, []jsonpatch.Operation{{Op: "move", From: "/a", Path: "/b"}}, maxBytes)
	if err != nil || encode(t, got) != `{"b":1}` {
		t.Errorf("got %s and error %v", encode(t, got), err)
	}
	for want, operation := range map[string]jsonpatch.Operation{
		`path "a" must begin with a slash`: {Op: "add", Path: "a"},
		`from "a" must begin with a slash`: {Op: "copy", Path: "/a", From: "a"},
		`there is no operation "put"`:      {Op: "put", Path: "/a"},
	} {
		_, err := jsonpatch.Apply(object, []jsonpatch.Operation{operation}, maxBytes)
		var failed *jsonpatch.OperationError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestApplyShares(t *testing.T) {
	object := decode(t, `{"same":{"x":[1]},"changed":{"same":[1],"list":[1,2]}}`)
	got, err := jsonpatch.Apply(object, parse(t, `[{"op":"add","path":"/changed/list/-","value":3}]`), maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	// What is shared shows through.
	object["same"].(map[string]any)["x"].([]any)[0] = "shared"
	object["changed"].(map[string]any)["same"].([]any)[0] = "shared"
	object["changed"].(map[string]any)["list"].([]any)[0] = "not shared"
	if want := `{"changed":{"list":[1,2,3],"same":["shared"]},"same":{"x":["shared"]}}`; encode(t, got) != want {
		t.Errorf("got %s, want %s", encode(t, got), want)
	}

	unchanged, err := jsonpatch.Apply(object, parse(t, `[{"op":"remove","path":"/none"},{"op":"add","path":"/same","value":{"x":["shared"]}}]`), maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	unchanged["proof"] = true
	if object["proof"] == nil {
		t.Error("an object that is not changed was copied")
	}
}

// A value of a patch becomes part of many objects.
func TestApplyLeavesValuesAlone(t *testing.T) {
	operations := parse(t, `[{"op":"add","path":"/a","value":{"b":[]}},{"op":"add","path":"/a/b/-","value":1},{"op":"add","path":"/a/c","value":1}]`)
	for range 2 {
		got, err := jsonpatch.Apply(map[string]any{}, operations, maxBytes)
		if want := `{"a":{"b":[1],"c":1}}`; err != nil || encode(t, got) != want {
			t.Fatalf("got %s and error %v, want %s", encode(t, got), err, want)
		}
	}
}

func TestApplyIsBounded(t *testing.T) {
	repeat := func(n int, operation func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = operation(i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	deep := strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat(`}`, 2000)
	tests := map[string]struct{ object, patch, wantErr string }{
		"copies that double": {
			object:  `{"a":{"b":"` + strings.Repeat("x", 100) + `"}}`,
			patch:   repeat(40, func(i int) string { return fmt.Sprintf(`{"op":"copy","from":"/a","path":"/a/k%d"}`, i) }),
			wantErr: "the object would become too large",
		},
		"copies of what is large": {
			object:  `{"a":"` + strings.Repeat("x", 2<<20) + `"}`,
			patch:   `[{"op":"copy","from":"/a","path":"/b"}]`,
			wantErr: "the object would become too large",
		},
		"padding": {
			object:  `{}`,
			patch:   repeat(900, func(i int) string { return fmt.Sprintf(`{"op":"add","path":"/k%d/1000","value":1}`, i) }),
			wantErr: "operation 629, add /k629/1000: the object would become too large",
		},
		"nested too deep": {
			object:  `{"a":` + deep + `}`,
			patch:   `[{"op":"move","from":"/a","path":"/b"}]`,
			wantErr: "the object would be nested deeper than 1000 levels",
		},
		"nested deeper and deeper": {
			object:  `{"a":{}}`,
			patch:   repeat(900, func(i int) string { return `{"op":"copy","from":"/a","path":"` + strings.Repeat("/a", i+2) + `"}` }),
			wantErr: "the object would",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := jsonpatch.Apply(decode(t, test.object), parse(t, test.patch), maxBytes)
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got error %.300v, want %s", err, test.wantErr)
			}
		})
	}
	if _, err := jsonpatch.Apply(nil, make([]jsonpatch.Operation, 1001), maxBytes); err == nil {
		t.Error("1001 operations are taken")
	}
}

// TestSeries: each patch of a series does what it does alone, and the result that is
// released, like the object, stays as it is.
func TestSeries(t *testing.T) {
	object := decode(t, `{"a":{"list":[1,2,3]},"b":{"c":{}}}`)
	before := encode(t, object)
	patches := []string{
		`[{"op":"add","path":"/a/list/-","value":4}]`,
		`[{"op":"remove","path":"/a/list/0"},{"op":"add","path":"/b/c/d","value":{"e":1}}]`,
		`[{"op":"copy","from":"/b/c","path":"/copy"},{"op":"replace","path":"/b/c/d/e","value":2}]`,
		`[{"op":"move","from":"/a/list","path":"/b/list"},{"op":"add","path":"/b/list/0","value":0}]`,
	}
	var series jsonpatch.Series
	got, want := object, object
	for i, text := range patches {
		if i == 2 {
			series.Release()
		}
		released := got
		text := parse(t, text)
		var err error
		kept := encode(t, released)
		if got, err = series.Apply(got, text, 1<<20); err != nil {
			t.Fatal(err)
		}
		if i == 2 && encode(t, released) != kept {
			t.Errorf("what was released has become %s, and was %s", encode(t, released), kept)
		}
		if want, err = jsonpatch.Apply(want, text, 1<<20); err != nil {
			t.Fatal(err)
		}
		if encode(t, got) != encode(t, want) {
			t.Errorf("patch %d: got %s, want %s", i, encode(t, got), encode(t, want))
		}
	}
	if encode(t, object) != before {
		t.Errorf("the object has become %s", encode(t, object))
	}
}
