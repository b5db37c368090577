// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
		"spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}}}`
	cronJob = `{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web", "namespace": "shop"},
		"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "nginx"}]}}}}}}`
	aboutPods = `
rules:
- name: label
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchStrategicMerge: {metadata: {labels: {node: "{{request.object.spec.containers[0].name}}"}}}}
`
)

func annotated(t *testing.T, text, controllers string) *policyapi.ClusterPolicy {
	t.Helper()
	p := clusterPolicy(t, text)
	p.Annotations = map[string]string{kyvernov1.AutogenControllersAnnotation: controllers}
	return p
}

// TestControllers: a rule about Pods changes the templates of their controllers.
func TestControllers(t *testing.T) {
	tests := []struct {
		name, object string
		policy       *policyapi.ClusterPolicy
		want         string
	}{
		{
			"a Pod, of which only the rule for Pods tells", pod, clusterPolicy(t, aboutPods),
			`label mutated [{"op":"add","path":"/metadata/labels/node","value":"nginx"}]`,
		},
		{
			"a Deployment", deployment, clusterPolicy(t, aboutPods),
			"label not matched: match.any[0]: kind apps/v1/Deployment is none of Pod\n" +
				`autogen-label mutated [{"op":"add","path":"/spec/template/metadata/labels/node","value":"a"}]`,
		},
		{
			"a CronJob", cronJob, clusterPolicy(t, aboutPods),
			"label not matched: match.any[0]: kind batch/v1/CronJob is none of Pod\n" +
				`autogen-cronjob-label mutated [{"op":"add","path":"/spec/jobTemplate/spec/template/metadata","value":{"labels":{"node":"a"}}}]`,
		},
		{
			"none", deployment, annotated(t, aboutPods, "none"),
			"label not matched: match.any[0]: kind apps/v1/Deployment is none of Pod",
		},
		{
			"others", cronJob, annotated(t, aboutPods, "Deployment,Job"),
			"label not matched: match.any[0]: kind batch/v1/CronJob is none of Pod",
		},
		{
			"One counts generated rules", deployment,
			clusterPolicy(t, "applyRules: One"+aboutPods+strings.ReplaceAll(strings.TrimPrefix(aboutPods, "\nrules:\n"), "name: label", "name: again")),
			"label not matched: match.any[0]: kind apps/v1/Deployment is none of Pod\n" +
				"again not matched: match.any[0]: kind apps/v1/Deployment is none of Pod\n" +
				`autogen-label mutated [{"op":"add","path":"/spec/template/metadata/labels/node","value":"a"}]`,
		},
		{
			"a rule of a copy is told of", deployment, clusterPolicy(t, aboutPods+"- {name: autogen-label, match: {any: [{resources: {kinds: [Deployment]}}]}, mutate: {patchStrategicMerge: {a: b}}}"),
			"label not matched: match.any[0]: kind apps/v1/Deployment is none of Pod\n" +
				"autogen-label not matched: not applied, since its name is that of a rule made for the controllers of Pods, and such are made here\n" +
				`autogen-label mutated [{"op":"add","path":"/spec/template/metadata/labels/node","value":"a"}]`,
		},
		{
			"what could not be read fails for controllers, too", deployment,
			clusterPolicy(t, "rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}}]"),
			"r not matched: match.any[0]: kind apps/v1/Deployment is none of Pod\n" +
				`autogen-r error: rule "autogen-r" (made of rule "r" for controllers of Pods): it changes nothing: it is no mutate rule`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			unit, errs := kyverno.New().Compile(t.Context(), test.policy)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			of := object(t, test.object)
			in := input(create(of), offlineView(t))
			in.Explain = &policy.Explain{}
			if got := summary(t, of, unit.Policy.Program.Evaluate(t.Context(), in)); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestGeneratedFaults: a fault is told once, at the rule that was written, also where
// only a rule that is made of it has it.
func TestGeneratedFaults(t *testing.T) {
	unit, errs := kyverno.New().Compile(t.Context(), clusterPolicy(t, rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ nobody.knows }}"}}}}`)))
	if len(errs) != 1 || errs[0].Field != "spec.rules[0].mutate.patchStrategicMerge.metadata.labels.a" {
		t.Errorf("got %v, want one fault", errs.ToAggregate())
	}
	for _, text := range []string{pod, deployment, cronJob} {
		findings := unit.Policy.Program.Evaluate(t.Context(), input(create(object(t, text)), offlineView(t)))
		if !slices.ContainsFunc(findings, func(f verdict.Finding) bool { return f.Kind == verdict.Error }) {
			t.Errorf("got %+v of %s, want an error", findings, text)
		}
	}
	_, errs = kyverno.New().Compile(t.Context(), clusterPolicy(t, rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ request.object.\"spec\".x }} {{ 'request.object.spec' }}", b: "$(../../labels/a)"}}}}`)))
	if len(errs) > 0 {
		t.Errorf("got %v, want no fault", errs.ToAggregate())
	}
}

// TestReadsOnce: what a rule reads is told once, however many are made of it.
func TestReadsOnce(t *testing.T) {
	unit := compiled(t, rule("context: [{name: cm, configMap: {name: prices, namespace: shop}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{cm.data.a}}\"}}}}"))
	if got := unit.Policy.Reads; len(got) != 1 {
		t.Errorf("got %+v, want one read", got)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name   string
		policy *policyapi.ClusterPolicy
		want   []string // parts
	}{
		{"nothing to say", annotated(t, aboutPods, "Deployment,CronJob"), nil},
		{"a space", annotated(t, aboutPods, "Deployment, Job"), []string{`metadata.annotations[pod-policies.kyverno.io/autogen-controllers]: not understood as it stands: " Job": the annotation is read as "Deployment": write none, or kinds of DaemonSet`}},
		{"many", annotated(t, aboutPods, strings.Repeat("x,", 100)+strings.Repeat("y", 100)), []string{`: not understood as it stands: "x", "x", "x", "x", "x", and 96 more: the annotation is read as "none": write`}},
		{
			"a rule of a copy", clusterPolicy(t, aboutPods+"- {name: autogen-label, match: {any: [{resources: {kinds: [Deployment]}}]}, mutate: {patchStrategicMerge: {a: b}}}"),
			[]string{`spec.rules[1]: rule "autogen-label": not applied, since its name `},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			unit, _ := kyverno.New().Compile(t.Context(), test.policy)
			if len(unit.Warnings) != len(test.want) {
				t.Fatalf("got %q, want %d", unit.Warnings, len(test.want))
			}
			for i, want := range test.want {
				if !strings.Contains(unit.Warnings[i], want) {
					t.Errorf("got %q, want %q", unit.Warnings[i], want)
				}
			}
		})
	}
}

// TestReadsAreLinear: what is compiled with each write and each preview takes work in
// proportion to what a policy reads. Once, all reads were compared with all others.
func TestReadsAreLinear(t *testing.T) {
	allocations := func(entries int) float64 {
		var context strings.Builder
		for i := range entries {
			fmt.Fprintf(&context, "{name: v%[1]d, configMap: {name: n%[1]d, namespace: shop}},", i)
		}
		policy := clusterPolicy(t, rule("context: ["+context.String()+"]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"))
		return testing.AllocsPerRun(1, func() {
			if unit, _ := kyverno.New().Compile(t.Context(), policy); len(unit.Policy.Reads) != entries {
				t.Errorf("%d reads, want %d", len(unit.Policy.Reads), entries)
			}
		})
	}
	if few, many := allocations(100), allocations(1000); many > 15*few {
		t.Errorf("ten times as many reads take %.0f allocations, and not ten times %.0f", many, few)
	}
}

// TestRefusable: who makes a write that an API server will refuse for what a rule has
// done is told which rule that was.
func TestRefusable(t *testing.T) {
	for _, test := range []struct{ labels, want string }{
		{"{labels: {a: b}}", ""},
		{"{labels: {a: 1}}", `rule "r": after it, metadata.labels have a value that is no text, which the API server refuses: quote it`},
		{"{annotations: {a: true, b: c}}", `rule "r": after it, metadata.annotations have a value that is no text, which the API server refuses: quote it`},
	} {
		unit := compiled(t, rule("mutate: {patchStrategicMerge: {metadata: "+test.labels+"}}"))
		findings := unit.Policy.Program.Evaluate(t.Context(), input(create(object(t, pod)), offlineView(t)))
		if findings[0].Kind != verdict.Mutated || findings[0].Message != test.want {
			t.Errorf("%s: got %+v, want %q", test.labels, findings[0], test.want)
		}
	}
}
