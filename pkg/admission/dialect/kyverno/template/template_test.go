// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/function"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// data is what variables stand for in most tests.
const data = `{
	"request": {
		"operation": "CREATE",
		"object": {
			"metadata": {"name": "web", "labels": {"app": "db", "a.b/c": "dotted"}},
			"spec": {
				"i": 5, "f": 2.5, "s": "abc", "e": "", "b": true, "nul": null,
				"m": {"k": "<v>", "a": 1}, "l": [1, "x"], "x1": {"s": "deep"},
				"bs": "x\\", "open": "{", "close": "}}", "pre": "pre{{request.object.spec.s",
				"tmpl": "{{request.object.spec.s}}", "tmpl2": "a {{ request.object.spec.s }} b",
				"esc": "\\{{request.object.kind}}", "at": "{{@}}",
				"tm": {"{{request.object.spec.s}}": "y{{request.object.spec.i}}", "z": "{{request.object.spec.i}}",
					"q": "\\{{a}} $(x)", "w": "{{request.object.spec.tmpl}}", "l": ["{{request.object.spec.l}}"]}
			}
		},
		"oldObject": {"spec": {"s": "old"}}
	},
	"element": {"name": "x1"},
	"loop": {"m": {"a": "{{loop.m}}", "b": "{{loop.m}}"}, "s": "x{{loop.s}}", "k": {"{{loop.k}}": 1}}
}`

// fields is a scope that knows its values.
type fields map[string]any

func (f fields) Field(_ context.Context, name string) (any, bool, error) {
	value, ok := f[name]
	return value, ok, nil
}

func (f fields) Object(context.Context) (map[string]any, error) { return f, nil }

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
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func scope(t testing.TB) fields {
	t.Helper()
	object, ok := decode(t, data).(map[string]any)
	if !ok {
		t.Fatal("the data is no object")
	}
	return object
}

func budget() *jmespath.Run { return &jmespath.Run{Steps: 1 << 20, Bytes: 1 << 25} }

func compiler() *template.Compiler {
	return &template.Compiler{Expressions: jmespath.NewCompiler(function.All()...)}
}

