// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/condition"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// variables is a scope that notes what is asked for.
type variables struct {
	values map[string]any
	asked  []string
}

func (v *variables) Field(_ context.Context, name string) (any, bool, error) {
	v.asked = append(v.asked, name)
	if name == "broken" {
		return nil, false, errors.New("cannot be read")
	}
	value, ok := v.values[name]
	return value, ok, nil
}

func (v *variables) Object(context.Context) (map[string]any, error) { return v.values, nil }

func newVariables() *variables {
	return &variables{values: map[string]any{
		"yes": "yes", "no": "no", "n": int64(5), "list": []any{"a", "b"}, "long": strings.Repeat("x", 10_000),
		"object": map[string]any{"b": nil, "a": []any{true, 1.5}},
	}}
}

func newRun(explain bool) *jmespath.Run {
	run := &jmespath.Run{Steps: 10_000, Bytes: 1 << 20}
	if explain {
		run.Resolved = func(string, any, error) {}
	}
	return run
}

func compile(document string) (*condition.Conditions, field.ErrorList) {
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		raw = []byte(document)
	}
	c := &template.Compiler{Expressions: jmespath.NewCompiler()}
	at := template.Place{Rule: map[string]any{"name": "r"}, Path: []string{"preconditions"}}
	return condition.Compile(&apiextensionsv1.JSON{Raw: raw}, c, at, field.NewPath("preconditions"))
}

// Conditions that hold, do not, and fail; each asks for one variable.
const (
	holds   = `{key: "{{ yes }}", operator: Equals, value: "yes"}`
	doesNot = `{key: "{{ no }}", operator: Equals, value: "yes"}`
	fails   = `{key: "{{ broken }}", operator: Equals, value: "yes"}`
)

func TestHolds(t *testing.T) {
	for name, test := range map[string]struct {
		conditions string
		want       bool
		asked      string
		why        string
		explained  string
		err        string
	}{
		"nothing":                    {"{}", true, "", "", "", ""},
		"null":                       {"null", true, "", "", "", ""},
		"an empty list":              {"[]", true, "", "", "", ""},
		"an empty any":               {"{any: []}", false, "", "any is empty", "any is empty", ""},
		"any that is null":           {"{any: null}", true, "", "", "", ""},
		"an empty all":               {"{all: []}", true, "", "", "", ""},
		"one of any":                 {"{any: [" + doesNot + ", " + holds + ", " + fails + "]}", true, "no yes", "", "", ""},
		"none of any":                {"{any: [" + doesNot + ", " + doesNot + "]}", false, "no no", "any[0]; any[1]", `any[0]: "no" Equals "yes" does not hold; any[1]: "no" Equals "yes" does not hold`, ""},
		"an error before one of any": {"{any: [" + fails + ", " + holds + "]}", false, "broken", "", "", "any[0].key: variable {{ broken }}: cannot be read"},
		"each of all":                {"{all: [" + holds + ", " + holds + "]}", true, "yes yes", "", "", ""},
		"not each of all":            {"{all: [" + holds + ", " + doesNot + ", " + fails + "]}", false, "yes no", "all[1]", `all[1]: "no" Equals "yes" does not hold`, ""},
		"any and all":                {"{any: [" + holds + "], all: [" + holds + "]}", true, "yes yes", "", "", ""},
		"any, and not all":           {"{any: [" + doesNot + ", " + holds + "], all: [" + doesNot + "]}", false, "no yes no", "all[0]", `all[0]: "no" Equals "yes" does not hold`, ""},
		"all, and none of any":       {"{any: [" + doesNot + "], all: [" + holds + "]}", false, "no yes", "any[0]", `any[0]: "no" Equals "yes" does not hold`, ""},
		"neither any nor all":        {"{any: [" + doesNot + "], all: [" + doesNot + "]}", false, "no no", "any[0]; all[0]", `any[0]: "no" Equals "yes" does not hold; all[0]: "no" Equals "yes" does not hold`, ""},
		"an error of all counts when none of any holds": {"{any: [" + doesNot + "], all: [" + fails + "]}", false, "no broken", "", "", "all[0].key: variable {{ broken }}: cannot be read"},
		"a list":                   {"[" + holds + ", " + holds + "]", true, "yes yes", "", "", ""},
		"not each of a list":       {"[" + holds + ", " + doesNot + ", " + fails + "]", false, "yes no", "[1]", `[1]: "no" Equals "yes" does not hold`, ""},
		"an error in a value":      {`[{key: a, operator: AnyIn, value: [a, "{{ nope }}"]}]`, false, "nope", "", "", `[0].value: [1]: variable {{ nope }}: Unknown key "nope" in path`},
		"an error of the operator": {`[{key: [1], operator: In, value: [a]}]`, false, "", "", "", "[0]: operators In and NotIn compare lists of strings only"},
		"a message":                {`{all: [{key: "{{ n }}", operator: GreaterThan, value: 9, message: at least ten}]}`, false, "n", "all[0]: at least ten", "all[0]: 5 GreaterThan 9 does not hold: at least ten", ""},
		"a type that stays":        {`{all: [{key: "{{ list }}", operator: AllIn, value: [b, a]}, {key: "{{ n }}", operator: Equals, value: 5.0}]}`, true, "list n", "", "", ""},
		"what was seen":            {`{all: [{key: "{{ object }}", operator: Equals, value: "{{ list }}"}]}`, false, "object list", "all[0]", `all[0]: {"a":[true,1.5],"b":null} Equals ["a","b"] does not hold`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, errs := compile(test.conditions)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, explain := range []bool{false, true} {
				scope := newVariables()
				got, why, err := compiled.Holds(t.Context(), newRun(explain), scope)
				want := test.why
				if explain {
					want = test.explained
				}
				if got != test.want || why != want || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("got %v, %q, error %v; want %v, %q, error %q", got, why, err, test.want, want, test.err)
				}
				if asked := strings.Join(scope.asked, " "); asked != test.asked {
					t.Errorf("asked for %q, want %q", asked, test.asked)
				}
			}
		})
	}
}

