// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ text, want, parts string }{
		"static":       {`\{{ a }} \$(B)`, `{{ a }} $(B)`, `"{{ a }} $(B)"`},
		"empty":        {``, ``, ``},
		"one":          {"a: {{request.object.spec.i}}\n", "a: 5\n", `"a: " <5> "\n"`},
		"whole":        {"{{request.object.spec.s}}", "abc", `<abc>`},
		"side by side": {"{{request.object.spec.s}}{{element.name}}", "abcx1", `<abc> <x1>`},
		"nested": {
			"v: {{ to_upper('{{request.object.spec.s}}') }}, {{request.object.spec.{{element.name}}}}",
			`v: ABC, {"s":"deep"}`, `"v: " <ABC> ", " <map[s:deep]>`,
		},
		"escape":     {`\{{x}} {{element.name}} \{{y}}`, `{{x}} x1 {{y}}`, `"{{x}} " <x1> " {{y}}"`},
		"null":       {"x{{request.object.spec.nul}}", "xnull", `"x" <<nil>>`},
		"reference":  {"$(/a)-{{element.name}}", "{{x}}-x1", ""},
		"unbalanced": {"{{ a {{element.name}}", "{{ a x1", `"{{ a " <x1>`},
	} {
		t.Run(name, func(t *testing.T) {
			at := template.Place{Rule: map[string]any{"a": `\{{x}}`}}
			compiled, faults := compiler().Text(tc.text, at)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if got, err := compiled.Render(t.Context(), budget(), scope(t)); got != tc.want {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
			if tc.parts == "" {
				return
			}
			var got []string
			for _, part := range compiled.Parts() {
				if part.Variable == nil {
					got = append(got, fmt.Sprintf("%q", part.Literal))
					continue
				}
				value, err := part.Variable.Render(t.Context(), budget(), scope(t))
				if err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprintf("<%v>", value))
			}
			if got := strings.Join(got, " "); got != tc.parts {
				t.Errorf("parts: got %s, want %s", got, tc.parts)
			}
		})
	}
}

func TestTextMustStayText(t *testing.T) {
	compiled, _ := compiler().Text("{{ request.object.spec.nul }}", template.Place{})
	_, err := compiled.Render(t.Context(), budget(), scope(t))
	if want := "variable {{ request.object.spec.nul }}: it is null, but must be a string"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPartsOfAValue(t *testing.T) {
	compiled, _ := compiler().Value("a {{ x }}", template.Place{})
	if parts := compiled.Parts(); parts != nil {
		t.Errorf("got %v: only texts have parts", parts)
	}
}

func TestExpression(t *testing.T) {
	for name, tc := range map[string]struct{ text, want, err string }{
		"static":   {text: " spec.i ", want: "5"},
		"variable": {text: "spec.{{element.name}}.s", want: "deep"},
		"whole":    {text: "{{ to_string('spec.s') }}", want: "abc"},
		"missing":  {text: "spec.nope", err: `Unknown key "nope" in path`},
		"no text":  {text: "{{request.object.spec.i}}", err: "variable {{ request.object.spec.i }}: it is a number, but must be a string"},
		"invalid":  {text: "spec.{{request.object.spec.i}}", err: "expression spec.5: at character 6: "},
		"empty":    {text: " {{request.object.spec.e}} ", err: "the expression is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			all := scope(t)
			compiled, faults := compiler().Expression(tc.text, template.Place{})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			request, _ := all["request"].(map[string]any)
			got, err := compiled.Search(t.Context(), budget(), all, request["object"])
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, %v, want %s", got, err, tc.err)
				}
			case err != nil || fmt.Sprint(got) != tc.want:
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestExpressionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":           "the expression is empty",
		"a.":         "expression a.: ",
		"{{ b. }}.c": "variable {{ b. }}: ",
	} {
		compiled, faults := compiler().Expression(text, template.Place{})
		if len(faults) != 1 || !strings.Contains(faults[0].Detail, want) {
			t.Errorf("%q: got %v, want %s", text, faults, want)
		}
		if got, err := compiled.Search(t.Context(), budget(), scope(t), scope(t)); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestExpressionNames(t *testing.T) {
	compiled, _ := compiler().Expression("a.b || c", template.Place{})
	if got := fmt.Sprint(compiled.Names(), compiled.Uses()); got != "[a c] []" {
		t.Errorf("got %s", got)
	}
	compiled, _ = compiler().Expression("a.{{ b }}", template.Place{})
	if got := fmt.Sprint(compiled.Names(), len(compiled.Uses())); got != "[] 1" {
		t.Errorf("got %s", got)
	}
}
