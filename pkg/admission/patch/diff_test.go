// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
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

func TestDiff(t *testing.T) {
	long := strings.Repeat("long ", 20)
	tests := map[string]struct{ from, to, want string }{
		"nothing":                  {`{"a":1,"b":[{"c":null}]}`, `{"a":1.0,"b":[{"c":null}]}`, `null`},
		"a key more":               {`{"a":1}`, `{"a":1,"b":{}}`, `[{"op":"add","path":"/b","value":{}}]`},
		"a key less":               {`{"a":1,"b":{}}`, `{"b":{}}`, `[{"op":"remove","path":"/a"}]`},
		"null is there":            {`{}`, `{"a":null}`, `[{"op":"add","path":"/a","value":null}]`},
		"null comes":               {`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		"null goes":                {`{"a":null}`, `{}`, `[{"op":"remove","path":"/a"}]`},
		"order of keys":            {`{"b":1,"d":1}`, `{"a":1,"b":2,"c":1}`, `[{"op":"add","path":"/a","value":1},{"op":"replace","path":"/b","value":2},{"op":"add","path":"/c","value":1},{"op":"remove","path":"/d"}]`},
		"escapes":                  {`{"a/b~c":{}}`, `{"a/b~c":{"~1":1}}`, `[{"op":"add","path":"/a~1b~0c/~01","value":1}]`},
		"empty key":                {`{"":{}}`, `{"":{"":1}}`, `[{"op":"add","path":"//","value":1}]`},
		"another kind":             {`{"a":[]}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		"text of a number":         {`{"a":1}`, `{"a":"1"}`, `[{"op":"replace","path":"/a","value":"1"}]`},
		"large integers":           {`{"a":9007199254740993}`, `{"a":9007199254740992.0}`, `[{"op":"replace","path":"/a","value":9007199254740992}]`},
		"element appended":         {`{"a":["x","y"]}`, `{"a":["x","y","` + long + `"]}`, `[{"op":"add","path":"/a/2","value":"` + long + `"}]`},
		"long element appended":    {`{"a":["` + long + `"]}`, `{"a":["` + long + `","y"]}`, `[{"op":"add","path":"/a/1","value":"y"}]`},
		"element in front":         {`{"a":["` + long + `"]}`, `{"a":["y","` + long + `"]}`, `[{"op":"add","path":"/a/0","value":"y"}]`},
		"element gone":             {`{"a":["` + long + `","x","y"]}`, `{"a":["` + long + `","y"]}`, `[{"op":"remove","path":"/a/1"}]`},
		"two gone":                 {`{"a":["` + long + `","x","y"]}`, `{"a":["` + long + `"]}`, `[{"op":"remove","path":"/a/1"},{"op":"remove","path":"/a/1"}]`},
		"all gone":                 {`{"a":["x","y"]}`, `{"a":[]}`, `[{"op":"replace","path":"/a","value":[]}]`},
		"short list":               {`{"a":["x","y"]}`, `{"a":["u","v"]}`, `[{"op":"replace","path":"/a","value":["u","v"]}]`},
		"element changed":          {`{"a":["` + long + `","x"]}`, `{"a":["` + long + `","y"]}`, `[{"op":"replace","path":"/a/1","value":"y"}]`},
		"changed within":           {`{"a":[{"name":"n","x":"` + long + `"}]}`, `{"a":[{"name":"n","x":"` + long + `","y":1}]}`, `[{"op":"add","path":"/a/0/y","value":1}]`},
		"in front, changed within": {`{"a":[{"name":"n","x":"` + long + `"}]}`, `{"a":[{"name":"m"},{"name":"n","x":"` + long + `","y":1}]}`, `[{"op":"add","path":"/a/0","value":{"name":"m"}},{"op":"add","path":"/a/1/y","value":1}]`},
		"another element":          {`{"a":["` + long + `",{"a":1,"b":2,"c":3}]}`, `{"a":["` + long + `",{"d":1}]}`, `[{"op":"replace","path":"/a/1","value":{"d":1}}]`},
		"many changes of an object are not a replacement": {`{"a":{"b":1,"c":1}}`, `{"a":{"b":2,"c":2}}`, `[{"op":"replace","path":"/a/b","value":2},{"op":"replace","path":"/a/c","value":2}]`},
		"no object":                    {`1`, `[1]`, `[{"op":"replace","path":"","value":[1]}]`},
		"the root is never replaced":   {`{"a":1}`, `{"b":1}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":1}]`},
		"a list as root is not either": {`[1,2]`, `[]`, `[{"op":"remove","path":"/0"},{"op":"remove","path":"/0"}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := patch.Diff(decode(t, test.from), decode(t, test.to))
			if text := encode(t, got); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

func TestDiffSkipsWhatIsTheSame(t *testing.T) {
	shared := decode(t, `{"big":[{"x":1},{"y":2}]}`)
	// What is walked would be found to differ.
	shared.(map[string]any)["poison"] = struct{}{}
	from := map[string]any{"shared": shared, "list": []any{shared, "a"}, "x": int64(1)}
	to := map[string]any{"shared": shared, "list": []any{shared, "b"}, "x": int64(2)}
	want := `[{"op":"replace","path":"/list/1","value":"b"},{"op":"replace","path":"/x","value":2}]`
	if got := encode(t, patch.Diff(from, to)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDiffOfDeepValues(t *testing.T) {
	nest := func(levels int, open, inner, end string) any {
		return decode(t, strings.Repeat(open, levels)+inner+strings.Repeat(end, levels))
	}
	for _, c := range []struct{ open, end string }{{`{"a":`, `}`}, {`[`, `]`}, {`[{"a":`, `}]`}} {
		levels := 9_900 / len(c.end)
		from, to := map[string]any{"x": nest(levels, c.open, "1", c.end)}, map[string]any{"x": nest(levels, c.open, "2", c.end)}
		operations := patch.Diff(from, to)
		if len(operations) != 1 || strings.Count(operations[0].Path, "/") > 100 {
			t.Errorf("%s: got %d operations, want one that is not deep", c.open, len(operations))
		}
		if got := patch.Diff(from, map[string]any{"x": nest(levels, c.open, "1", c.end)}); got != nil {
			t.Errorf("%s: got %d operations, want none", c.open, len(got))
		}
	}
}

// A patch must not be many times as large as the object, whatever the paths are.
func TestDiffIsBounded(t *testing.T) {
	key := strings.Repeat("k", 1<<20)
	object := func(value string) any {
		elements := strings.Repeat(`{"a":`+value+`},`, 10_000)
		fields := ""
		for i := range 10_000 {
			fields += fmt.Sprintf(`"f%d":%s,`, i, value)
		}
		return decode(t, `{"`+key+`":{"list":[`+elements+`1],"`+key+`":{`+fields+`"z":1}}}`)
	}
	if size := len(encode(t, patch.Diff(object("1"), object("2")))); size > 8<<20 {
		t.Errorf("the patch takes %d bytes", size)
	}
}

func TestEqual(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`1`, `1.5`, false},
		{`1`, `true`, false},
		{`0`, `null`, false},
		{`"1"`, `1`, false},
		{`9007199254740993`, `9007199254740992.0`, false},
		{`9223372036854775807`, `9223372036854775808`, false},
		{`[1,{"a":[null]}]`, `[1.0,{"a":[null]}]`, true},
		{`[]`, `{}`, false},
		{`[]`, `null`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`[1,2]`, `[2,1]`, false},
	}
	for _, test := range tests {
		a, b := decode(t, test.a), decode(t, test.b)
		if patch.Equal(a, b) != test.want || patch.Equal(b, a) != test.want {
			t.Errorf("%s and %s: want %t", test.a, test.b, test.want)
		}
	}
}

func TestSize(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `-12`, `1.5`, `"a\"\\\n\u0001<é"`, `[]`, `{}`, `[1,[],{"a":null}]`, `{"a":1,"b":[true,false]}`,
	} {
		value := decode(t, text)
		want := len(encode(t, value))
		if got, ok := patch.Size(value, want, 2); got != want || !ok {
			t.Errorf("%s: got %d and %t, want %d", text, got, ok, want)
		}
		if _, ok := patch.Size(value, want-1, 2); ok {
			t.Errorf("%s takes less than %d bytes", text, want)
		}
	}
	if _, ok := patch.Size(decode(t, `[{"a":[]}]`), 100, 2); ok {
		t.Error("three levels are taken for two")
	}
}
