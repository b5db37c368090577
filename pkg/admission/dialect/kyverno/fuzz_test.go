// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// enough is the longest that a policy may take to judge a request of a fuzz target.
const enough = 20 * time.Second

// FuzzPolicy applies any policy to any object: nothing panics, the object stays as it
// came, the findings are the same each time, and a patch can be made of what comes out.
func FuzzPolicy(f *testing.F) {
	for _, text := range []string{
		rule(`mutate: {patchStrategicMerge: {metadata: {labels: {"+(by)": "{{request.userInfo.username}}"}}, spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}}}`),
		rule(`mutate: {patchesJson6902: "- {op: add, path: /metadata/labels/by, value: '{{request.userInfo.username}}'}\n- {op: remove, path: /spec/containers/-1}"}`),
		rule("preconditions: {all: [{key: \"{{request.operation}}\", operator: AnyIn, value: [CREATE, UPDATE]}]}\nmutate:\n  foreach:\n  - list: request.object.spec.containers\n    patchesJson6902: \"- {op: add, path: '/spec/containers/{{elementIndex}}/tty', value: true}\""),
		rule("context:\n- {name: n, variable: {jmesPath: \"request.object.spec.containers[].name | sort(@)\", default: []}}\nmutate: {patchStrategicMerge: {metadata: {annotations: {\"{{n[0]}}\": \"{{images.containers.nginx.tag}} {{@}} $(../../../../../name)\"}}}}"),
		"applyRules: One\nrules:\n- name: a\n  match: {any: [{resources: {kinds: ['*'], names: ['w*'], selector: {matchLabels: {'a*': '?eb'}}}}]}\n  exclude: {all: [{resources: {kinds: [Pod], namespaces: [kube-*]}}]}\n  mutate: {patchStrategicMerge: {spec: {$patch: replace}}}\n",
		rule(doubling(40)),
	} {
		f.Add(text, pod)
	}
	view := offlineView(f)
	dialect := kyverno.New()
	f.Fuzz(func(t *testing.T, text, body string) {
		stored := &policyapi.ClusterPolicy{}
		if len(text) > 1<<16 || len(body) > 1<<16 || yaml.Unmarshal([]byte(text), &stored.Spec) != nil {
			return
		}
		object, ok := decode(body)
		if !ok {
			return
		}
		unit, _ := dialect.Compile(t.Context(), stored)
		if unit == nil {
			t.Fatal("no unit")
		}
		before := object.DeepCopy()
		ctx, cancel := context.WithTimeout(t.Context(), enough)
		defer cancel()
		first := unit.Policy.Program.Evaluate(ctx, input(create(object), view))
		if ctx.Err() != nil {
			t.Fatal("it takes too long")
		}
		if diff := cmp.Diff(before.Object, object.Object); diff != "" {
			t.Fatalf("the object has been changed:\n%s", diff)
		}
		explained := input(create(object), view)
		explained.Explain = &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }}
		second := unit.Policy.Program.Evaluate(ctx, explained)
		compare(t, first, second)
		for i := range first {
			if changed := first[i].Object; changed != nil {
				if _, err := json.Marshal(patch.Diff(object.Object, changed.Object)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func decode(body string) (*unstructured.Unstructured, bool) {
	raw, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		return nil, false
	}
	var value map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil || value == nil {
		return nil, false
	}
	object := &unstructured.Unstructured{Object: value}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return nil, false
	}
	_, ok := value["metadata"].(map[string]any)
	return object, ok
}

// compare wants the same findings, apart from traces and the reasons of NotMatched.
func compare(t *testing.T, first, second []verdict.Finding) {
	t.Helper()
	if len(first) != len(second) {
		t.Fatalf("%d findings, then %d", len(first), len(second))
	}
	for i := range first {
		a, b := first[i], second[i]
		sameObject := (a.Object == nil) == (b.Object == nil) && (a.Object == nil || patch.Equal(a.Object.Object, b.Object.Object))
		if a.Kind != b.Kind || a.Rule != b.Rule || !sameObject || a.Kind == verdict.Error && a.Message != b.Message {
			t.Fatalf("found %+v, and with an explanation %+v", a, b)
		}
	}
}