// TestRenderRest: what Holds leaves out, and nothing else.
func TestRenderRest(t *testing.T) {
	for name, test := range map[string]struct{ conditions, asked, err string }{
		"nothing":         {"null", "", ""},
		"what is static":  {"{any: [" + holds + ", {key: a, operator: Equals, value: a, message: m}]}", "", ""},
		"later ones":      {"{any: [" + holds + ", " + doesNot + "], all: [" + holds + "]}", "no", ""},
		"one that fails":  {"{any: [" + holds + ", " + fails + "]}", "broken", "any[1].key: variable {{ broken }}: cannot be read"},
		"a message":       {`[{key: a, operator: Equals, value: a, message: "because {{ nope }}"}]`, "nope", `[0].message: variable {{ nope }}: Unknown key "nope" in path`},
		"a message of it": {`{all: [{key: a, operator: Equals, value: a, message: "because {{ yes }}"}]}`, "yes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, errs := compile(test.conditions)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			scope := newVariables()
			err := compiled.RenderRest(t.Context(), newRun(false), scope)
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("got error %v, want %q", err, test.err)
			}
			if asked := strings.Join(scope.asked, " "); asked != test.asked {
				t.Errorf("asked for %q, want %q", asked, test.asked)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	one := func(condition string) string { return "{all: [" + condition + "]}" }
	for name, test := range map[string]struct {
		conditions string
		want       []string
	}{
		"a text":               {`"a"`, []string{"preconditions: Invalid value: preconditions are an object with any and all, or a list of conditions: json: cannot unmarshal"}},
		"no JSON":              {`{"any": [`, []string{"preconditions: Invalid value: preconditions are an object"}},
		"a misspelt any":       {"{Any: []}", []string{`preconditions: Invalid value: preconditions are an object with any and all, or a list of conditions: unknown field "Any"`}},
		"any in a list":        {"[{any: []}]", []string{`unknown field "[0].any"`}},
		"all is missing":       {one("{}"), []string{"preconditions.all[0].operator: Required value: say how key and value are compared: Equals, "}},
		"an operator":          {one("{key: a, operator: equals, value: a}"), []string{`preconditions.all[0].operator: Unsupported value: "equals": supported values: "Equals", "NotEquals"`}},
		"an expression":        {one(`{key: [{a: "{{ a( }}"}], operator: Equals, value: a}`), []string{"preconditions.all[0].key[0].a: Invalid value: "}},
		"an expression in any": {`{any: [{key: "{{ nope() }}", operator: Equals, value: a}]}`, []string{"preconditions.any[0].key: Invalid value: "}},
		"in a list, and twice": {`[{key: "{{ a( }}", operator: Equals, value: a, message: "{{ b( }}"}]`, []string{"preconditions[0].key: Invalid value: ", "preconditions[0].message: Invalid value: "}},
		"too many":             {"[" + strings.Repeat("{key: a, operator: Equals, value: a},", 1001) + "]", []string{"preconditions: Too many: 1001: must have at most 1000 items"}},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, errs := compile(test.conditions)
			if len(errs) != len(test.want) {
				t.Fatalf("got %v, want %q", errs, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("got %v, want %q", errs[i], want)
				}
			}
			if got, why, err := compiled.Holds(t.Context(), newRun(false), newVariables()); got || err == nil {
				t.Errorf("with faults: got %v, %q, error %v", got, why, err)
			}
		})
	}
	for _, allowed := range []string{
		`[{key: "{{ request.operation }}", operator: Equals, value: "{{ yes }}"}]`,
		`[{key: "{{ request.operation || 'x' }}", operator: Equals, value: x}]`,
		`[{key: "", operator: Equals, value: ""}]`,
	} {
		if _, errs := compile(allowed); len(errs) > 0 {
			t.Errorf("%s: %v", allowed, errs)
		}
	}
}

