// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package autogen

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

const (
	aboutPods = "match: {any: [{resources: {kinds: [Pod]}}]}"
	labels    = "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"
)

func specOf(t *testing.T, text string) *kyvernov1.Spec {
	t.Helper()
	spec := &kyvernov1.Spec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec
}

// rules returns the YAML of a spec with rules of these parts, a line each.
func rules(parts ...[]string) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, lines := range parts {
		b.WriteString("- " + strings.Join(lines, "\n  ") + "\n")
	}
	return b.String()
}

func namesOf(rules []Rule) []string {
	names := []string{}
	for i := range rules {
		if !rules[i].Replaced {
			names = append(names, rules[i].Name)
		}
	}
	return names
}

func annotated(value string) map[string]string {
	return map[string]string{kyvernov1.AutogenControllersAnnotation: value}
}

// TestWritten compares rules as they are made with what Kyverno makes of the same.
func TestWritten(t *testing.T) {
	spec := specOf(t, `
rules:
- name: pin
  match:
    any:
    - resources: {kinds: [Pod], namespaces: [shop]}
      subjects: [{kind: User, name: alice}]
  exclude:
    all:
    - resources: {kinds: [Pod], namespaces: [kube-system]}
    - clusterRoles: [cluster-admin]
  context:
  - name: owner
    variable: {jmesPath: request.object.metadata.labels.owner}
  preconditions:
    all:
    - {key: "{{request.operation || request.oldObject.spec.nodeName}}", operator: Equals, value: CREATE}
  mutate:
    foreach:
    - list: request.object.spec.containers
      order: Ascending
      preconditions: {all: [{key: "{{element.name}} {{request.object.metadata.namespace}}", operator: NotEquals, value: a}]}
      patchStrategicMerge: {spec: {containers: [{(name): "{{element.name}}", image: "{{images.containers.a.name}}"}]}}
- name: label
  match: {resources: {kinds: [Pod]}}
  mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{request.object.spec.nodeName}}"}}}}
`)
	want := `
- name: autogen-pin
  match:
    any:
    - resources:
        kinds: [apps/v1/DaemonSet, apps/v1/Deployment, batch/v1/Job, apps/v1/ReplicaSet, v1/ReplicationController, apps/v1/StatefulSet]
        namespaces: [shop]
      subjects: [{kind: User, name: alice}]
  exclude:
    all:
    - resources:
        kinds: [apps/v1/DaemonSet, apps/v1/Deployment, batch/v1/Job, apps/v1/ReplicaSet, v1/ReplicationController, apps/v1/StatefulSet]
        namespaces: [kube-system]
    - clusterRoles: [cluster-admin]
  context:
  - name: owner
    variable: {jmesPath: request.object.spec.template.metadata.labels.owner}
  preconditions:
    all:
    - {key: "{{request.operation || request.oldObject.spec.template.spec.nodeName}}", operator: Equals, value: CREATE}
  mutate:
    foreach:
    - list: request.object.spec.template.spec.containers
      preconditions: {all: [{key: "{{element.name}} {{request.object.spec.template.metadata.namespace}}", operator: NotEquals, value: a}]}
      patchStrategicMerge: {spec: {template: {spec: {containers: [{(name): "{{element.name}}", image: "{{images.containers.a.name}}"}]}}}}
- name: autogen-cronjob-pin
  match:
    any:
    - resources: {kinds: [batch/v1/CronJob], namespaces: [shop]}
      subjects: [{kind: User, name: alice}]
  exclude:
    all:
    - resources: {kinds: [batch/v1/CronJob], namespaces: [kube-system]}
    - resources: {kinds: [batch/v1/CronJob]}
      clusterRoles: [cluster-admin]
  context:
  - name: owner
    variable: {jmesPath: request.object.spec.jobTemplate.spec.template.metadata.labels.owner}
  preconditions:
    all:
    - {key: "{{request.operation || request.oldObject.spec.jobTemplate.spec.template.spec.nodeName}}", operator: Equals, value: CREATE}
  mutate:
    foreach:
    - list: request.object.spec.jobTemplate.spec.template.spec.containers
      preconditions: {all: [{key: "{{element.name}} {{request.object.spec.jobTemplate.spec.template.metadata.namespace}}", operator: NotEquals, value: a}]}
      patchStrategicMerge: {spec: {jobTemplate: {spec: {template: {spec: {containers: [{(name): "{{element.name}}", image: "{{images.containers.a.name}}"}]}}}}}}
- name: autogen-label
  match: {resources: {kinds: [apps/v1/DaemonSet, apps/v1/Deployment, batch/v1/Job, apps/v1/ReplicaSet, v1/ReplicationController, apps/v1/StatefulSet]}}
  mutate: {patchStrategicMerge: {spec: {template: {metadata: {labels: {a: "{{request.object.spec.template.spec.nodeName}}"}}}}}}
- name: autogen-cronjob-label
  match: {resources: {kinds: [batch/v1/CronJob]}}
  mutate: {patchStrategicMerge: {spec: {jobTemplate: {spec: {template: {metadata: {labels: {a: "{{request.object.spec.jobTemplate.spec.template.spec.nodeName}}"}}}}}}}}
`
	before := spec.DeepCopy()
	got := Generated(nil, spec)
	if diff := cmp.Diff(untyped(t, want), asUntyped(t, got)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the spec was changed:\n%s", diff)
	}
}

