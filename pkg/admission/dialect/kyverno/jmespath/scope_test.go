// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

func TestRoots(t *testing.T) {
	tests := []struct {
		expression, leading string
		want                []string
	}{
		{"request.object.metadata.name", "request", []string{"request"}},
		{"a || b.c || a.d", "a", []string{"a", "b"}},
		{"a | b.c", "a", []string{"a"}},
		{"@ | b.c", "", []string{"b"}},
		{"@.b", "", []string{"b"}},
		{"@", "", nil},
		{"*", "", nil},
		{"*.a", "", nil},
		{"'text'", "", nil},
		{"'text' || a", "", []string{"a"}},
		{"[a, b.c]", "a", []string{"a", "b"}},
		{"{x: a, y: b[0]}", "a", []string{"a", "b"}},
		{"a[?b == c].d", "a", []string{"a"}},
		{"a[].b.c", "a", []string{"a"}},
		{"a.*.b", "a", []string{"a"}},
		{"a.[b, c]", "a", []string{"a"}},
		{"a[1:]", "a", []string{"a"}},
		{"[0]", "", nil},
		{"!a", "a", []string{"a"}},
		{"a == b && c > `1`", "a", []string{"a", "b", "c"}},
		{"length(a)", "", []string{"a"}},
		{"map(&b, a[*].c)", "", []string{"a"}},
		{"a.merge(b, c)", "a", []string{"a"}},
		{`"with-dash".a`, "with-dash", []string{"with-dash"}},
		{"(a || b).c", "a", []string{"a", "b"}},
	}
	for _, test := range tests {
		e, err := NewCompiler().Compile(test.expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Roots(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("roots of %s are %q, want %q", test.expression, got, test.want)
		}
		if got, ok := e.Leading(); got != test.leading || ok != (test.leading != "") {
			t.Errorf("%s begins with %q, %t, want %q", test.expression, got, ok, test.leading)
		}
	}
}

// TestNeeded: without the field that an expression needs, it fails; with any other field
// missing, it need not.
func TestNeeded(t *testing.T) {
	tests := map[string]string{
		"a": "a", "a.b.c": "a", "a[0]": "a", "a[0].b": "a", "a.[b]": "a",
		"(a)": "a", "a.to_string(@)": "a", `"with-dash".a`: "with-dash",
		"a | b": "", "a[*].b": "", "a[1:]": "", "a[]": "", "a.*": "", "a[?b]": "",
		"a || 'x'": "", "a && b": "", "!a": "", "a == b": "", "[a]": "", "{x: a}": "", "(a || 'x').b": "",
		"not_null(a, 'x')": "", "'text'": "", "@": "", "*": "", "[0]": "",
	}
	for text, want := range tests {
		e, err := NewCompiler().Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := e.Needed(); got != want || ok != (want != "") {
			t.Errorf("%s needs %q, %t, want %q", text, got, ok, want)
		}
		_, err = e.Search(t.Context(), &Run{Steps: 1000, Bytes: 1000}, fixed{})
		var missing *NotFoundError
		if want != "" && !errors.As(err, &missing) {
			t.Errorf("%s without %s: got %v, want that it is missing", text, want, err)
		}
	}
}

// fixed is a scope of known fields.
type fixed map[string]any

func (f fixed) Field(_ context.Context, name string) (any, bool, error) {
	if err, ok := f[name].(error); ok {
		return nil, false, err
	}
	value, ok := f[name]
	return value, ok, nil
}

func (f fixed) Object(context.Context) (map[string]any, error) {
	all := map[string]any{}
	for name, value := range f {
		if err, ok := value.(error); ok {
			return nil, err
		}
		all[name] = value
	}
	return all, nil
}

func TestScope(t *testing.T) {
	unreadable := errors.New("ConfigMap shop/cm: not found")
	good := fixed{"a": map[string]any{"b": int64(1)}, "l": []any{int64(1)}, "z": nil}
	bad := fixed{"a": map[string]any{"b": int64(1)}, "cm": unreadable, "gone": &NotFoundError{Key: "x"}}
	tests := map[string]struct {
		expression string
		scope      fixed
		want       any
		err        error
	}{
		"a field":                     {"a.b", good, int64(1), nil},
		"a field of all":              {"@.a.b", good, int64(1), nil},
		"a field after a pipe":        {"@ | a.b", good, int64(1), nil},
		"a field that is null":        {"z", good, nil, nil},
		"a missing field":             {"b || a.b", good, int64(1), nil},
		"all":                         {"@", good, map[string]any(good), nil},
		"all keys":                    {"keys(@)", good, []any{"a", "l", "z"}, nil},
		"all values":                  {"*", good, []any{map[string]any{"b": int64(1)}, []any{int64(1)}}, nil},
		"all in a list":               {"[@, a.b]", good, []any{map[string]any(good), int64(1)}, nil},
		"no list":                     {"[0]", good, nil, nil},
		"no list to slice":            {"[1:]", good, nil, nil},
		"no list to project":          {"[*]", good, nil, nil},
		"no list to flatten":          {"[]", good, nil, nil},
		"no list to filter":           {"[?a]", good, nil, nil},
		"true":                        {"!@", good, false, nil},
		"compared":                    {"@ == @", good, true, nil},
		"what is not asked is unread": {"@ | a.b", bad, int64(1), nil},
		"not read":                    {"cm.data", bad, nil, unreadable},
		"not read, with a default":    {"cm.data || 'x'", bad, nil, unreadable},
		"not read, left of a filter":  {"cm.data[?a]", bad, nil, unreadable},
		"not read, flattened":         {"cm.data[]", bad, nil, unreadable},
		"not read, as a whole":        {"keys(@)[]", fixed{"cm": unreadable}, nil, unreadable},
		"not read, in a call":         {"not_null(cm, 'x')", bad, nil, unreadable},
		"a failure is no absence":     {"gone || 'x'", bad, nil, bad["gone"].(error)}, //nolint:forcetypeassert // it is one
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := NewCompiler().Compile(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Search(t.Context(), plenty(), test.scope)
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Fatalf("got error %v, want %v", err, test.err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}