func TestNilConditionsHold(t *testing.T) {
	compiled, errs := condition.Compile(nil, nil, template.Place{}, nil)
	held, why, err := compiled.Holds(t.Context(), newRun(false), newVariables())
	if compiled != nil || errs != nil || !held || why != "" || err != nil || compiled.RenderRest(t.Context(), newRun(false), nil) != nil || compiled.Uses() != nil {
		t.Errorf("got %v, %v, %v, %q, error %v", compiled, errs, held, why, err)
	}
}

func TestUses(t *testing.T) {
	compiled, errs := compile(`{any: [{key: "{{ a.b }}", operator: Equals, value: [x, "{{ c }}"], message: "m {{ d }}"}], all: [{key: "{{ e }}", operator: Equals, value: x}]}`)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var got []string
	for _, use := range compiled.Uses() {
		got = append(got, use.Name+" at "+strings.Join(use.Path, "."))
	}
	if want := []string{"a at any.0.key", "c at any.0.value.1", "d at any.0.message", "e at all.0.key"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	long := `{key: ["{{ long }}", {"{{ long }}": "{{ long }}"}], operator: Equals, value: "{{ long }}", message: "` + strings.Repeat("m", 5000) + `"}`
	compiled, errs := compile("{any: [" + strings.Repeat(long+",", 50) + "]}")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	_, why, err := compiled.Holds(t.Context(), newRun(true), newVariables())
	if err != nil || len(why) > 6000 || !strings.HasSuffix(why, " and 42 more") {
		t.Errorf("%d bytes, error %v: %s", len(why), err, why)
	}
}

func TestBudget(t *testing.T) {
	compiled, errs := compile("{all: [" + holds + "]}")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if held, _, err := compiled.Holds(t.Context(), &jmespath.Run{}, newVariables()); held || !errors.Is(err, jmespath.ErrBudget) {
		t.Errorf("got %v, error %v", held, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if held, _, err := compiled.Holds(ended, newRun(false), newVariables()); held || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, error %v", held, err)
	}
}

// FuzzConditions: nothing panics, faults are errors, and a reason is given when and only
// when the conditions do not hold.
func FuzzConditions(f *testing.F) {
	for _, seed := range []string{"{any: [" + doesNot + "], all: [" + holds + "]}", "[" + fails + "]", `[{key: "{{ @ }}", operator: AnyIn, value: "{{ list[0] }}-{{ n }}", message: "\\{{ $(x) }}"}]`} {
		raw, err := yaml.YAMLToJSON([]byte(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, document string) {
		compiled, errs := compile(document)
		held, why, err := compiled.Holds(t.Context(), newRun(true), newVariables())
		switch {
		case len(errs) > 0 && err == nil:
			t.Errorf("faults %v, and no error", errs)
		case err != nil && (held || why != ""), err == nil && held != (why == ""):
			t.Errorf("got %v, %q, error %v", held, why, err)
		}
		if err == nil && held {
			_ = compiled.RenderRest(t.Context(), newRun(true), newVariables())
		}
	})
}