func untyped(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func asUntyped(t *testing.T, rules []kyvernov1.Rule) any {
	t.Helper()
	raw, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	return untyped(t, string(raw))
}

func TestLimits(t *testing.T) {
	plain := []string{"name: a", aboutPods, labels}
	generated := []string{"a", "autogen-a", "autogen-cronjob-a"}
	foreach := func(body string) string {
		return "mutate: {foreach: [{list: request.object.spec.containers, " + body + "}]}"
	}
	tests := []struct {
		name string
		spec string
		want []string
	}{
		{"Pods", rules(plain), generated},
		{"the older form", rules([]string{"name: a", "match: {resources: {kinds: [Pod]}}", labels}), generated},
		{"all", rules([]string{"name: a", "match: {all: [{resources: {kinds: [Pod]}}]}", labels}), generated},
		{"another kind", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Service]}}]}", labels}), []string{"a"}},
		{"a controller", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Deployment]}}]}", labels}), []string{"a"}},
		{"every kind", rules([]string{"name: a", "match: {any: [{resources: {kinds: ['*']}}]}", labels}), []string{"a"}},
		{"with a version alone", rules([]string{"name: a", "match: {any: [{resources: {kinds: [v1/Pod]}}]}", labels}), []string{"a"}},
		{
			"with a version beside another rule",
			rules([]string{"name: a", "match: {any: [{resources: {kinds: [v1/Pod]}}]}", labels}, []string{"name: b", "match: {any: [{resources: {kinds: [Deployment]}}]}", labels}),
			[]string{"a", "b", "autogen-a", "autogen-cronjob-a"},
		},
		{"mixed kinds", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod, Deployment]}}]}", labels}), []string{"a"}},
		{"mixed kinds in two filters", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Deployment]}}]}", labels}), generated},
		{"mixed kinds excluded", rules([]string{"name: a", aboutPods, "exclude: {any: [{resources: {kinds: [Deployment, Pod]}}]}", labels}), []string{"a"}},
		{"another kind excluded", rules([]string{"name: a", aboutPods, "exclude: {any: [{resources: {kinds: [Deployment]}}]}", labels}), []string{"a"}},
		{"no kind excluded", rules([]string{"name: a", aboutPods, "exclude: {any: [{resources: {namespaces: [x]}}]}", labels}), generated},
		{"a name", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod], name: x}}]}", labels}), []string{"a"}},
		{"names", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod], names: [x]}}]}", labels}), []string{"a"}},
		{"a selector", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod], selector: {}}}]}", labels}), []string{"a"}},
		{"annotations", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod], annotations: {x: y}}}]}", labels}), []string{"a"}},
		{"names excluded", rules([]string{"name: a", aboutPods, "exclude: {resources: {names: [x]}}", labels}), []string{"a"}},
		{"a selector of namespaces", rules([]string{"name: a", "match: {any: [{resources: {kinds: [Pod], namespaceSelector: {}}}]}", labels}), generated},
		{"JSON patches", rules([]string{"name: a", aboutPods, "mutate: {patchesJson6902: x}"}), []string{"a"}},
		{"JSON patches in another rule", rules(plain, []string{"name: b", aboutPods, "mutate: {patchesJson6902: x}"}), []string{"a", "b"}},
		{"JSON patches in a loop", rules([]string{"name: a", aboutPods, foreach("patchesJson6902: x")}), []string{"a"}},
		{"a loop", rules([]string{"name: a", aboutPods, foreach("patchStrategicMerge: {}")}), generated},
		{"a nested loop", rules(plain, []string{"name: b", aboutPods, foreach("foreach: []")}), append([]string{"a", "b"}, generated[1:]...)},
		{"targets", rules([]string{"name: a", aboutPods, "mutate: {targets: [{kind: Secret}], patchStrategicMerge: {}}"}), []string{"a"}},
		{"a rule that generates", rules(plain, []string{"name: b", "match: {any: [{resources: {kinds: [Service]}}]}", "generate: {}"}), []string{"a", "b"}},
		{"nothing that could be read", rules([]string{"name: a", aboutPods}), generated},
		{"nothing to do", rules([]string{"name: a", aboutPods, "mutate: {}"}), []string{"a"}},
		{"no rules", "rules: []", []string{}},
		{
			"rules of a copy", rules(plain, []string{"name: autogen-a", "match: {any: [{resources: {kinds: [Deployment]}}]}", labels}),
			generated,
		},
		{
			"only rules of a copy", rules([]string{"name: autogen-a", aboutPods, labels}), []string{"autogen-a"},
		},
		{
			"long names",
			rules([]string{"name: too-long-this-rule-name-will-be-truncated-to-63-characters", aboutPods, labels}),
			[]string{
				"too-long-this-rule-name-will-be-truncated-to-63-characters",
				"autogen-too-long-this-rule-name-will-be-truncated-to-63-charact",
				"autogen-cronjob-too-long-this-rule-name-will-be-truncated-to-63",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := specOf(t, test.spec)
			if diff := cmp.Diff(test.want, namesOf(Rules(nil, spec))); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestAnnotation(t *testing.T) {
	const daemonSet, deployment, job = "apps/v1/DaemonSet", "apps/v1/Deployment", "batch/v1/Job"
	tests := []struct {
		value   string
		kinds   []string // of the rule for templates
		cronJob bool
		unknown []string
	}{
		{"none", nil, false, nil},
		{"none,none", nil, false, nil},
		{"", nil, false, []string{""}},
		{"all", templated(), true, nil},
		{"all,CronJob", templated(), true, []string{"all"}},
		{"Deployment", []string{deployment}, false, nil},
		{"Job,Deployment,DaemonSet,Job", []string{daemonSet, deployment, job}, false, nil},
		{"CronJob", nil, true, nil},
		{"Deployment,CronJob", []string{deployment}, true, nil},
		{"none,Deployment", []string{deployment}, false, nil},
		{"all,Deployment", []string{deployment}, true, []string{"all"}},
		{"Job, Deployment", []string{job}, false, []string{" Deployment"}},
		{"Job, CronJob", []string{job}, true, []string{" CronJob"}},
		{"Fallback", nil, true, []string{"Fallback"}},
		{"all,none", nil, true, []string{"all"}},
		{"deployment", nil, false, []string{"deployment"}},
		{"*,Pod", nil, false, []string{"*", "Pod"}},
	}
	spec := specOf(t, rules([]string{"name: a", aboutPods, labels}))
	for _, test := range tests {
		t.Run(test.value, func(t *testing.T) {
			var kinds []string
			cron := false
			for _, rule := range Rules(annotated(test.value), spec) {
				switch rule.Name {
				case "autogen-a":
					kinds = rule.Match.Any[0].Resources.Kinds
				case "autogen-cronjob-a":
					cron = true
				}
				if rule.Generated != isGeneratedName(rule.Name) || rule.From != 0 {
					t.Errorf("%s: generated %t, from %d", rule.Name, rule.Generated, rule.From)
				}
			}
			if !slices.Equal(kinds, test.kinds) || cron != test.cronJob {
				t.Errorf("got %v and CronJobs %t, want %v and %t", kinds, cron, test.kinds, test.cronJob)
			}
			if got := Unknown(annotated(test.value)); !slices.Equal(got, test.unknown) {
				t.Errorf("unknown are %q, want %q", got, test.unknown)
			}
		})
	}
	if got := Unknown(nil); got != nil {
		t.Errorf("unknown are %q without the annotation", got)
	}
}

// FuzzRules: whatever a policy says, nothing panics, and the spec stays as it is.
func FuzzRules(f *testing.F) {
	f.Add("Deployment,CronJob", rules([]string{"name: a", aboutPods, labels}))
	f.Add("all", rules([]string{"name: a", aboutPods, "mutate: {foreach: [{list: request.object.spec, patchStrategicMerge: [1]}]}"}))
	f.Fuzz(func(t *testing.T, annotation, text string) {
		spec := &kyvernov1.Spec{}
		if err := yaml.Unmarshal([]byte(text), spec); err != nil {
			return
		}
		before := spec.DeepCopy()
		for _, rule := range Rules(annotated(annotation), spec) {
			if rule.From < 0 || rule.From >= len(spec.Rules) {
				t.Errorf("rule %q is made of %d", rule.Name, rule.From)
			}
		}
		if !cmp.Equal(before, spec) {
			t.Error("the spec was changed")
		}
	})
}
