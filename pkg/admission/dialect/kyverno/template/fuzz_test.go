// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

var errNaive = errors.New("the naive way does not know")

// naive replaces the variables of a text in the way that Kyverno describes, with regular
// expressions and without bounds, compiling all anew.
func naive(ctx context.Context, run *jmespath.Run, expressions *jmespath.Compiler, source string, at fields) (any, error) {
	variables := regexp.MustCompile(`(^|[^\\])\{\{((?:[^{}]|\{[^{}]*\})*)\}\}`)
	for range 33 {
		matches := variables.FindAllStringSubmatchIndex(source, -1)
		if len(matches) == 0 {
			return strings.ReplaceAll(source, `\{{`, "{{"), nil
		}
		var next strings.Builder
		from, shallow := 0, false
		for _, m := range matches {
			written := strings.TrimSpace(source[m[4]:m[5]])
			if shallow = strings.HasPrefix(written, "-"); shallow {
				written = strings.TrimSpace(written[1:])
			}
			if written == "@" {
				return nil, errNaive
			}
			compiled, err := expressions.Compile(written)
			if err != nil {
				return nil, err
			}
			value, err := compiled.Search(ctx, run, at)
			if err != nil {
				return nil, err
			}
			if m[3] == 0 && m[1] == len(source) {
				return value, nil
			}
			text, ok := value.(string)
			if !ok {
				encoded, err := json.Marshal(value)
				if err != nil {
					return nil, err
				}
				text = string(encoded)
			}
			if shallow {
				text = strings.ReplaceAll(text, "{{", `\{{`)
			}
			next.WriteString(source[from:m[3]])
			next.WriteString(text)
			from = m[1]
		}
		next.WriteString(source[from:])
		source = next.String()
		if shallow {
			return strings.ReplaceAll(source, `\{{`, "{{"), nil
		}
	}
	return nil, errNaive
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"{{ a }}", "x{{a}}{{b}}", "{{ a.{{ b }} }}", "{{- a }}{{ b }}", "{{ b }}{{- a }}", `\{{ a }} {{ b }}`, "{{@}}", "x {{ @ }}",
		"{{ to_upper('{{ b }}') }}", "$(./../k)", `\$(X)`, "{{ {x: a} }}", "{{ a || 'x' }}", "{{ @.a }}", "{{{b}}", "{{a}}}", "{{c}}a}}",
	} {
		for _, object := range []string{
			`{"a": 1, "b": "b"}`, `{"a": {"b": "{{a}}"}, "b": "b"}`, `{"a": "{{a}}", "b": "\\"}`, `{"a": {"{{b}}": "{{@}}"}, "b": "{", "c": "{{"}`,
			`{"a": "{{b}}", "b": "{{a}}"}`, `{"a": [null, 1.5, "<"], "b": ""}`, `{"request": {"object": {"k": "v"}}}`,
		} {
			f.Add(text, object)
		}
	}
	shared := compiler()
	f.Fuzz(func(t *testing.T, text, object string) {
		at := fields{}
		if len(text) > 1000 || kjson.UnmarshalCaseSensitivePreserveInts([]byte(object), (*map[string]any)(&at)) != nil {
			return
		}
		value := map[string]any{"k": text, text: []any{"v"}}
		before := encode(t, value)
		run := func() *jmespath.Run { return &jmespath.Run{Steps: 1 << 16, Bytes: 1 << 21} }

		compiled, _ := shared.Value(value, inPatch(value))
		first, err := compiled.Render(t.Context(), run(), at)
		again, errAgain := compiled.Render(t.Context(), run(), at)
		if !reflect.DeepEqual(first, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Errorf("got %v, %v, then %v, %v", first, err, again, errAgain)
		}
		if after := encode(t, value); after != before {
			t.Errorf("the template became %s", after)
		}
		if located, ok := errors.AsType[*template.Error](err); err != nil && !ok {
			t.Errorf("%v does not say where: %v", err, located)
		}
		same(t, shared, text, at, run)
	})
}

// same compares a text with what the naive way makes of it, and with its parts.
func same(t *testing.T, shared *template.Compiler, text string, at fields, run func() *jmespath.Run) {
	t.Helper()
	compiled, faults := shared.Text(text, template.Place{})
	got, err := compiled.Render(t.Context(), run(), at)
	if strings.Contains(text, "$(") || strings.Contains(text, "@") {
		return
	}
	want, naiveErr := naive(t.Context(), run(), shared.Expressions, text, at)
	written, isText := want.(string)
	if naiveErr != nil || !isText {
		if err == nil && !errors.Is(naiveErr, jmespath.ErrBudget) {
			t.Errorf("%q: got %q, want %v, %v", text, got, want, naiveErr)
		}
		return
	}
	if errors.Is(err, jmespath.ErrBudget) || len(faults) > 0 {
		return
	}
	if err != nil || got != written {
		t.Errorf("%q: got %q, %v, want %q", text, got, err, written)
	}
}
