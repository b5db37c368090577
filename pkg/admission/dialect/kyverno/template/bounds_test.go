// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// chain is a scope of variables that are made of one another when they are asked for.
type chain struct {
	run       *jmespath.Run
	templates map[string]*template.Template
	values    map[string]any
}

func (c *chain) Field(ctx context.Context, name string) (any, bool, error) {
	if value, ok := c.values[name]; ok {
		return value, true, nil
	}
	made, ok := c.templates[name]
	if !ok {
		return nil, false, nil
	}
	value, err := made.Render(ctx, c.run, c)
	if err != nil {
		return nil, false, err
	}
	c.values[name] = value
	return value, true, nil
}

func (c *chain) Object(context.Context) (map[string]any, error) { return c.values, nil }

func TestDoubling(t *testing.T) {
	for name, value := range map[string]func(before string) any{
		"text":   func(before string) any { return "{{" + before + "}}{{" + before + "}}" },
		"list":   func(before string) any { return []any{"{{" + before + "}}", "{{" + before + "}}"} },
		"object": func(before string) any { return map[string]any{"a": "{{" + before + "}}", "b": "{{" + before + "}}"} },
		"list in a text": func(before string) any {
			return []any{"{{" + before + "}} {{" + before + "}}"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &chain{run: budget(), templates: map[string]*template.Template{}, values: map[string]any{"v0": "0123456789"}}
			for i := range 40 {
				compiled, faults := compiler().Value(value(fmt.Sprintf("v%d", i)), template.Place{})
				if len(faults) > 0 {
					t.Fatal(faults)
				}
				c.templates[fmt.Sprintf("v%d", i+1)] = compiled
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			started := time.Now()
			got, err := c.templates["v40"].Render(t.Context(), c.run, c)
			took := time.Since(started)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("got a %T", got)
			}
			t.Logf("%v after %v: %.200s", took, (after.TotalAlloc-before.TotalAlloc)>>10, err)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
				t.Errorf("allocated %d bytes", allocated)
			}
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	deep := any("{{request.object.spec.i}}")
	for range 101 {
		deep = []any{deep}
	}
	if _, faults := compiler().Value(deep, template.Place{}); len(faults) != 1 {
		t.Errorf("a deep value: got %v", faults)
	}
	nested := strings.Repeat("{{ ", 40) + "x" + strings.Repeat(" }}", 40)
	if _, faults := compiler().Value(nested, template.Place{}); len(faults) != 1 {
		t.Errorf("nested variables: got %v", faults)
	}

	if _, faults := compiler().Value(strings.Repeat("x{{a}}", 10_001), template.Place{}); len(faults) != 1 {
		t.Errorf("many variables: got %v", faults)
	}

	large := scope(t)
	large["big"] = strings.Repeat("x", 1<<20+1)
	for name, tc := range map[string]struct {
		value string
		run   *jmespath.Run
		want  string
	}{
		"too long":     {"{{big}}{{big}}", budget(), "the text would be longer than 2 MiB"},
		"bytes spent":  {"-{{big}}", &jmespath.Run{Steps: 1000, Bytes: 1000}, jmespath.ErrBudget.Error()},
		"steps spent":  {"{{big}}", &jmespath.Run{Bytes: 1000}, jmespath.ErrBudget.Error()},
		"endless, all": {"{{loop.m}}", budget(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, _ := compiler().Value(tc.value, template.Place{})
			_, err := compiled.Render(t.Context(), tc.run, large)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}

	compiled, _ := compiler().Value("-{{big}}", template.Place{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compiled.Render(ended, budget(), large); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: got %v", err)
	}
}

// TestLongTexts would not end in time if anything were looked at again and again.
func TestLongTexts(t *testing.T) {
	for _, piece := range []string{"{{", "{{{", "{{a", "{{{a}", "}}", "\\{{", "$(", "\\$(", "$(\n", "{{a}", "$(a ", "x", "{{a} }}"} {
		long := strings.Repeat(piece, 1<<20/len(piece))
		if _, faults := compiler().Value([]any{long, long + ")"}, template.Place{}); len(faults) > 2 {
			t.Errorf("%s: got %d faults", piece, len(faults))
		}
		at := fields{"long": long}
		compiled, _ := compiler().Value("x{{long}}", template.Place{})
		if _, err := compiled.Render(t.Context(), budget(), at); err != nil {
			t.Errorf("%s: %v", piece, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	shared := compiler()
	compiled, _ := shared.Value("{{ join('', ['{{ element }}', to_string('{{ element }}')]) }}", template.Place{})
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 400 {
				element := fmt.Sprintf("e%d-%d", worker%2, i*3)
				got, err := compiled.Render(t.Context(), budget(), fields{"element": element})
				if err != nil || got != element+element {
					t.Errorf("got %v, %v, want %s twice", got, err, element)
					return
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkRender(b *testing.B) {
	leaves := map[string]any{}
	for i := range 3 {
		inner := map[string]any{}
		for j := range 6 {
			inner[fmt.Sprintf("k%d", j)] = "static"
		}
		leaves[fmt.Sprintf("m%d", i)] = inner
	}
	for name, texts := range map[string][2]string{
		"none":     {"x", "y"},
		"whole":    {"{{ request.object.spec.i }}", "{{ request.object.metadata.name }}"},
		"embedded": {"a-{{ request.object.spec.i }}", "b-{{ request.object.metadata.name }}"},
		"nested":   {"{{request.object.spec.{{element.name}}.s}}", "{{ to_upper('{{element.name}}') }}"},
	} {
		b.Run(name, func(b *testing.B) {
			value := map[string]any{"leaves": leaves, "vars": map[string]any{"a": texts[0], "b": texts[1]}}
			compiled, faults := compiler().Value(value, template.Place{})
			if len(faults) > 0 {
				b.Fatal(faults)
			}
			at := scope(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compiled.Render(b.Context(), budget(), at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