// inPatch is where the patch of a rule that holds nothing else stands.
func inPatch(patch any) template.Place {
	return template.Place{
		Rule: map[string]any{"mutate": map[string]any{"patchStrategicMerge": patch}},
		Path: []string{"mutate", "patchStrategicMerge"},
	}
}

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"number":                       {`"{{request.object.spec.i}}"`, `5`},
		"fraction":                     {`"{{ request.object.spec.f }}"`, `2.5`},
		"boolean":                      {`"{{request.object.spec.b}}"`, `true`},
		"null":                         {`"{{request.object.spec.nul}}"`, `null`},
		"object":                       {`{"a": ["{{request.object.spec.m}}"]}`, `{"a":[{"a":1,"k":"<v>"}]}`},
		"embedded string":              {`"x-{{request.object.spec.s}}"`, `"x-abc"`},
		"embedded number":              {`" {{request.object.spec.i}}"`, `" 5"`},
		"embedded fraction":            {`"{{request.object.spec.f}};"`, `"2.5;"`},
		"embedded boolean":             {`"{{request.object.spec.b}}-"`, `"true-"`},
		"embedded null":                {`"v={{request.object.spec.nul}}"`, `"v=null"`},
		"embedded list":                {`"v={{request.object.spec.l}}"`, `"v=[1,\"x\"]"`},
		"embedded object":              {`"v={{request.object.spec.m}}"`, `"v={\"a\":1,\"k\":\"\\u003cv\\u003e\"}"`},
		"several":                      {`"{{request.object.spec.s}}/{{request.object.spec.i}}"`, `"abc/5"`},
		"side by side":                 {`"{{request.object.spec.s}}{{request.object.spec.i}}{{request.object.spec.s}}"`, `"abc5abc"`},
		"side by side, one empty":      {`"{{request.object.spec.e}}{{request.object.spec.i}}"`, `5`},
		"braces in an expression":      {`"{{request.object.spec.{a: s, b: nope}}}"`, `{"a":"abc","b":null}`},
		"braces around":                {`"{ {{request.object.spec.i}} }"`, `"{ 5 }"`},
		"a brace right before":         {`"{{{request.object.spec.i}}"`, `"{5"`},
		"a letter of many bytes":       {`"é{{request.object.spec.i}}"`, `"é5"`},
		"no variable":                  {`"{{ request.object.spec.i"`, `"{{ request.object.spec.i"`},
		"braces in a quoted text":      {`"{{ join('', ['{', '}', 'x']) }}"`, `"{}x"`},
		"nested":                       {`"{{request.object.spec.{{element.name}}.s}}"`, `"deep"`},
		"nested in quotes":             {`"{{request.object.spec.\"{{element.name}}\".s}}"`, `"deep"`},
		"nested and embedded":          {`"v={{ to_upper('{{request.object.spec.s}}') }}"`, `"v=ABC"`},
		"nested with an empty one":     {`"{{request.object.spec.{{request.object.spec.e}}i}}"`, `5`},
		"whole text is not looked at":  {`"{{request.object.spec.tmpl}}"`, `"{{request.object.spec.s}}"`},
		"embedded text is looked at":   {`"T:{{request.object.spec.tmpl}}"`, `"T:abc"`},
		"shallow":                      {`"T:{{- request.object.spec.tmpl }}"`, `"T:{{request.object.spec.s}}"`},
		"shallow whole":                {`"{{- request.object.spec.i }}"`, `5`},
		"shallow with space":           {`"{{ - request.object.spec.tmpl }}"`, `"{{request.object.spec.s}}"`},
		"shallow first":                {`"{{-request.object.spec.tmpl2}} {{request.object.spec.s}}"`, `"a {{ request.object.spec.s }} b abc"`},
		"shallow last ends all":        {`"{{request.object.spec.tmpl}} {{- request.object.spec.s}}"`, `"{{request.object.spec.s}} abc"`},
		"shallow before another":       {`"{{- request.object.spec.s }}{{request.object.spec.i}}"`, `"abc{{request.object.spec.i}}"`},
		"shallow after another":        {`"{{request.object.spec.i}}{{- request.object.spec.tmpl }}"`, `"5{{request.object.spec.s}}"`},
		"shallow inside":               {`"{{ to_upper('{{- request.object.spec.s }}') }}"`, `"{{ to_upper('abc') }}"`},
		"shallow and no text":          {`"x{{- request.object.spec.tm.l }}"`, `"x[\"{{request.object.spec.l}}\"]"`},
		"shallow with an escape":       {`"E:{{- request.object.spec.esc }}"`, `"E:\\{{request.object.kind}}"`},
		"escape":                       {`"x \\{{ a }} {{request.object.spec.s}}"`, `"x {{ a }} abc"`},
		"escape without variables":     {`{"a": "\\{{a}}", "b": 1}`, `{"a":"{{a}}","b":1}`},
		"escape around":                {`"\\{{ {{request.object.spec.s}} }}"`, `"{{ abc }}"`},
		"escape of an escape":          {`"\\\\{{request.object.spec.s}}"`, `"\\{{request.object.spec.s}}"`},
		"escape in a value":            {`"E:{{request.object.spec.esc}}"`, `"E:{{request.object.kind}}"`},
		"escape in a whole value":      {`"{{request.object.spec.esc}}"`, `"\\{{request.object.kind}}"`},
		"a value that escapes":         {`"{{request.object.spec.bs}}{{request.object.spec.i}}"`, `"x{{request.object.spec.i}}"`},
		"a value that opens":           {`"x{{request.object.spec.open}}{request.object.spec.i}}"`, `"x5"`},
		"values that form a variable":  {`"x{{request.object.spec.pre}}{{request.object.spec.close}}"`, `"xpreabc"`},
		"variables in an object":       {`"{{request.object.spec.tm}}"`, `{"abc":"y5","l":[[1,"x"]],"q":"{{a}} $(x)","w":"{{request.object.spec.s}}","z":5}`},
		"shallow does not reach there": {`"{{- request.object.spec.tm.l }}"`, `[[1,"x"]]`},
		"key":                          {`{"x/{{request.object.spec.s}}": "{{request.object.spec.i}}"}`, `{"x/abc":5}`},
		"key of a static value":        {`{"{{request.object.spec.s}}": {"a": 1}, "b": 2}`, `{"abc":{"a":1},"b":2}`},
		"key that is null":             {`{"{{request.object.spec.nul}}": 1}`, `{"{{request.object.spec.nul}}":1}`},
		"key with an escape":           {`{"\\{{a}}": 1, "b": "{{request.object.spec.i}}"}`, `{"b":5,"{{a}}":1}`},
		"key of an escape and a value": {`{"\\{{a}}": "{{request.object.spec.i}}"}`, `{"{{a}}":5}`},
		"key that is there":            {`{"abc": "static", "{{request.object.spec.s}}": 1}`, `{"abc":1}`},
		"keys that become the same":    {`{"{{ request.object.spec.s}}": 1, "{{request.object.spec.s}}": 2}`, `{"abc":2}`},
		"default":                      {`"{{ request.object.spec.nope.x || 'd' }}"`, `"d"`},
		"self":                         {`{"spec": {"s": "{{@}}.x"}}`, `{"spec":{"s":"abc.x"}}`},
		"self with space":              {`{"spec": {"i": "{{ @ }}"}}`, `{"spec":{"i":5}}`},
		"self in a list":               {`{"spec": {"l": [0, "{{@}}"]}}`, `{"spec":{"l":[0,"x"]}}`},
		"self in a call":               {`{"spec": {"s": "{{ to_upper('{{@}}') }}"}}`, `{"spec":{"s":"ABC"}}`},
		"self with quotes":             {`{"metadata": {"labels": {"a.b/c": "{{@}}"}}}`, `{"metadata":{"labels":{"a.b/c":"dotted"}}}`},
		"self in a value":              {`{"spec": {"s": "-{{request.object.spec.at}}"}}`, `{"spec":{"s":"-abc"}}`},
		"self of a key":                {`{"spec": {"e": {"{{ to_string('{{@}}') }}": 1}}}`, `{"spec":{"e":{"":1}}}`},
		"nothing to do":                {`{"a": [1, "x", null, {"b": "$x \\n"}]}`, `{"a":[1,"x",null,{"b":"$x \\n"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			value := decode(t, tc.value)
			before := encode(t, value)
			compiled, faults := compiler().Value(value, inPatch(value))
			if len(faults) > 0 {
				t.Fatalf("faults: %v", faults)
			}
			for range 2 {
				got, err := compiled.Render(t.Context(), budget(), scope(t))
				if err != nil {
					t.Fatal(err)
				}
				if got := encode(t, got); got != encode(t, decode(t, tc.want)) {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			}
			if after := encode(t, value); after != before {
				t.Errorf("the template has been modified: %s", after)
			}
		})
	}
}

func TestRenderErrors(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"missing field": {
			`{"spec": {"out": {"r": "{{ request.object.spec.nope }}"}}}`,
			`spec.out.r: variable {{ request.object.spec.nope }}: Unknown key "nope" in path`,
		},
		"in a list":         {`["a", {"b.c": "{{nope}}"}]`, `[1][b.c]: variable {{ nope }}: Unknown key "nope" in path`},
		"self":              {`{"spec": {"nope": "{{@}}"}}`, `spec.nope: variable {{ request.object.spec.nope }}: Unknown key "nope" in path`},
		"key":               {`{"a": {"{{request.object.spec.m}}": 1}}`, `a: the key "{{request.object.spec.m}}" becomes an object, but must be a string`},
		"key, number":       {`{"{{request.object.spec.i}}": 1}`, `the key "{{request.object.spec.i}}" becomes a number, but must be a string`},
		"formed at render":  {`"{{request.object.spec.x1.{{request.object.spec.i}}}}"`, `variable {{ request.object.spec.x1.5 }}: at character 24: Expected identifier, lbracket, or lbrace`},
		"endless text":      {`{"a": "x{{loop.s}}"}`, `a: variables stand in values of variables more than 32 levels deep`},
		"endless key":       {`{"a": "{{loop.k}}"}`, `a: variables stand in values of variables more than 32 levels deep`},
		"missing in values": {`"{{ {x: '{{nope}}'} }}"`, `variable {{ nope }}: Unknown key "nope" in path`},
	} {
		t.Run(name, func(t *testing.T) {
			value := decode(t, tc.value)
			compiled, faults := compiler().Value(value, inPatch(value))
			if len(faults) > 0 {
				t.Fatalf("faults: %v", faults)
			}
			got, err := compiled.Render(t.Context(), budget(), scope(t))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestErrorsAs(t *testing.T) {
	compiled, _ := compiler().Value("x {{ element.nope }}", template.Place{})
	_, err := compiled.Render(t.Context(), budget(), scope(t))
	if missing, ok := errors.AsType[*jmespath.NotFoundError](err); !ok || missing.Key != "nope" {
		t.Errorf("%v is no NotFoundError", err)
	}
	if located, ok := errors.AsType[*template.Error](err); !ok || located.Expression != "element.nope" {
		t.Errorf("%v does not say where", err)
	}
}

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		want  []string
	}{
		"syntax":           {`{"a": "{{ x. }}"}`, []string{"a: variable {{ x. }}: "}},
		"unknown function": {`["{{ nope(x) }}"]`, []string{`0: variable {{ nope(x) }}: unknown function "nope"`}},
		"arity":            {`"{{ length() }}"`, []string{": variable {{ length() }}: function length takes 1 argument, not 0"}},
		"empty":            {`"{{ }}"`, []string{": variable {{ }}: the expression is empty"}},
		"key":              {`{"b": {"{{ ( }}": 1}}`, []string{"b.{{ ( }}: variable {{ ( }}: "}},
		"nested":           {`"{{ x.{{ ( }} }}"`, []string{": variable {{ ( }}: "}},
		"the next one":     {`"{{a}}{{ ( }}"`, []string{": variable {{ ( }}: "}},
		"all at once":      {`{"b": "{{ ( }}", "a": ["{{ ) }}"]}`, []string{"a.0: variable {{ ) }}: ", "b: variable {{ ( }}: "}},
		"not a variable":   {`"{{ ( } }} \\{{ ( }}"`, nil},
		"reference":        {`{"a": "$(./../b)", "c": "x"}`, []string{"a: reference $(./../b): "}},
	} {
		t.Run(name, func(t *testing.T) {
			value := decode(t, tc.value)
			compiled, faults := compiler().Value(value, inPatch(value))
			if len(faults) != len(tc.want) {
				t.Fatalf("got %v, want %v", faults, tc.want)
			}
			for i, fault := range faults {
				if got := strings.Join(fault.Path, ".") + ": " + fault.Detail; !strings.HasPrefix(got, tc.want[i]) {
					t.Errorf("got %s, want %s", got, tc.want[i])
				}
			}
			if len(tc.want) == 0 {
				return
			}
			if _, static := compiled.Static(); static {
				t.Error("a template with faults must not be static")
			}
			if got, err := compiled.Render(t.Context(), budget(), scope(t)); err == nil {
				t.Errorf("a template with faults renders to %v", got)
			}
		})
	}
}

func TestStaticIsShared(t *testing.T) {
	value := decode(t, `{"a": {"b": [1]}, "c": "{{request.object.spec.i}}", "l": [{"d": 1}, "{{element}}"]}`)
	compiled, _ := compiler().Value(value, template.Place{})
	rendered, err := compiled.Render(t.Context(), budget(), scope(t))
	if err != nil {
		t.Fatal(err)
	}
	part := func(value any, key string) uintptr {
		object, _ := value.(map[string]any)
		return reflect.ValueOf(object[key]).Pointer()
	}
	if part(value, "a") != part(rendered, "a") {
		t.Error("a part without variables has been copied")
	}
	if part(value, "l") == part(rendered, "l") {
		t.Error("a list with variables has not been copied")
	}

	static, _ := compiler().Value(decode(t, `{"a": {"b": "{{"}}`), template.Place{})
	first, ok := static.Static()
	if !ok {
		t.Fatal("a template without variables is not static")
	}
	if again, _ := static.Render(t.Context(), &jmespath.Run{}, nil); reflect.ValueOf(first).Pointer() != reflect.ValueOf(again).Pointer() {
		t.Error("a static template has been copied")
	}
}

func TestUses(t *testing.T) {
	value := decode(t, `{"b": "{{ x.y || z }}{{ not_null(w) }}", "a": ["{{ request.{{ element }} }}", "{{@}}"], "{{ key }}": "{{ x }}"}`)
	compiled, faults := compiler().Value(value, inPatch(value))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got []string
	for _, use := range compiled.Uses() {
		got = append(got, fmt.Sprintf("%s %t %s: %s", use.Name, use.Leading, strings.Join(use.Path, "."), use.Expression))
	}
	want := []string{
		"element true a.0: element", "request true a.1: @",
		"x true b: x.y || z", "z false b: x.y || z", "w false b: not_null(w)",
		"x true {{ key }}: x", "key true {{ key }}: key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := compiled.Roots(), []string{"element", "request", "x", "z", "w", "key"}; !slices.Equal(got, want) {
		t.Errorf("roots: got %q, want %q", got, want)
	}
}

func TestDeletes(t *testing.T) {
	for _, text := range []string{
		"{{ request.object.spec.s }}", "{{@}}", "{{ to_string('{{@}}') }}", "{{ {{ to_string('request.object.spec.s') }} }}",
	} {
		value := map[string]any{"spec": map[string]any{"s": text}}
		compiled, _ := compiler().Value(value, inPatch(value))
		run := budget()
		run.Deletes = true
		got, err := compiled.Render(t.Context(), run, scope(t))
		if err != nil || encode(t, got) != `{"spec":{"s":"old"}}` {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}

func TestSelfPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		path   []string
		target bool
		want   string
	}{
		"rule":           {[]string{"mutate", "patchStrategicMerge"}, false, "object"},
		"target":         {[]string{"mutate", "patchStrategicMerge"}, true, "target"},
		"foreach":        {[]string{"mutate", "foreach", "0", "patchStrategicMerge"}, false, "object"},
		"nested foreach": {[]string{"mutate", "foreach", "0", "foreach", "1", "patchStrategicMerge"}, true, "target"},
		"deeper":         {[]string{"mutate", "patchStrategicMerge", "spec"}, false, "inner"},
	} {
		t.Run(name, func(t *testing.T) {
			at := fields{"request": decode(t, `{"object": {"a": {"b-c": "object"}, "spec": {"a": {"b-c": "inner"}}}}`)}
			if tc.target {
				at["target"] = decode(t, `{"a": {"b-c": "target"}}`)
			}
			compiled, _ := compiler().Value(decode(t, `{"a": {"b-c": "{{@}}"}}`), template.Place{Path: tc.path})
			got, err := compiled.Render(t.Context(), budget(), at)
			if want := `{"a":{"b-c":"` + tc.want + `"}}`; err != nil || encode(t, got) != want {
				t.Errorf("got %v, %v, want %s", got, err, want)
			}
		})
	}
}

func TestResolved(t *testing.T) {
	var got []string
	run := budget()
	run.Resolved = func(expression string, value any, err error) {
		got = append(got, fmt.Sprintf("%s = %v, %v", expression, value, err))
	}
	value := decode(t, `{"a": "{{ element.name }}-{{ request.object.spec.{{element.name}}.s }}", "b": "{{ nope }}"}`)
	compiled, _ := compiler().Value(value, template.Place{})
	if _, err := compiled.Render(t.Context(), run, scope(t)); err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"element.name = x1, <nil>", "element.name = x1, <nil>", "request.object.spec.x1.s = deep, <nil>",
		`nope = <nil>, Unknown key "nope" in path`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
