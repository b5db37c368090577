// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestControlledReplicaSets: the template of a ReplicaSet that something controls stays,
// whatever rules are about it; all else of it is changed, as other objects are.
func TestControlledReplicaSets(t *testing.T) {
	replicaSet := func(apiVersion, kind, controller string) string {
		return `{"apiVersion": "` + apiVersion + `", "kind": "` + kind + `", "metadata": {"name": "web", "namespace": "shop", "ownerReferences":
			[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": ` + controller + `}]}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}`
	}
	const (
		template = "rules: [{name: r, match: {any: [{resources: {kinds: ['*']}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}, spec: {template: {metadata: {labels: {a: b}}}}}}}]"
		labels   = "rules: [{name: r, match: {any: [{resources: {kinds: ['*']}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]"
	)
	tests := []struct {
		name, object, policy string
		mutated              bool
	}{
		{"a template", replicaSet("apps/v1", "ReplicaSet", "true"), template, false},
		{"what is made of a rule about Pods", replicaSet("apps/v1", "ReplicaSet", "true"), aboutPods, false},
		{"labels", replicaSet("apps/v1", "ReplicaSet", "true"), labels, true},
		{"an owner that is no controller", replicaSet("apps/v1", "ReplicaSet", "false"), template, true},
		{"what is made for an owner that is no controller", replicaSet("apps/v1", "ReplicaSet", "false"), aboutPods, true},
		{"a ReplicaSet of another group", replicaSet("example.com/v1", "ReplicaSet", "true"), template, true},
		{"a Job", replicaSet("batch/v1", "Job", "true"), aboutPods, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			findings := compiled(t, test.policy).Policy.Program.Evaluate(t.Context(), input(create(object(t, test.object)), offlineView(t)))
			last := findings[len(findings)-1]
			if test.mutated && last.Kind != verdict.Mutated || !test.mutated && (last.Kind != verdict.Skip || !strings.Contains(last.Message, "make another one, without end")) {
				t.Errorf("got %+v, want a change: %t", findings, test.mutated)
			}
		})
	}
}

// TestLetsGo: a write that only takes finalizers away meets no rule, also none of which
// nothing could be read; one that does anything else meets all, whatever it says of the
// object.
func TestLetsGo(t *testing.T) {
	const old = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "finalizers": ["a/b", "c/d"], "resourceVersion": "1"}, "spec": {"replicas": 1}}`
	change := func(from, to string) string { return strings.Replace(old, from, to, 1) }
	const leaving = `"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"`
	tests := []struct {
		name, old, object, subresource string
		goes                           bool
	}{
		{"one finalizer", old, change(`, "c/d"`, ""), "", true},
		{"all finalizers", old, change(`"finalizers": ["a/b", "c/d"], `, ""), "", true},
		{"and what the server writes", old, change(`["a/b", "c/d"], "resourceVersion": "1"`, `["c/d"], "managedFields": [], "resourceVersion": "2"`), "", true},
		{"of what is being deleted", change(`"name": "web"`, leaving), strings.Replace(change(`"name": "web"`, leaving), `, "c/d"`, "", 1), "", true},
		{"nothing", old, old, "", false},
		{"a field", old, change(`"replicas": 1`, `"replicas": 2`), "", false},
		{"a field, too", old, strings.Replace(change(`, "c/d"`, ""), `"replicas": 1`, `"replicas": 2`, 1), "", false},
		{"a label, too", old, strings.Replace(change(`, "c/d"`, ""), `"name"`, `"labels": {"a": "b"}, "name"`, 1), "", false},
		{"another finalizer", old, change(`["a/b", "c/d"]`, `["e/f"]`), "", false},
		{"one more", old, change(`"c/d"`, `"c/d", "e/f"`), "", false},
		{"what says that it is being deleted", old, change(`"name": "web"`, leaving), "", false},
		{"that, too", old, strings.Replace(change(`, "c/d"`, ""), `"name": "web"`, leaving, 1), "", false},
		{"a subresource", old, change(`, "c/d"`, ""), "scale", false},
	}
	for _, test := range tests {
		for name, text := range map[string]string{"a rule": "rules: [{name: r, match: {any: [{resources: {kinds: ['*', '*/*']}}]}, mutate: {patchStrategicMerge: {spec: {a: b}}}}]", "broken": "background: false"} {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				unit, _ := kyverno.New().Compile(t.Context(), clusterPolicy(t, text))
				fields := create(object(t, test.object)).Fields
				fields.Operation, fields.OldObject, fields.SubResource = admission.Update, object(t, test.old), test.subresource
				req := request.New(fields)
				program, ok := unit.Policy.Program.(policy.Selective)
				if !ok {
					t.Fatalf("%T is not selective", unit.Policy.Program)
				}
				if program.Selects(req) == test.goes {
					t.Errorf("the policy is asked: %t", !test.goes)
				}
				findings := program.Evaluate(t.Context(), input(req, offlineView(t)))
				if goes := len(findings) == 1 && findings[0].Kind == verdict.NotMatched; goes != test.goes {
					t.Errorf("got %+v, want it to go: %t", findings, test.goes)
				}
			})
		}
	}
}
