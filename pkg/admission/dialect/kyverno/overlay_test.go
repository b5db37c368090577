// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"context"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// cascade has a rule that is about what the one before it has made.
const cascade = `
rules:
- name: assign-type-database
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchStrategicMerge: {metadata: {labels: {type: database}}, spec: {(containers): [{(image): "*cassandra* | *mongo*"}]}}}
- name: assign-backup-database
  match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {type: database}}}}]}
  mutate: {patchStrategicMerge: {metadata: {labels: {+(backup-needed): "yes"}}}}
`

// TestOverlays is about what findings say of overlays. Package anchor has the rules.
func TestOverlays(t *testing.T) {
	const cassandra = `
apiVersion: v1
kind: Pod
metadata: {name: cassandra, namespace: default, labels: {run: cassandra}}
spec: {containers: [{name: cassandra, image: "cassandra:latest"}]}
`
	for _, test := range []struct{ name, policy, object, want string }{
		{
			name: "a cascade", policy: cascade, object: cassandra,
			want: "assign-type-database mutated [{\"op\":\"add\",\"path\":\"/metadata/labels/type\",\"value\":\"database\"}]\nassign-backup-database mutated [{\"op\":\"add\",\"path\":\"/metadata/labels/backup-needed\",\"value\":\"yes\"}]",
		},
		{
			name: "a cascade that does not begin", policy: cascade, object: pod,
			want: "assign-type-database skipped: condition (containers) at spec: the value does not match\nassign-backup-database not matched: match.any[0]: selector type=database does not match the object (labels: app=web)",
		},
		{
			name: "elements of a list", policy: rule(`mutate: {patchStrategicMerge: {spec: {containers: [{(image): "*:latest", imagePullPolicy: IfNotPresent}]}}}`), object: cassandra,
			want: `r mutated [{"op":"add","path":"/spec/containers/0/imagePullPolicy","value":"IfNotPresent"}]`,
		},
		{
			name: "no element", policy: rule(`mutate: {patchStrategicMerge: {spec: {containers: [{(image): "*:latest", imagePullPolicy: IfNotPresent}]}}}`), object: pod,
			want: "r skipped: condition (image) at spec.containers: no element matches",
		},
		{
			name: "a global condition", policy: rule(`mutate: {patchStrategicMerge: {spec: {containers: [{<(image): "corp.reg.com/*"}], imagePullSecrets: [{name: s}]}}}`), object: pod,
			want: "r skipped: global condition <(image) at spec.containers: no element matches",
		},
		{
			name: "nothing to do", policy: rule(`mutate: {patchStrategicMerge: {metadata: {labels: {+(app): other}}}}`), object: pod,
			want: "r skipped: the object is already as the rule would make it",
		},
		{
			name: "a loop", policy: rule("mutate:\n  foreach:\n  - list: request.object.spec.containers\n    patchStrategicMerge: {spec: {containers: [{(name): \"{{element.name}}\", (image): \"nginx:*\", args: [\"c{{elementIndex}}\"]}]}}"), object: pod,
			want: `r mutated [{"op":"add","path":"/spec/containers/0/args","value":["c0"]}]`,
		},
		{
			name: "a loop that does nothing", policy: rule("mutate:\n  foreach:\n  - list: request.object.spec.containers\n    patchStrategicMerge: {spec: {containers: [{(name): \"{{element.name}}\", (image): \"*:latest\", args: [x]}]}}"), object: pod,
			want: "r skipped: element 1 of request.object.spec.containers: condition (image) at spec.containers: no element matches",
		},
		{
			name: "a loop whose preconditions are not met", policy: rule("mutate:\n  foreach:\n  - list: request.object.spec.containers\n    preconditions: {all: [{key: \"{{element.name}}\", operator: Equals, value: none}]}\n    patchStrategicMerge: {metadata: {labels: {a: b}}}"), object: pod,
			want: `r skipped: element 1 of request.object.spec.containers: preconditions not met: all[0]: "side-car" Equals "none" does not hold`,
		},
		{
			name: "a mistake", policy: rule(`mutate: {patchStrategicMerge: {spec: {containers: {a: b}}}}`), object: pod,
			want: `r error: rule "r": patchStrategicMerge: spec.containers: the patch has a map where the object has a list; only null replaces a value by one of another kind`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := object(t, test.object)
			in := input(create(before), offlineView(t))
			in.Explain = &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }}
			got := summary(t, before, compiled(t, test.policy).Policy.Program.Evaluate(t.Context(), in))
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
