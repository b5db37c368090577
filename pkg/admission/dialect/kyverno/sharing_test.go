// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

const sharedPod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {note: x}}
spec:
  nodeSelector: {disk: ssd}
  containers:
  - {name: a, image: "nginx:1.27", resources: {limits: {cpu: 1}}, env: [{name: A, value: a}]}
  - {name: b, image: "other:1", resources: {limits: {cpu: 1}}, env: [{name: A, value: a}]}
  volumes: [{name: v, emptyDir: {}}]
`

// TestUnchangedPartsAreShared: whatever changes an object, it copies what has changed and
// what is around that, and nothing else; and it never writes into what it was given.
func TestUnchangedPartsAreShared(t *testing.T) {
	const patch = "{spec: {containers: [{name: a, tty: true}]}}"
	const list = "mutate:\n  foreach:\n  - list: request.object.spec.containers[?name == 'a']\n    "
	for name, fields := range map[string]string{
		"merge":               "mutate: {patchStrategicMerge: " + patch + "}",
		"merge with anchors":  "mutate: {patchStrategicMerge: {spec: {containers: [{(image): nginx*, +(tty): true}]}}}",
		"merge with variable": "mutate: {patchStrategicMerge: {spec: {containers: [{name: a, tty: \"{{ request.object.metadata.name == 'web' }}\"}]}}}",
		"JSON patch":          "mutate: {patchesJson6902: \"- {op: add, path: /spec/containers/0/tty, value: true}\"}",
		"foreach merge":       list + "patchStrategicMerge: " + patch,
		"foreach JSON patch":  list + "patchesJson6902: \"- {op: add, path: /spec/containers/0/tty, value: true}\"",
		"foreach in foreach":  list + "foreach:\n    - list: \"`[1, 2]`\"\n      patchesJson6902: \"- {op: add, path: /spec/containers/0/tty, value: true}\"",
	} {
		t.Run(name, func(t *testing.T) {
			unit, view, before := compiled(t, rule(fields)), offlineView(t), object(t, sharedPod)
			untouched := before.DeepCopy()
			findings := unit.Policy.Program.Evaluate(t.Context(), input(create(before), view))
			if len(findings) == 0 || findings[0].Kind != verdict.Mutated {
				t.Fatalf("got %+v", findings)
			}
			if !reflect.DeepEqual(before, untouched) {
				t.Error("what it was given has changed")
			}
			paths := sharedPaths(before.Object, findings[0].Object.Object, "")
			slices.Sort(paths)
			want := []string{"/metadata", "/spec/containers/0/env", "/spec/containers/0/resources", "/spec/containers/1", "/spec/nodeSelector", "/spec/volumes"}
			if !slices.Equal(paths, want) {
				t.Errorf("shared are %v, want %v", paths, want)
			}
		})
	}
}

// sharedPaths returns where two values have the same maps and lists in memory.
func sharedPaths(a, b any, path string) []string {
	var paths []string
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return nil
		}
		if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
			return []string{path}
		}
		for key := range a {
			paths = append(paths, sharedPaths(a[key], b[key], path+"/"+key)...)
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) == 0 || len(b) == 0 {
			return nil
		}
		if &a[0] == &b[0] {
			return []string{path}
		}
		for i := range min(len(a), len(b)) {
			paths = append(paths, sharedPaths(a[i], b[i], fmt.Sprint(path, "/", i))...)
		}
	}
	return paths
}

// TestLoopsChangeNothingThatIsSeen: what a loop has changed in place is seen by nobody
// before, neither by variables nor where it was copied to.
func TestLoopsChangeNothingThatIsSeen(t *testing.T) {
	const fields = `
mutate:
  foreach:
  - list: request.object.spec.containers
    patchesJson6902: "- {op: add, path: '/spec/containers/{{elementIndex}}/tty', value: true}"
  - list: "` + "`[1, 2, 3]`" + `"
    patchesJson6902: |
      - op: add
        path: /seen{{elementIndex}}
        value: {{request.object.spec.containers[0]}}
      - {op: copy, from: /spec/containers/0, path: "/copied{{elementIndex}}"}
      - {op: replace, path: /spec/containers/0/image, value: "i{{elementIndex}}"}
  - list: "` + "`[1, 2]`" + `"
    foreach:
    - list: "` + "`[1]`" + `"
      patchesJson6902: "- {op: replace, path: /spec/containers/0/image, value: 'j{{elementIndex0}}'}"
    - list: request.object.spec.containers[0].image
      patchesJson6902: |
        - op: add
          path: /inner{{elementIndex0}}
          value: {{request.object.spec.containers[0]}}`
	unit, view := compiled(t, rule(fields)), offlineView(t)
	findings := unit.Policy.Program.Evaluate(t.Context(), input(create(object(t, pod)), view))
	if len(findings) != 1 || findings[0].Kind != verdict.Mutated {
		t.Fatalf("got %+v", findings)
	}
	container := func(image string) any { return map[string]any{"name": "nginx", "image": image, "tty": true} }
	for field, want := range map[string]any{
		"seen0": container("nginx:1.27"), "seen1": container("nginx:1.27"), "seen2": container("nginx:1.27"),
		"copied0": container("nginx:1.27"), "copied1": container("i0"), "copied2": container("i1"),
		"inner0": container("j0"), "inner1": container("j1"),
	} {
		if got := findings[0].Object.Object[field]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", field, got, want)
		}
	}
}

// TestSelects: a policy says at a glance that it is not for a request only if its rules
// are not about it.
func TestSelects(t *testing.T) {
	for name, test := range map[string]struct {
		policy string
		want   bool
	}{
		"about it":             {rule("mutate: {patchStrategicMerge: {metadata: {labels: {by: jane}}}}"), true},
		"another name":         {"rules:\n- name: r\n  match: {any: [{resources: {kinds: [Pod], names: [other]}}]}\n  mutate: {patchStrategicMerge: {metadata: {labels: {by: jane}}}}", false},
		"a condition may fail": {"webhookConfiguration: {matchConditions: [{name: c, expression: \"object.spec.none == 'x'\"}]}\nrules:\n- name: r\n  match: {any: [{resources: {kinds: [Pod], names: [other]}}]}\n  mutate: {patchStrategicMerge: {metadata: {labels: {by: jane}}}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			program, ok := compiled(t, test.policy).Policy.Program.(policy.Selective)
			if !ok {
				t.Fatal("the program is not selective")
			}
			req := create(object(t, pod))
			if got := program.Selects(req); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			for _, finding := range program.Evaluate(t.Context(), input(req, offlineView(t))) {
				if !test.want && finding.Kind != verdict.NotMatched {
					t.Errorf("it does not select the request, and finds %+v", finding)
				}
			}
		})
	}
}
