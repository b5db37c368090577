// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	const pod = "{metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}"
	for _, test := range []struct{ name, overlay, want, skipped string }{
		{"a value", "{metadata: {labels: {+(team): '{{ team }}'}}}", "{metadata: {labels: {app: web, team: red}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"a typed value", "{spec: {(containers): '*', x: '{{ number }}'}}", "", "condition (containers) at spec: the value does not match"},
		{"a number", "{spec: {+(priority): '{{ number }}'}}", "{metadata: {labels: {app: web}}, spec: {priority: 5, containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"a condition", "{spec: {containers: [{(name): '{{ second }}', image: '{{ team }}:1'}]}}", "{metadata: {labels: {app: web}}, spec: {containers: [{name: b, image: 'red:1'}, {name: a, image: x}]}}", ""},
		{"a condition in a map", "{(metadata): {labels: {app: '{{ team }}'}}, a: b}", "", "condition (metadata): the value does not match"},
		{"a name without anchor", "{spec: {containers: [{name: '{{ second }}', +(tty): true}]}}", "{metadata: {labels: {app: web}}, spec: {containers: [{name: b, image: y, tty: true}, {name: a, image: x}]}}", ""},
		{"the key of a condition", "{metadata: {labels: {'({{ key }})': web, hit: x}}}", "{metadata: {labels: {app: web, hit: x}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"the key of what is added", "{metadata: {labels: {'+({{ key }})': other, hit: x}}}", "{metadata: {labels: {app: web, hit: x}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"a key", "{metadata: {labels: {'{{ key }}-{{ second }}': x}}}", "{metadata: {labels: {app: web, app-b: x}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"a key of the form of an anchor", "{metadata: {labels: {'{{ anchor }}': other}}}", "", ""},
		{"a whole part with anchors", "{spec: '{{ part }}'}", "{metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: x, tty: true}, {name: b, image: y}]}}", ""},
		{"a whole overlay", "'{{ whole }}'", "{metadata: {labels: {app: web, x: y}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"data that only looks like anchors", "{data: '{{ data }}'}", "{data: {=(a): 1, X(b): [{^(c): 2}]}, metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"a reference", "{metadata: {labels: {(app): web, +(copy): $(./../app)}}}", "{metadata: {labels: {app: web, copy: web}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"a reference in a condition", "{metadata: {labels: {(app): $(../hit), hit: web}}}", "{metadata: {labels: {app: web, hit: web}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"escapes", "{metadata: {labels: {+(a): '\\{{ b }}', '\\{{ c }}': '\\$(D)'}}}", "{metadata: {labels: {app: web, a: '{{ b }}', '{{ c }}': $(D)}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
		{"where it stands", "{spec: {containers: [{(name): b, image: '{{@}}-new'}]}}", "{metadata: {labels: {app: web}}, spec: {containers: [{name: b, image: x-new}, {name: a, image: x}]}}", ""},
		{"+ with a variable beside it", "{metadata: {(labels): {+(a): '{{ team }}', b: '{{ second }}'}}}", "{metadata: {labels: {app: web, a: red, b: b}}, spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before := object(t, "Pod", pod)
			scope := variables{
				"team": "red", "number": int64(5), "second": "b", "key": "app", "anchor": "+(app)",
				"request": map[string]any{"object": before},
				"part":    decode(t, "{containers: [{(name): a, tty: true}]}"),
				"whole":   decode(t, "{metadata: {labels: {(app): web, x: y}}}"),
				"data":    decode(t, "{=(a): 1, X(b): [{^(c): 2}]}"),
			}
			overlay := compile(t, test.overlay)
			for range 2 {
				got, skipped, err := overlay.Apply(t.Context(), newRun(), scope, before)
				if err != nil {
					t.Fatal(err)
				}
				want := before
				if test.want != "" {
					want = object(t, "Pod", test.want)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if skipped != test.skipped {
					t.Errorf("skipped %q, want %q", skipped, test.skipped)
				}
			}
		})
	}
}

// TestEmptyMaps is about variables that are empty maps, which add nothing, and about
// empty maps that are written or lie deeper in a value, which stay.
func TestEmptyMaps(t *testing.T) {
	t.Parallel()
	const pod = "{metadata: {labels: {app: web}}, spec: {volumes: [{name: a, emptyDir: {medium: Memory}}]}}"
	for _, test := range []struct{ name, overlay, want string }{
		{"written", "{spec: {volumes: [{name: b, emptyDir: {}}], x: {}}}", "{metadata: {labels: {app: web}}, spec: {x: {}, volumes: [{name: b, emptyDir: {}}, {name: a, emptyDir: {medium: Memory}}]}}"},
		{"a variable", "{spec: {x: '{{ empty }}', y: 1}}", "{metadata: {labels: {app: web}}, spec: {y: 1, volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"a default", "{spec: {x: '{{ none || `{}` }}', y: 1}}", "{metadata: {labels: {app: web}}, spec: {y: 1, volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"what is there", "{metadata: {labels: '{{ empty }}'}, spec: {volumes: '{{ empty }}'}}", ""},
		{"all that a map has", "{spec: {x: {y: {z: '{{ empty }}'}, +(w): '{{ empty }}'}}}", ""},
		{"all that is added", "{metadata: {annotations: {+(a): '{{ empty }}'}}}", ""},
		{"beside a written one", "{spec: {x: {y: '{{ empty }}', z: {}}}}", "{metadata: {labels: {app: web}}, spec: {x: {z: {}}, volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"deeper in a value", "{spec: {x: '{{ deep }}'}}", "{metadata: {labels: {app: web}}, spec: {x: {y: {}, z: [{}]}, volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"in a map with a variable in a key", "{spec: {'{{ key }}': '{{ empty }}'}}", "{metadata: {labels: {app: web}}, spec: {app: {}, volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"an element", "{spec: {x: [a, '{{ empty }}', b]}}", "{metadata: {labels: {app: web}}, spec: {x: [a, b], volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"all elements", "{spec: {x: ['{{ empty }}', {y: '{{ empty }}'}]}}", ""},
		{"a list without elements", "{spec: {x: '{{ list }}', y: []}}", "{metadata: {labels: {app: web}}, spec: {x: [], y: [], volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"for an element", "{spec: {volumes: [{(name): a, emptyDir: '{{ empty }}', y: 1}]}}", "{metadata: {labels: {app: web}}, spec: {volumes: [{name: a, emptyDir: {medium: Memory}, y: 1}]}}"},
		{"all for an element", "{spec: {volumes: [{(name): a, x: '{{ empty }}'}]}}", ""},
		{"a condition", "{metadata: {(labels): '{{ empty }}', x: 1}}", "{metadata: {labels: {app: web}, x: 1}, spec: {volumes: [{name: a, emptyDir: {medium: Memory}}]}}"},
		{"an overlay", "'{{ empty }}'", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before := object(t, "Pod", pod)
			scope := variables{"key": "app", "none": nil, "empty": map[string]any{}, "list": []any{}, "deep": decode(t, "{y: {}, z: [{}]}")}
			got, skipped, err := compile(t, test.overlay).Apply(t.Context(), newRun(), scope, before)
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if test.want != "" {
				want = object(t, "Pod", test.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if skipped != "" {
				t.Errorf("skipped: %s", skipped)
			}
		})
	}
}

// TestErrors is about what cannot be applied. A variable that is not there is an error
// even where a condition is not met, as with Kyverno, which replaces variables first.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, overlay, object, want string }{
		{"no variable", "{metadata: {labels: {(app): no, a: '{{ nothing }}'}}}", "{}", "metadata.labels.a: variable {{ nothing }}: "},
		{"no variable in an element", "{spec: {containers: [{(name): '{{ nothing }}'}]}}", "{}", "spec.containers[0][(name)]: variable {{ nothing }}: "},
		{"no object", "'{{ text }}'", "{}", "the overlay must be an object"},
		{"a list of lists", "{a: '{{ lists }}'}", "{}", "a: there are anchors in a list that is an element of a list, where nothing is merged"},
		{"a list of lists in a condition", "{(metadata): '{{ adds }}'}", "{metadata: {}}", "[(metadata)][+(b)]: there are anchors in a list that is an element of a list, where nothing is merged"},
		{"a list for a map", "{a: [{(b): 1, c: 2}]}", "{a: {}}", "a: the overlay has a list where the object has none"},
		{"a map for a list", "{a: {+(b): 1}}", "{a: []}", "a: the patch has a map where the object has a list; only null replaces a value by one of another kind"},
		{"a merge that fails in an element", "{spec: {containers: [{(name): b, env: x}]}}", "{spec: {containers: [{name: a}, {name: b, env: []}]}}", "spec.containers[1].env: the patch has a scalar where the object has a list; only null replaces a value by one of another kind"},
		{"the whole object deleted", "{(kind): Pod, $patch: delete}", "{}", "the patch must not delete the whole object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scope := variables{"text": "x", "lists": decode(t, "[[{(a): b}]]"), "adds": decode(t, "{+(b): [[{(a): b}]]}")}
			got, _, err := compile(t, test.overlay).Apply(t.Context(), newRun(), scope, object(t, "Pod", test.object))
			if err == nil {
				t.Fatalf("no error, but %v", got)
			}
			if !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %q, want %q", err, test.want)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, overlay string
		want          []string
	}{
		{"no object", "[]", []string{": the overlay must be an object"}},
		{"a text", "x", []string{": the overlay must be an object"}},
		{"a list with anchors", "[{(a): b}]", []string{": the overlay must be an object"}},
		{"anchors of validate rules", "{spec: {=(a): {X(b): c}, '^(d)': [{(e): f}]}}", []string{
			"spec/=(a): this anchor says nothing outside of a condition and would be written into objects; there are (key), <(key) and +(key)",
			"spec/^(d): this anchor says nothing outside of a condition and would be written into objects; there are (key), <(key) and +(key)",
		}},
		{"no anchors", "{a: {(z: 1, 'x(y)': 2, '()': 3}}", []string{
			"a/(): a key with parentheses that is no anchor would be written into objects; there are (key), <(key) and +(key)",
			"a/(z: a key with parentheses that is no anchor would be written into objects; there are (key), <(key) and +(key)",
			"a/x(y): a key with parentheses that is no anchor would be written into objects; there are (key), <(key) and +(key)",
		}},
		{"a list of lists", "{a: [[{(b): c}]]}", []string{"a: there are anchors in a list that is an element of a list, where nothing is merged"}},
		{"expressions", "{a: {'(b)': '{{ x. }}', '+({{ y. }})': 1}, '(c)': [{(d): '{{ z. }}'}]}", []string{"(c)/0/(d): variable {{ z. }}: ", "a/(b): variable {{ x. }}: ", "a/+({{ y. }}): variable {{ y. }}: "}},
		{"a condition that is too deep", "{(a): " + strings.Repeat("{a: ", 1100) + "1" + strings.Repeat("}", 1100) + "}", []string{"(a): "}},
		{"a reference", "{a: {+(b): $(./../nothing)}}", []string{"a/+(b): reference $(./../nothing): "}},
		{"too deep", "{+(a): " + strings.Repeat("{a: ", 250) + "1" + strings.Repeat("}", 250) + "}", []string{"+(a)/a/"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			overlay, faults := anchor.Compile(decode(t, test.overlay), compiler(), template.Place{})
			var got []string
			for _, fault := range faults {
				got = append(got, strings.Join(fault.Path, "/")+": "+fault.Detail)
			}
			if len(got) != len(test.want) || !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("faults %q, want %q", got, test.want)
			}
			if _, _, err := overlay.Apply(t.Context(), newRun(), variables{}, object(t, "Pod", "{spec: {containers: []}}")); err == nil {
				t.Error("applied in spite of that")
			}
		})
	}
}

func TestUses(t *testing.T) {
	t.Parallel()
	overlay := compile(t, "{spec: {containers: [{(name): '{{ a.b }}', '+({{ c }})': '{{ d }}'}]}, (data): {x: '{{ e }}'}}")
	var got []string
	for _, use := range overlay.Uses() {
		got = append(got, use.Name+" "+strings.Join(use.Path, "/"))
	}
	slices.Sort(got)
	want := []string{"a spec/containers/0/(name)", "c spec/containers/0/+({{ c }})", "d spec/containers/0/+({{ c }})", "e (data)/x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestBudget is about overlays that cost much more than their size.
func TestBudget(t *testing.T) {
	t.Parallel()
	element := "{(name): a*, x: " + strings.Repeat("y", 1000) + "}"
	overlay := compile(t, "{spec: {containers: ["+strings.Repeat(element+", ", 100)+element+"]}}")
	var containers []any
	for range 1000 {
		containers = append(containers, map[string]any{"name": "a"})
	}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": containers}}
	for name, run := range map[string]*jmespath.Run{
		"steps": {Steps: 50_000, Bytes: 1 << 30},
		"bytes": {Steps: 1 << 30, Bytes: 32 << 20},
		"none":  {},
	} {
		if _, _, err := overlay.Apply(t.Context(), run, nil, pod); !errors.Is(err, jmespath.ErrBudget) {
			t.Errorf("%s: error %v, want %v", name, err, jmespath.ErrBudget)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := overlay.Apply(ctx, &jmespath.Run{Steps: 1 << 30, Bytes: 1 << 30}, nil, pod); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 10_000)
	var value any = map[string]any{"(" + long + ")": "x"}
	for range 20 {
		value = map[string]any{long: value}
	}
	overlay, faults := anchor.Compile(value, compiler(), template.Place{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	_, skipped, err := overlay.Apply(t.Context(), newRun(), nil, object(t, "Pod", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	if skipped == "" || len(skipped) > 1000 {
		t.Errorf("the reason has %d bytes", len(skipped))
	}
}
