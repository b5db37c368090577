// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"context"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// variables is what the variables of a test stand for.
type variables map[string]any

func (v variables) Field(_ context.Context, name string) (any, bool, error) {
	value, ok := v[name]
	return value, ok, nil
}

func (v variables) Object(context.Context) (map[string]any, error) { return v, nil }

func compiler() *template.Compiler {
	return &template.Compiler{Expressions: jmespath.NewCompiler()}
}

func newRun() *jmespath.Run { return &jmespath.Run{Steps: 1 << 20, Bytes: 16 << 20} }

// place is where the patch of a rule stands.
func place() template.Place { return template.Place{Path: []string{"mutate", "patchesJson6902"}} }

// show writes operations so that tests can compare them.
func show(t testing.TB, operations []jsonpatch.Operation) string {
	t.Helper()
	var lines []string
	for _, o := range operations {
		lines = append(lines, strings.TrimSpace(strings.Join([]string{o.Op, o.From, o.Path, encode(t, o.Value)}, " ")))
	}
	return strings.Join(lines, "; ")
}

func TestRender(t *testing.T) {
	values := variables{
		"s": "text", "n": int64(3), "f": 1.5, "whole": 2.0, "small": 1e-7, "b": true, "null": nil, "empty": "",
		"list": []any{"a", int64(1)}, "map": map[string]any{"k": "<v>", "e": map[string]any{}},
		"yes": "yes", "number": "123", "zero": "0", "octal": "012", "float": "1.50", "date": "2024-01-01", "tilde": "~",
		"image": "ghcr.io/acme/api:v2@sha256:0123", "flow": "{a: [b]}", "comment": "a #b", "pair": "a: b", "commas": "a, b",
		"quotes": `a"b'c`, "lines": "a\n- b", "escape": `a\nb`, "break": `x", "path": "/other`, "more": "x\n- op: remove\n  path: /spec",
		"recursive": "<{{ s }}>", "escaped": `\{{ s }}`, "evil": `{{ s }}", path: "/evil`, "json": `{"op":"remove","path":"/a"}`,
		"patches": `[{"op":"remove","path":"/a"}]`, "yaml": "- op: remove\n  path: /a\n", "key": "op", "slash": "a/b", "operation": map[string]any{"op": "remove", "path": "/a"},
	}
	add := func(value string) string { return "- op: add\n  path: /a\n  value: " + value + "\n" }
	tests := map[string]struct{ text, want, wantErr string }{
		"none":                      {text: add("yes"), want: "add  /a true"},
		"whole, string":             {text: add("{{ s }}"), want: `add  /a "text"`},
		"whole, number":             {text: add("{{ n }}"), want: `add  /a 3`},
		"whole, float":              {text: add("{{ f }}"), want: `add  /a 1.5`},
		"whole, bool":               {text: add("{{ b }}"), want: `add  /a true`},
		"whole, null":               {text: add("{{ null }}"), want: `add  /a null`},
		"whole, empty":              {text: add("{{ empty }}"), want: `add  /a null`},
		"whole, list":               {text: add("{{ list }}"), want: `add  /a ["a",1]`},
		"whole, map":                {text: add("{{ map }}"), want: `add  /a {"e":{},"k":"\u003cv\u003e"}`},
		"whole, with a comment":     {text: add("{{ n }} # {not a variable}"), want: `add  /a 3`},
		"typed, yes":                {text: add("{{ yes }}"), want: `add  /a true`},
		"typed, number":             {text: add("{{ number }}"), want: `add  /a 123`},
		"typed, zero":               {text: add("{{ zero }}"), want: `add  /a 0`},
		"typed, octal":              {text: add("{{ octal }}"), want: `add  /a 10`},
		"typed, float":              {text: add("{{ float }}"), want: `add  /a 1.5`},
		"typed, date":               {text: add("{{ date }}"), want: `add  /a "2024-01-01"`},
		"typed, null":               {text: add("{{ tilde }}"), want: `add  /a null`},
		"typed, image":              {text: add("{{ image }}"), want: `add  /a "ghcr.io/acme/api:v2@sha256:0123"`},
		"typed, flow":               {text: add("{{ flow }}"), want: `add  /a {"a":["b"]}`},
		"typed, comment":            {text: add("{{ comment }}"), want: `add  /a "a"`},
		"typed, pair":               {text: add("{{ pair }}"), wantErr: `operation 0: the text "a: b" is no value of YAML; put the variable in quotes to have it as it is`},
		"typed, lines":              {text: add("{{ lines }}"), wantErr: `is no value of YAML`},
		"typed, operation":          {text: add("{{ more }}"), wantErr: `is no value of YAML`},
		"typed, stays one value":    {text: "- {op: add, path: /a, value: [{{ commas }}]}", want: `add  /a ["a, b"]`},
		"quoted":                    {text: add(`"{{ n }}-{{ s }}"`), want: `add  /a "3-text"`},
		"quoted, whole":             {text: add(`"{{ n }}"`), want: `add  /a "3"`},
		"quoted, exponent":          {text: add(`"{{ small }}, {{ [small] }}"`), want: `add  /a "1e-07, [1e-07]"`},
		"quoted, yes":               {text: add(`'{{ yes }}'`), want: `add  /a "yes"`},
		"quoted, null":              {text: add(`"{{ null }}"`), want: `add  /a "null"`},
		"quoted, list":              {text: add(`'{{ list }}'`), want: `add  /a "[\"a\",1]"`},
		"quoted, quotes":            {text: add(`"{{ quotes }}"`), want: `add  /a "a\"b'c"`},
		"quoted, lines":             {text: add(`"{{ lines }}"`), want: `add  /a "a\n- b"`},
		"quoted, escapes":           {text: add(`"{{ escape }}\n"`), want: `add  /a "a\\nb\n"`},
		"quoted, no way out":        {text: add(`"{{ break }}"`), want: `add  /a "x\", \"path\": \"/other"`},
		"block":                     {text: add("|\n    one {{ s }}\n    {{ lines }}"), want: `add  /a "one text\na\n- b\n"`},
		"part":                      {text: add("{{ s }}-{{ n }}"), want: `add  /a "text-3"`},
		"part, typed":               {text: add("{{ n }}{{ n }}"), want: `add  /a 33`},
		"part, of a number":         {text: add("1{{ n }}"), want: `add  /a 13`},
		"part, of a negative":       {text: add("-{{ n }}"), want: `add  /a -3`},
		"part, quantity":            {text: add("{{ n }}Gi"), want: `add  /a "3Gi"`},
		"path":                      {text: "- op: remove\n  path: /a/{{ n }}/b-{{ s }}", want: `remove  /a/3/b-text null`},
		"path, quoted":              {text: "- op: remove\n  path: \"/a/{{ n }}\"", want: `remove  /a/3 null`},
		"path, whole":               {text: "- op: move\n  path: '/{{ s }}'\n  from: /{{ slash }}", want: `move /a/b /text null`},
		"path, number":              {text: "- op: remove\n  path: {{ n }}", wantErr: "operation 0: remove needs a path, which is a string"},
		"path, no slash":            {text: "- op: remove\n  path: '{{ s }}'", wantErr: `operation 0: path "text" must begin with a slash`},
		"operation name":            {text: "- op: {{ operation.op }}\n  path: /a", want: `remove  /a null`},
		"operation name, unknown":   {text: "- op: {{ s }}\n  path: /a", wantErr: `operation 0: op is "text"`},
		"nested value":              {text: add(`{x: ["{{ s }}", {w: {{ n }}}], z: 1}`), want: `add  /a {"x":["text",{"w":3}],"z":1}`},
		"several":                   {text: add("1") + add("{{ n }}") + add("3"), want: `add  /a 1; add  /a 3; add  /a 3`},
		"JSON":                      {text: `[{"op":"add","path":"/{{ s }}","value":{{ n }}},{"op":"add","path":"/a","value":"{{ quotes }}"}]`, want: `add  /text 3; add  /a "a\"b'c"`},
		"JSON, string is no value":  {text: `[{"op":"add","path":"/a","value":{{ s }}}]`, wantErr: `the text "text" is no JSON`},
		"JSON, typed":               {text: `[{"op":"add","path":"/a","value":{{ number }}}]`, want: `add  /a 123`},
		"key":                       {text: "- {{ key }}: remove\n  path: /a", want: `remove  /a null`},
		"key within":                {text: add("{ {{ s }}: 1 }"), want: `add  /a {"text":1}`},
		"an operation":              {text: add("1") + "- {{ json }}", want: `add  /a 1; remove  /a null`},
		"an operation, map":         {text: add("1") + "- {{ operation }}", want: `add  /a 1; remove  /a null`},
		"all of it, JSON":           {text: "{{ patches }}", want: `remove  /a null`},
		"all of it, YAML":           {text: "{{ yaml }}\n", want: `remove  /a null`},
		"all of it, list":           {text: "{{ list }}", wantErr: "variable {{ list }}: it is a list, but must be a string"},
		"all of it, empty":          {text: "{{ empty }}", wantErr: "the patch is empty"},
		"comment":                   {text: "# {{ s }}\n" + add("1"), want: `add  /a 1`},
		"comment, unknown":          {text: "# {{ unknown }}\n" + add("1"), wantErr: `variable {{ unknown }}: Unknown key "unknown" in path`},
		"unknown":                   {text: add(`"{{ unknown }}"`), wantErr: `variable {{ unknown }}: Unknown key "unknown" in path`},
		"explicit type":             {text: add("!!str {{ n }}"), want: `add  /a "3"`},
		"escaped braces":            {text: add(`'\{{ n }}'`), want: `add  /a "{{ n }}"`},
		"braces in a value":         {text: add(`"{{ recursive }}"`), want: `add  /a "\u003ctext\u003e"`},
		"braces in a value, plain":  {text: add(`{{ recursive }}`), want: `add  /a "\u003ctext\u003e"`},
		"braces, escaped":           {text: add(`"{{ escaped }}"`), want: `add  /a "{{ s }}"`},
		"braces, shallow":           {text: add(`"{{- recursive }}"`), want: `add  /a "\u003c{{ s }}\u003e"`},
		"braces, no way out":        {text: `- {op: add, value: 1, path: "/a", x: "{{ evil }}"}`, wantErr: "operation 0: the value of a variable holds {{ and changes what the operations are"},
		"nested variables":          {text: add(`{{ map.{{ 'k' }} }}`), want: `add  /a "\u003cv\u003e"`},
		"numbers that look like it": {text: "- {op: add, path: /a, value: [7319076245180000, {{ n }}, \"7319076245180000\"]}", want: `add  /a [7319076245180000,3,"7319076245180000"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, faults := jsonpatch.Compile(test.text, compiler(), place())
			if len(faults) > 0 {
				t.Fatalf("faults: %v", faults)
			}
			for range 2 { // the second one like the first
				got, err := compiled.Render(t.Context(), newRun(), values)
				if test.wantErr != "" {
					if err == nil || !strings.Contains(err.Error(), test.wantErr) {
						t.Fatalf("got %s and error %v, want %s", show(t, got), err, test.wantErr)
					}
				} else if err != nil || show(t, got) != test.want {
					t.Fatalf("got %s and error %v, want %s", show(t, got), err, test.want)
				}
			}
		})
	}
}

func TestCompileFaults(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"several":            {text: "- {op: put, path: /a}\n- {op: add, path: /a}\n- {op: move, path: '/{{ s }}'}\n- {op: remove, path: 'a{{ s }}'}", want: []string{`operation 0: op is "put"`, "operation 1: add needs a value", "operation 2: move needs the field from", `operation 3: path "a0" must begin with a slash`}},
		"no YAML":            {text: "- op: add\n path: /{{ s }}", want: []string{"the patch is no YAML"}},
		"no list":            {text: "op: {{ s }}", want: []string{"a JSON patch is a list of operations"}},
		"no expression":      {text: "- {op: add, path: /a, value: '{{ a. }}'}", want: []string{"{{ a. }}"}},
		"from without slash": {text: "- {op: copy, path: /a, from: 'a'}", want: []string{`operation 0: from "a" must begin with a slash`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, faults := jsonpatch.Compile(test.text, compiler(), place())
			if len(faults) != len(test.want) {
				t.Fatalf("got faults %v, want %v", faults, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(faults[i].Detail, want) {
					t.Errorf("got fault %s, want %s", faults[i].Detail, want)
				}
			}
			if _, err := compiled.Render(t.Context(), newRun(), variables{"s": "x"}); err == nil {
				t.Error("a patch with faults can be rendered")
			}
		})
	}
}

// What is the same for all requests is neither parsed nor copied for one, and is charged
// for all the same.
func TestRenderStatic(t *testing.T) {
	compiled, faults := jsonpatch.Compile("- {op: add, path: /a, value: {b: text}}\n- {op: remove, path: '/{{ s }}'}", compiler(), place())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	render := func(run *jmespath.Run) ([]jsonpatch.Operation, error) {
		return compiled.Render(t.Context(), run, variables{"s": "x"})
	}
	first, err := render(newRun())
	if err != nil {
		t.Fatal(err)
	}
	second, err := render(newRun())
	if err != nil {
		t.Fatal(err)
	}
	first[0].Value.(map[string]any)["b"] = "shared"
	if got := show(t, second); got != `add  /a {"b":"shared"}; remove  /x null` {
		t.Errorf("got %s", got)
	}
	run := &jmespath.Run{Steps: 100, Bytes: 10}
	if _, err := render(run); err == nil {
		t.Error("the value takes nothing from the budget")
	}
	if uses := compiled.Uses(); len(uses) != 1 || uses[0].Name != "s" {
		t.Errorf("got uses %v", uses)
	}
}

// Values that YAML has no special meaning for give what Kyverno's way gives: to put them
// into the text and to parse that.
func FuzzRender(f *testing.F) {
	f.Add("- op: add\n  path: /a/{{ v }}\n  value: {{ v }}\n", "x")
	f.Add(`[{"op":"add","path":"/a","value":{"{{ v }}":"{{ v }}"}}]`, "7")
	f.Add("- {op: add, path: '/{{ v }}', value: [{{ v }}, a{{ v }}, \"{{ v }}\"]}", "yes")
	f.Fuzz(func(t *testing.T, text, value string) {
		scope := variables{"v": value}
		compiled, faults := jsonpatch.Compile(text, compiler(), place())
		got, err := compiled.Render(t.Context(), newRun(), scope)
		if len(faults) > 0 {
			if err == nil {
				t.Fatal("a patch with faults can be rendered")
			}
			return
		}
		if err == nil {
			_, _ = jsonpatch.Apply(map[string]any{"a": []any{}}, got, maxBytes)
		}
		if !harmless(value) {
			return
		}
		whole, _ := compiler().Text(text, place())
		rendered, renderErr := whole.Render(t.Context(), newRun(), scope)
		if renderErr != nil || rendered == "" {
			return
		}
		want, wantErr := jsonpatch.Parse(rendered.(string))
		if (err == nil) != (wantErr == nil) || err == nil && show(t, got) != show(t, want) {
			t.Fatalf("%q with %q: got %s and error %v, want %s and %v", text, value, show(t, got), err, show(t, want), wantErr)
		}
	})
}

// harmless says whether YAML and JSON see nothing but a word in a text, whatever stands
// around it.
func harmless(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

func BenchmarkRender(b *testing.B) {
	compiled, faults := jsonpatch.Compile("- op: add\n  path: /spec/containers/{{ elementIndex }}/env/-\n  value: {name: N, value: \"{{ element.name }}\"}\n", compiler(), place())
	if len(faults) > 0 {
		b.Fatal(faults)
	}
	scope := variables{"elementIndex": int64(1), "element": map[string]any{"name": "web"}}
	object := decode(b, `{"spec":{"containers":[{"name":"a"},{"name":"web","env":[{"name":"A","value":"B"}]}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		operations, err := compiled.Render(b.Context(), newRun(), scope)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := jsonpatch.Apply(object, operations, maxBytes); err != nil {
			b.Fatal(err)
		}
	}
}
