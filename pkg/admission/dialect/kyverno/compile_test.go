// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestFaults: what is wrong with a policy is told at its field, all at once, and the
// requests that it is about fail.
func TestFaults(t *testing.T) {
	tests := []struct {
		name   string
		policy string
		want   []string // fields, and a part of the text
		later  bool     // the fault concerns the requests that come to it
	}{
		{name: "syntax", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ request.object. }}"}}}}`), want: []string{"spec.rules[0].mutate.patchStrategicMerge.metadata.labels.a: at character"}},
		{name: "an unknown function", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ nope(request.object) }}"}}}}`), want: []string{`spec.rules[0].mutate.patchStrategicMerge.metadata.labels.a: unknown function "nope"`}, later: true},
		{name: "arity", policy: rule("context: [{name: v, variable: {jmesPath: \"split('a')\"}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{v}}\"}}}}"), want: []string{"spec.rules[0].context[0].variable.jmesPath: function split takes 2 arguments, not 1"}, later: true},
		{name: "an undefined variable", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ nobody.knows }}"}}}}`), want: []string{`spec.rules[0].mutate.patchStrategicMerge.metadata.labels.a: variable "nobody" is not defined`}},
		{name: "an undefined list", policy: rule("mutate: {foreach: [{list: nobody.knows, patchesJson6902: \"- {op: remove, path: /metadata/labels/a}\"}]}"), want: []string{`spec.rules[0].mutate.foreach[0].list: variable "nobody" is not defined`}},
		{name: "an element of no loop", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ element.name }}"}}}}`), want: []string{`spec.rules[0].mutate.patchStrategicMerge.metadata.labels.a: variable "element" is not defined here`}},
		{name: "the list of a loop that is its element", policy: rule("mutate: {foreach: [{list: element, patchesJson6902: \"- {op: remove, path: /metadata/labels/a}\"}]}"), want: []string{`spec.rules[0].mutate.foreach[0].list: variable "element" is not defined here`}},
		{
			name:   "an element after its loop",
			policy: rule("mutate: {foreach: [{list: request.object.spec.containers, foreach: [{list: element.env, patchStrategicMerge: {metadata: {labels: {a: b}}}}]}, {list: element, patchStrategicMerge: {metadata: {labels: {a: b}}}}]}"),
			want:   []string{`spec.rules[0].mutate.foreach[1].list: variable "element" is not defined here`},
		},
		{name: "an operation", policy: rule("mutate: {patchesJson6902: \"- {op: change, path: /metadata/labels/a}\"}"), want: []string{`spec.rules[0].mutate.patchesJson6902: `}},
		{name: "a path", policy: rule("mutate: {patchesJson6902: \"- {op: add, path: metadata, value: 1}\"}"), want: []string{`spec.rules[0].mutate.patchesJson6902: `}},
		{name: "an inner loop", policy: rule("mutate: {foreach: [{list: request.object.spec.containers, foreach: [{list: \"element.\", patchesJson6902: \"- {op: remove, path: /metadata/labels/a}\"}]}]}"), want: []string{`spec.rules[0].mutate.foreach[0].foreach[0].list: at character`}},
		{
			name:   "several",
			policy: rule("preconditions: {all: [{key: \"{{ a. }}\", operator: Equals, value: 1}]}\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{ b. }}\", c: \"{{ d. }}\"}}}}"),
			want:   []string{"spec.rules[0].preconditions.all[0].key: ", "spec.rules[0].mutate.patchStrategicMerge.metadata.labels.a: ", "spec.rules[0].mutate.patchStrategicMerge.metadata.labels.c: "},
		},
		{name: "targets", policy: rule("mutate: {targets: [{apiVersion: v1, kind: Secret, name: s}], patchStrategicMerge: {metadata: {labels: {a: b}}}}"), want: []string{"spec.rules[0].mutate.targets: rules with targets"}},
		{name: "no rules", policy: "background: false", want: []string{"spec.rules: a policy has at least one rule"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			unit, errs := kyverno.New().Compile(t.Context(), clusterPolicy(t, test.policy))
			if len(errs) != len(test.want) {
				t.Fatalf("got %v, want %d faults", errs.ToAggregate(), len(test.want))
			}
			for i, want := range test.want {
				field, text, _ := strings.Cut(want, ": ")
				if errs[i].Field != field || !strings.Contains(errs[i].Detail, text) || (errs[i].Origin == policy.OriginRequest) != test.later {
					t.Errorf("got %s: %s (%s), want %s", errs[i].Field, errs[i].Detail, errs[i].Origin, want)
				}
			}
			findings := unit.Policy.Program.Evaluate(t.Context(), input(create(object(t, pod)), offlineView(t)))
			if !slices.ContainsFunc(findings, func(f verdict.Finding) bool { return f.Kind == verdict.Error }) {
				t.Errorf("got %+v, want an error", findings)
			}
		})
	}
}

