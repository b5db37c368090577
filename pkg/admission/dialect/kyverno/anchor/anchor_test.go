// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// decode decodes YAML as an API server decodes JSON: whole numbers stay whole.
func decode(t testing.TB, text string) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return value
}

// object decodes an object, which is of a kind unless it says otherwise.
func object(t testing.TB, kind, text string) map[string]any {
	t.Helper()
	decoded, ok := decode(t, text).(map[string]any)
	if !ok {
		t.Fatalf("no object: %s", text)
	}
	if _, ok := decoded["kind"]; !ok {
		decoded["apiVersion"], decoded["kind"] = "v1", kind
	}
	return decoded
}

// variables is a scope.
type variables map[string]any

func (v variables) Field(_ context.Context, name string) (any, bool, error) {
	value, ok := v[name]
	return value, ok, nil
}

func (v variables) Object(context.Context) (map[string]any, error) { return v, nil }

func newRun() *jmespath.Run { return &jmespath.Run{Steps: 100_000, Bytes: 1 << 20} }

func compiler() *template.Compiler {
	return &template.Compiler{Expressions: jmespath.NewCompiler()}
}

func compile(t testing.TB, text string) *anchor.Overlay {
	t.Helper()
	value := decode(t, text)
	rule := map[string]any{"mutate": map[string]any{"patchStrategicMerge": value}}
	overlay, faults := anchor.Compile(value, compiler(), template.Place{Rule: rule, Path: []string{"mutate", "patchStrategicMerge"}})
	if len(faults) > 0 {
		t.Fatalf("%v:\n%s", faults, text)
	}
	return overlay
}

// rule is an overlay, and what it makes of an object. Both are YAML; the object is a Pod
// unless it says otherwise. Where want is empty, nothing changes, for the reason that is
// given.
type rule struct{ name, overlay, object, want, skipped string }

