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

// TestExempt: what controllers would fight about, and what has to go, is left alone by
// every policy, also by one of which nothing could be read.
func TestExempt(t *testing.T) {
	replicaSet := func(metadata string) string {
		return `{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "shop"` + metadata + `}, "spec": {"template": {"metadata": {}}}}`
	}
	owner := func(controller string) string {
		return `, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": ` + controller + `}]`
	}
	const (
		leaving   = `, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]`
		everybody = "rules: [{name: r, match: {any: [{resources: {kinds: ['*']}}]}, mutate: {patchStrategicMerge: {spec: {a: b}}}}]"
	)
	tests := []struct {
		name, object string
		operation    admission.Operation
		why          string // empty where rules apply
	}{
		{"a ReplicaSet of a Deployment", replicaSet(owner("true")), admission.Create, "no rule changes a ReplicaSet that has a controller, here a Deployment"},
		{"on an update", replicaSet(owner("true")), admission.Update, "no rule changes a ReplicaSet that has a controller, here a Deployment"},
		{"a ReplicaSet alone", replicaSet(""), admission.Create, ""},
		{"one with another owner", replicaSet(owner("false")), admission.Create, ""},
		{"a ReplicaSet of another group", strings.Replace(replicaSet(owner("true")), "apps/v1", "example.com/v1", 1), admission.Create, ""},
		{"a Job of a CronJob", strings.Replace(strings.Replace(replicaSet(owner("true")), "ReplicaSet", "Job", 1), "apps/v1", "batch/v1", 1), admission.Create, ""},
		{"an object that leaves", replicaSet(leaving), admission.Update, "no rule changes an object that is being deleted"},
		{"an object that says so when it comes", replicaSet(leaving), admission.Create, ""},
	}
	for _, test := range tests {
		for name, text := range map[string]string{"every kind": everybody, "Pods": aboutPods, "broken": "background: false"} {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				unit, _ := kyverno.New().Compile(t.Context(), clusterPolicy(t, text))
				req := create(object(t, test.object))
				if test.operation == admission.Update {
					fields := req.Fields
					fields.Operation, fields.OldObject = test.operation, fields.Object
					req = request.New(fields)
				}
				program, ok := unit.Policy.Program.(policy.Selective)
				if !ok {
					t.Fatalf("%T is not selective", unit.Policy.Program)
				}
				if selects := program.Selects(req); test.why != "" && selects {
					t.Error("the policy is asked")
				}
				findings := program.Evaluate(t.Context(), input(req, offlineView(t)))
				exempted := len(findings) == 1 && findings[0].Kind == verdict.NotMatched && strings.Contains(findings[0].Message, "no rule changes")
				if exempted != (test.why != "") || exempted && !strings.Contains(findings[0].Message, test.why) {
					t.Errorf("got %+v, want %q", findings, test.why)
				}
			})
		}
	}
}
