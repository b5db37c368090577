// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// summary says of each finding its rule, its kind and what it changes or why not.
func summary(t *testing.T, before *unstructured.Unstructured, findings []verdict.Finding) string {
	t.Helper()
	kinds := map[verdict.Kind]string{verdict.Mutated: "mutated", verdict.Skip: "skipped", verdict.NotMatched: "not matched", verdict.Error: "error"}
	var lines []string
	for _, finding := range findings {
		line := finding.Rule + " " + kinds[finding.Kind]
		if finding.Message != "" {
			line += ": " + finding.Message
		}
		if finding.Object != nil {
			raw, err := json.Marshal(patch.Diff(before.Object, finding.Object.Object))
			if err != nil {
				t.Fatal(err)
			}
			line += " " + string(raw)
			before = finding.Object
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const twoRules = `
rules:
- name: one
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchesJson6902: '- {op: add, path: /metadata/labels/one, value: "1"}'}
- name: two
  match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {one: "1"}}}}]}
  mutate: {patchesJson6902: '- {op: add, path: /metadata/labels/two, value: "{{request.object.metadata.labels.one}}2"}'}
`

func TestEvaluate(t *testing.T) {
	tests := []struct {
		name   string
		policy string
		change func(*request.Fields)
		want   string
	}{
		{
			name: "each rule sees what the former have made", policy: twoRules,
			want: "one mutated [{\"op\":\"add\",\"path\":\"/metadata/labels/one\",\"value\":\"1\"}]\ntwo mutated [{\"op\":\"add\",\"path\":\"/metadata/labels/two\",\"value\":\"12\"}]",
		},
		{
			name: "One ends with the first that changes something", policy: "applyRules: One" + twoRules,
			want: `one mutated [{"op":"add","path":"/metadata/labels/one","value":"1"}]`,
		},
		{
			name: "and not with one that is skipped", policy: "applyRules: One" + strings.Replace(twoRules, "labels/one, value: \"1\"", "labels/app, value: web", 1),
			want: "one skipped: the object is already as the rule would make it\ntwo not matched: match.any[0]: selector one=1 does not match the object (labels: app=web)",
		},
		{
			name:   "an error changes nothing, and the others see the object without it",
			policy: "rules:\n- name: bad\n  match: {any: [{resources: {kinds: [Pod]}}]}\n  mutate: {patchesJson6902: '[{\"op\": \"add\", \"path\": \"/metadata/labels/bad\", \"value\": \"1\"}, {\"op\": \"replace\", \"path\": \"/spec/none\", \"value\": 1}]'}" + strings.TrimPrefix(twoRules, "\nrules:"),
			want:   "bad error: rule \"bad\": patchesJson6902: operation 1, replace /spec/none: there is nothing at this path\none mutated [{\"op\":\"add\",\"path\":\"/metadata/labels/one\",\"value\":\"1\"}]\ntwo mutated [{\"op\":\"add\",\"path\":\"/metadata/labels/two\",\"value\":\"12\"}]",
		},
		{
			name: "preconditions", policy: rule("preconditions: {all: [{key: \"{{request.operation}}\", operator: Equals, value: DELETE, message: deletions only}]}\nmutate: {patchesJson6902: '- {op: add, path: /metadata/labels/one, value: \"1\"}'}"),
			want: `r skipped: preconditions not met: all[0]: "CREATE" Equals "DELETE" does not hold: deletions only`,
		},
		{
			name: "without an object", policy: twoRules, change: func(f *request.Fields) { f.Operation, f.OldObject, f.Object = admission.Delete, f.Object, nil },
			want: "one skipped: the request has no object that could be changed\ntwo not matched: match.any[0]: selector one=1 does not match the object (labels: app=web)",
		},
		{
			name: "a loop adds up, and sees the object as it began",
			policy: rule("mutate:\n  foreach:\n  - list: request.object.spec.containers\n    preconditions: {all: [{key: \"{{element.name}}\", operator: NotEquals, value: nginx}]}\n" +
				"    patchesJson6902: \"- {op: add, path: '/metadata/labels/c{{elementIndex}}', value: '{{length(request.object.metadata.labels)}}'}\"\n" +
				"  - list: request.object.spec.containers\n    order: Descending\n    patchesJson6902: \"- {op: add, path: '/metadata/labels/d{{elementIndex}}', value: '{{length(keys(request.object.metadata.labels))}}'}\""),
			want: `r mutated [{"op":"add","path":"/metadata/labels/c1","value":"1"},{"op":"add","path":"/metadata/labels/d0","value":"2"},{"op":"add","path":"/metadata/labels/d1","value":"2"}]`,
		},
		{
			name:   "a list of one that is no list",
			policy: rule("mutate:\n  foreach:\n  - list: request.object.metadata.name\n    patchesJson6902: \"- {op: add, path: '/metadata/labels/e{{elementIndex}}', value: '{{element}}'}\""),
			want:   `r mutated [{"op":"add","path":"/metadata/labels/e0","value":"web"}]`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fields := create(object(t, pod)).Fields
			if test.change != nil {
				test.change(&fields)
			}
			req := request.New(fields)
			in := input(req, offlineView(t))
			in.Explain = &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }}
			got := summary(t, object(t, pod), compiled(t, test.policy).Policy.Program.Evaluate(t.Context(), in))
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestConcealed: an explanation shows no values that come from an object which whoever
// asks may not get, nor what lies in a Secret.
func TestConcealed(t *testing.T) {
	view := offlineView(t, object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop}, data: {a: classified}}"))
	reading := rule("context: [{name: cm, configMap: {name: prices, namespace: shop}}]\nmutate: {patchesJson6902: '- {op: add, path: /metadata/labels/one, value: \"{{cm.data.a}}\"}'}")
	secret := strings.ReplaceAll(rule("mutate: {patchesJson6902: '- {op: add, path: /metadata/labels/one, value: \"{{request.object.data.a}}\"}'}"), "kinds: [Pod]", "kinds: [Secret]")
	tests := []struct {
		name, policy, object string
		denied               string // what may not be read
		shown                bool
	}{
		{name: "all may be read", policy: reading, object: pod, shown: true},
		{name: "the ConfigMap may not", policy: reading, object: pod, denied: "ConfigMap shop/prices"},
		{name: "a Secret that may be read", policy: secret, object: "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, labels: {}}, data: {a: classified}}", shown: true},
		{name: "a Secret that may not", policy: secret, object: "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, labels: {}}, data: {a: classified}}", denied: "Secret shop/s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := input(create(object(t, test.object)), view)
			in.Explain = &policy.Explain{MayRead: func(_ context.Context, ref verdict.ParamRef) bool {
				return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name) != test.denied
			}}
			findings := compiled(t, test.policy).Policy.Program.Evaluate(t.Context(), in)
			if len(findings) != 1 || findings[0].Kind != verdict.Mutated || findings[0].Trace == nil {
				t.Fatalf("got %+v", findings)
			}
			trace := findings[0].Trace
			raw, err := json.Marshal(trace.Values)
			if err != nil {
				t.Fatal(err)
			}
			if shown := strings.Contains(string(raw), "classified"); shown != test.shown || (trace.Concealed == "") != test.shown {
				t.Errorf("values %s, concealed %q", raw, trace.Concealed)
			}
		})
	}
}