func check(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			before, untouched := object(t, "Pod", r.object), object(t, "Pod", r.object)
			got, skipped, err := compile(t, r.overlay).Apply(t.Context(), newRun(), nil, before)
			if err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(before, untouched) {
				t.Error("the object was modified")
			}
			if skipped != r.skipped {
				t.Errorf("skipped %q, want %q", skipped, r.skipped)
			}
			want := untouched
			if r.want != "" {
				want = object(t, "Pod", r.want)
			} else if len(patch.Diff(before, got)) == 0 && !same(before, got) {
				t.Error("nothing changed, and yet it is another object")
			}
			if !patch.Equal(want, got) {
				t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// same says whether two maps are one.
func same(a, b map[string]any) bool {
	a["\x00"] = true
	_, ok := b["\x00"]
	delete(a, "\x00")
	return ok
}

func TestConditions(t *testing.T) {
	t.Parallel()
	check(t, []rule{
		{"met", "{metadata: {labels: {(app): web, hit: x}}}", "{metadata: {labels: {app: web}}}", "{metadata: {labels: {app: web, hit: x}}}", ""},
		{"different", "{metadata: {labels: {(app): web, hit: x}}}", "{metadata: {labels: {app: db}}}", "", "condition (app) at metadata.labels: the value does not match"},
		{"absent", "{metadata: {labels: {(app): '*', hit: x}}}", "{metadata: {}}", "", "condition (app) at metadata.labels: there is no such field"},
		{"gates other branches", "{metadata: {labels: {hit: x}}, spec: {securityContext: {(runAsUser): '>0'}}}", "{spec: {securityContext: {runAsUser: 0}}}", "", "condition (runAsUser) at spec.securityContext: the value does not match"},
		{"at the root", "{(kind): Pod, a: b}", "{}", "{a: b}", ""},
		{"not at the root", "{(kind): Secret, a: b}", "{}", "", "condition (kind): the value does not match"},
		{"several", "{metadata: {labels: {(a): '1', (b): '2', hit: x}}}", "{metadata: {labels: {a: '1', b: '3'}}}", "", "condition (b) at metadata.labels: the value does not match"},
		{"below no anchor", "{metadata: {(labels): {app: web}, annotations: {a: b}}}", "{metadata: {labels: {app: web, x: y}}}", "{metadata: {labels: {app: web, x: y}, annotations: {a: b}}}", ""},
		{"spaces around the anchor", "{metadata: {labels: {' (app) ': web, hit: x}}}", "{metadata: {labels: {app: web}}}", "{metadata: {labels: {app: web, hit: x}}}", ""},
		{"and the same key", "{metadata: {labels: {(app): w*, app: new}}}", "{metadata: {labels: {app: web}}}", "{metadata: {labels: {app: new}}}", ""},
		{"no anchors", "{a: {x<y: 1, +z: 3, '': 4}}", "{}", "{a: {x<y: 1, +z: 3, '': 4}}", ""},

		// Scalars are read as texts.
		{"a number", "{spec: {(priority): 80, a: b}}", "{spec: {priority: 80}}", "{spec: {priority: 80, a: b}}", ""},
		{"a number as a text", "{spec: {(priority): '>=80', a: b}}", "{spec: {priority: 80}}", "{spec: {priority: 80, a: b}}", ""},
		{"a boolean as a text", "{spec: {(hostNetwork): 'true', a: b}}", "{spec: {hostNetwork: true}}", "{spec: {hostNetwork: true, a: b}}", ""},
		{"null is a text", "{spec: {(a): null, c: d}}", "{spec: {a: ''}}", "", "condition (a) at spec: the value does not match"},
		{"null", "{spec: {(a): null, c: d}}", "{spec: {a: null}}", "{spec: {a: null, c: d}}", ""},
		{"a quantity", "{spec: {(size): 1024Mi, a: b}}", "{spec: {size: 1Gi}}", "{spec: {size: 1Gi, a: b}}", ""},
		{"one of", "{spec: {(size): 'a | b*', a: b}}", "{spec: {size: box}}", "{spec: {size: box, a: b}}", ""},
		{"outside of a range", "{spec: {(x): 20!-40, a: b}}", "{spec: {x: 600}}", "{spec: {x: 600, a: b}}", ""},
		{"all of a list", "{spec: {(items): a*, ok: true}}", "{spec: {items: [aa, b]}}", "", "condition (items) at spec: the value does not match"},

		// The whole value of a condition is the condition.
		{"a map", "{spec: {(securityContext): {runAsUser: '>0'}, priority: 1}}", "{spec: {securityContext: {runAsUser: 5}}}", "{spec: {securityContext: {runAsUser: 5}, priority: 1}}", ""},
		{"a map that is no map", "{spec: {(securityContext): {runAsUser: '>0'}, priority: 1}}", "{spec: {securityContext: 5}}", "", "condition (securityContext) at spec: the value does not match"},
		{"anchors of validate rules", "{spec: {(conf): {=(mode): x, X(debug): 'null'}, ok: true}}", "{kind: Widget, spec: {conf: {mode: x}}}", "{kind: Widget, spec: {conf: {mode: x}, ok: true}}", ""},
		{"an empty list", "{spec: {(items): [a, b], ok: true}}", "{spec: {items: []}}", "{spec: {items: [], ok: true}}", ""},
		{"a list of scalars", "{spec: {(items): ['a*'], ok: true}}", "{spec: {items: [aa, ab]}}", "{spec: {items: [aa, ab], ok: true}}", ""},
		{"an empty map", "{spec: {(conf): {}, ok: true}}", "{spec: {conf: {a: b}}}", "{spec: {conf: {a: b}, ok: true}}", ""},
		{"an element of a list", "{metadata: {labels: {db: x}}, spec: {(containers): [{(image): '*mongo*'}]}}", "{spec: {containers: [{name: a, image: mongo}, {name: b, image: x}]}}", "{metadata: {labels: {db: x}}, spec: {containers: [{name: a, image: mongo}, {name: b, image: x}]}}", ""},
		{"no element of a list", "{metadata: {labels: {db: x}}, spec: {(containers): [{(image): '*mongo*'}]}}", "{spec: {containers: [{name: b, image: x}]}}", "", "condition (containers) at spec: the value does not match"},
		{"metadata wildcards", "{metadata: {labels: {(backup-*): 'no'}, annotations: {a: b}}}", "{metadata: {labels: {backup-fs: 'no'}}}", "", "condition (backup-*) at metadata.labels: there is no such field"},

		// What only asks whether a key is there.
		{"exists", "{spec: {(emptyDir): {+(sizeLimit): 20Mi, medium: Memory}}}", "{spec: {emptyDir: {}}}", "{spec: {emptyDir: {sizeLimit: 20Mi, medium: Memory}}}", ""},
		{"exists with the key", "{spec: {(emptyDir): {+(sizeLimit): 20Mi}}}", "{spec: {emptyDir: {sizeLimit: 1Gi}}}", "", ""},
		{"exists and is null", "{spec: {(emptyDir): {+(sizeLimit): 20Mi}}}", "{spec: {emptyDir: null}}", "{spec: {emptyDir: {sizeLimit: 20Mi}}}", ""},
		{"does not exist", "{spec: {(emptyDir): {+(sizeLimit): 20Mi}}}", "{spec: {}}", "", "condition (emptyDir) at spec: there is no such field"},
		{"exists at the root", "{(data): {+(a): b}}", "{data: {}}", "{data: {a: b}}", ""},
		{"exists with a condition", "{spec: {(emptyDir): {+(sizeLimit): 20Mi, (medium): Memory}}}", "{spec: {emptyDir: {medium: ''}}}", "", "condition (medium) at spec.(emptyDir): the value does not match"},
	})
}

func TestGlobalConditions(t *testing.T) {
	t.Parallel()
	const secrets = "imagePullSecrets: [{name: s}]"
	check(t, []rule{
		{"met", "{metadata: {labels: {<(app): web}}, a: b}", "{metadata: {labels: {app: web}}}", "{metadata: {labels: {app: web}}, a: b}", ""},
		{"different", "{metadata: {labels: {<(app): web}}, a: b}", "{metadata: {labels: {app: db}}}", "", "global condition <(app) at metadata.labels: the value does not match"},
		{"absent", "{metadata: {labels: {<(app): web}}, a: b}", "{metadata: {}}", "", "global condition <(app) at metadata.labels: there is no such field"},
		{"before other conditions", "{metadata: {labels: {(a): x, <(b): x}}, a: b}", "{}", "", "global condition <(b) at metadata.labels: there is no such field"},
		{"an element", "{spec: {containers: [{<(image): corp/*}], " + secrets + "}}", "{spec: {containers: [{name: a, image: x}, {name: b, image: corp/x}]}}", "{spec: {containers: [{name: a, image: x}, {name: b, image: corp/x}], " + secrets + "}}", ""},
		{"no element", "{spec: {containers: [{<(image): corp/*}], " + secrets + "}}", "{spec: {containers: [{name: a, image: x}]}}", "", "global condition <(image) at spec.containers: no element matches"},
		{"no list", "{spec: {volumes: [{<(emptyDir): {}}], a: b}}", "{spec: {}}", "", "global condition <(emptyDir) at spec.volumes: the object has no elements there"},
		{"an empty list", "{spec: {volumes: [{<(emptyDir): {}}], a: b}}", "{spec: {volumes: []}}", "", "global condition <(emptyDir) at spec.volumes: the object has no elements there"},
		{"only that the key is there", "{metadata: {annotations: {+(safe): 'true'}}, spec: {volumes: [{<(emptyDir): {}}]}}", "{spec: {volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {medium: Memory}}]}}", "{metadata: {annotations: {safe: 'true'}}, spec: {volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {medium: Memory}}]}}", ""},
		{"deep in an element", "{a: b, spec: {volumes: [{hostPath: {<(path): '*data'}}]}}", "{spec: {volumes: [{name: e, emptyDir: {}}, {name: h, hostPath: {path: /data}}]}}", "{a: b, spec: {volumes: [{name: e, emptyDir: {}}, {name: h, hostPath: {path: /data}}]}}", ""},
		{"not deep in an element", "{a: b, spec: {volumes: [{hostPath: {<(path): '*data'}}]}}", "{spec: {volumes: [{name: e, emptyDir: {}}]}}", "", "global condition <(path) at spec.volumes[0].hostPath: no element matches"},
		{"what stands beside it is not merged", "{spec: {containers: [{<(image): x, tty: true}], a: b}}", "{spec: {containers: [{name: a, image: x}]}}", "{spec: {containers: [{name: a, image: x}], a: b}}", ""},
		{"met by an element that another condition leaves out", "{spec: {containers: [{<(image): x, (name): a}], a: b}}", "{spec: {containers: [{name: c, image: x}]}}", "{spec: {containers: [{name: c, image: x}], a: b}}", ""},
		{"by one of two, of which another condition leaves out the other", "{spec: {containers: [{<(image): x, (name): a}], a: b}}", "{spec: {containers: [{name: c, image: x}, {name: d, image: y}]}}", "", "global condition <(image) at spec.containers: no element matches"},
		{"deep in an element that another condition leaves out of a missing list", "{spec: {initContainers: [{(name): 'x*', securityContext: {<(privileged): true}}], a: b}}", "{spec: {containers: [{name: c}]}}", "{spec: {containers: [{name: c}], a: b}}", ""},
		{"with a condition in one element", "{spec: {containers: [{<(image): x, (name): a}], a: b}}", "{spec: {containers: [{name: a, image: y}, {name: b, image: x}]}}", "", "global condition <(image) at spec.containers: no element matches"},
	})
}

func TestAdding(t *testing.T) {
	t.Parallel()
	check(t, []rule{
		{"absent", "{metadata: {annotations: {+(note): new}}}", "{metadata: {}}", "{metadata: {annotations: {note: new}}}", ""},
		{"present", "{metadata: {annotations: {+(note): new}}}", "{metadata: {annotations: {note: old}}}", "", ""},
		{"present in a map that is not there otherwise", "{metadata: {+(labels): {a: b}}, spec: {}}", "{metadata: {labels: null}, spec: {}}", "", ""},
		{"null is present", "{spec: {+(a): b}}", "{spec: {a: null}}", "", ""},
		{"nested", "{spec: {a: {+(b): {+(c): 1}}}}", "{}", "{spec: {a: {b: {c: 1}}}}", ""},
		{"a list", "{spec: {+(a): [y], +(b): [z]}}", "{kind: Widget, spec: {a: []}}", "{kind: Widget, spec: {a: [], b: [z]}}", ""},
		{"beside a condition", "{metadata: {labels: {(app): web, +(env): x}}, spec: {+(dnsPolicy): None}}", "{metadata: {labels: {app: web}}, spec: {dnsPolicy: Default}}", "{metadata: {labels: {app: web, env: x}}, spec: {dnsPolicy: Default}}", ""},
		{"a condition in what is added", "{spec: {+(a): {(b): x, c: y}}}", "{spec: {}}", "", "condition (b) at spec.+(a): there is no such field"},
		{"and the same key", "{spec: {+(a): 1, a: 2}}", "{spec: {}}", "{spec: {a: 2}}", ""},
	})
}

func TestMaps(t *testing.T) {
	t.Parallel()
	check(t, []rule{
		{"an empty map stays", "{spec: {(a): x, securityContext: {}}}", "{spec: {a: x}}", "{spec: {a: x, securityContext: {}}}", ""},
		{"an empty map in a new element", "{spec: {volumes: [{name: n, emptyDir: {}}]}}", "{spec: {}}", "{spec: {volumes: [{name: n, emptyDir: {}}]}}", ""},
		{"a map that is there for its anchors", "{spec: {affinity: {(a): b}}, c: d}", "{spec: {affinity: {a: b}}}", "{spec: {affinity: {a: b}}, c: d}", ""},
		{"no map of nothing", "{spec: {affinity: {x: {+(a): b}}}}", "{spec: {affinity: {x: {a: c}}}}", "", ""},
		{"null deletes", "{metadata: {labels: {(a): '1', b: null}}}", "{metadata: {labels: {a: '1', b: '2'}}}", "{metadata: {labels: {a: '1'}}}", ""},
		{"delete a map", "{spec: {(a): x, securityContext: {$patch: delete}}}", "{spec: {a: x, securityContext: {b: c}}}", "{spec: {a: x}}", ""},
		{"replace a map", "{spec: {(a): x, securityContext: {$patch: replace, +(d): e, f: g}}}", "{spec: {a: x, securityContext: {b: c, d: d}}}", "{spec: {a: x, securityContext: {f: g}}}", ""},
		{"no anchors at all", "{metadata: {labels: {a: b}}}", "{metadata: {labels: {a: b}}}", "", ""},
	})
}