// TestKnownNames: what a rule may begin a variable with is not refused.
func TestKnownNames(t *testing.T) {
	for _, expression := range []string{
		"request.operation", "serviceAccountName", "serviceAccountNamespace", "images.containers.nginx.tag", "own", "own.a.b",
		"not_null(nobody, 'x')", "'text'", "@", "request.object.nothing || nobody || 'x'",
	} {
		fields := "context: [{name: own, variable: {value: {a: {b: 1}}}}]\nmutate: {patchStrategicMerge: {metadata: {annotations: {a: \"x{{ " + expression + " }}\"}}}}"
		if _, errs := kyverno.New().Compile(t.Context(), clusterPolicy(t, rule(fields))); len(errs) > 0 {
			t.Errorf("%s: %v", expression, errs.ToAggregate())
		}
	}
}

// TestElementNames: in a loop its element is known, and those of the loops around it.
func TestElementNames(t *testing.T) {
	for _, expression := range []string{"element.name", "element0", "element1", "elementIndex", "elementIndex0", "elementIndex1", "own", "inner"} {
		fields := "context: [{name: own, variable: {value: 1}}]\n" +
			"mutate: {foreach: [{list: request.object.spec.containers, foreach: [{list: \"element.env || `[]`\", context: [{name: inner, variable: {jmesPath: element.name}}], " +
			"patchStrategicMerge: {metadata: {annotations: {a: \"x{{ " + expression + " }}\"}}}}]}]}"
		if _, errs := kyverno.New().Compile(t.Context(), clusterPolicy(t, rule(fields))); len(errs) > 0 {
			t.Errorf("%s: %v", expression, errs.ToAggregate())
		}
	}
}

// TestAlternatives: a jmesPath or a list may name what nobody defines where that is no
// error.
func TestAlternatives(t *testing.T) {
	for _, fields := range []string{
		"context: [{name: v, variable: {jmesPath: \"nobody || 'x'\"}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{v}}\"}}}}",
		"context: [{name: v, variable: {jmesPath: nobody.knows, default: x}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{v}}\"}}}}",
		"mutate: {foreach: [{list: \"nobody || request.object.spec.containers\", patchStrategicMerge: {metadata: {labels: {a: \"{{element.name}}\"}}}}]}",
	} {
		for _, finding := range compiled(t, rule(fields)).Policy.Program.Evaluate(t.Context(), input(create(object(t, pod)), offlineView(t))) {
			if finding.Kind != verdict.Mutated {
				t.Errorf("%s: got %+v, want a change", fields, finding)
			}
		}
	}
}

// TestReads: a policy says what it reads, also who has which roles.
func TestReads(t *testing.T) {
	tests := []struct{ name, policy, want string }{
		{name: "nothing", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}`)},
		{
			name: "a ConfigMap", policy: rule("context: [{name: cm, configMap: {name: prices, namespace: shop}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{cm.data.a}}\"}}}}"),
			want: "get configmaps shop/prices spec.rules[0].context[0].configMap",
		},
		{
			name: "roles in an expression", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{request.roles[0]}}"}}}}`),
			want: "list rolebindings / spec.rules[0], list clusterrolebindings / spec.rules[0]",
		},
		{
			name: "roles in a match", policy: "rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}, clusterRoles: [admin]}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]",
			want: "list rolebindings / spec.rules[0], list clusterrolebindings / spec.rules[0]",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var reads []string
			for _, read := range compiled(t, test.policy).Policy.Reads {
				reads = append(reads, strings.Join([]string{read.Verb, read.Resource.Resource, read.Namespace + "/" + read.Name, read.Field.String()}, " "))
			}
			if got := strings.Join(reads, ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestFaultsOfOtherKinds: a rule with faults in its match fails no request of a kind, or
// of an operation, that it does not name.
func TestFaultsOfOtherKinds(t *testing.T) {
	for _, test := range []struct {
		resources string
		fails     bool
	}{
		{"kinds: [Pod], name: a, names: [b]", true},
		{"kinds: [Secret], name: a, names: [b]", false},
		{"kinds: [Pod], operations: [DELETE], name: a, names: [b]", false},
		{"kinds: [Pod/a/b/c/d], name: a", true},
	} {
		unit, errs := kyverno.New().Compile(t.Context(), clusterPolicy(t, "rules: [{name: r, match: {any: [{resources: {"+test.resources+"}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]"))
		if len(errs) == 0 {
			t.Errorf("%s: no fault", test.resources)
		}
		findings := unit.Policy.Program.Evaluate(t.Context(), input(create(object(t, pod)), offlineView(t)))
		if fails := findings[0].Kind == verdict.Error; fails != test.fails {
			t.Errorf("%s: got %+v, want an error: %t", test.resources, findings, test.fails)
		}
	}
}
