// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"
)

// target is what requests are about.
type target struct {
	group, version, resource, subresource string
	kind                                  schema.GroupVersionKind
	namespaced                            bool
	operations                            []admission.Operation
	// forwarded are the versions in which a webhook may get the object.
	forwarded []string
}

func kindOf(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// targets does not have the resources that no policy judges (match.Exempt): the
// plugin of kube-apiserver leaves them out before its dispatcher is asked.
func targets() []*target {
	writes := []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Create}
	updates := []admission.Operation{admission.Update}
	versions := []string{"", "", "", "v1", "v2", "v1beta1"}
	return []*target{
		{"", "v1", "pods", "", kindOf("v1", "Pod"), true, writes, nil},
		{"apps", "v1", "deployments", "", kindOf("apps/v1", "Deployment"), true, writes, nil},
		{"example.com", "v1", "gadgets", "", kindOf("example.com/v1", "Gadget"), true, writes, versions},
		{"example.com", "v2", "gadgets", "", kindOf("example.com/v2", "Gadget"), true, writes, versions},
		{"example.com", "v2", "gadgets", "status", kindOf("example.com/v2", "Gadget"), true, updates, versions},
		{"example.com", "v2", "gadgets", "scale", kindOf("autoscaling/v1", "Scale"), true, updates, nil},
		{"example.com", "v1", "realms", "", kindOf("example.com/v1", "Realm"), false, writes, []string{"", "", "v2"}},
		{"", "v1", "configmaps", "", kindOf("v1", "ConfigMap"), true, writes, nil},
		{"", "v1", "namespaces", "", kindOf("v1", "Namespace"), false, writes, nil},
		{"", "v1", "namespaces", "status", kindOf("v1", "Namespace"), false, updates, nil},
		{"", "v1", "nodes", "", kindOf("v1", "Node"), false, writes, nil},
		{"", "v1", "pods", "status", kindOf("v1", "Pod"), true, updates, nil},
		{"", "v1", "pods", "exec", kindOf("v1", "PodExecOptions"), true, []admission.Operation{admission.Connect}, nil},
		{"apps", "v1", "deployments", "scale", kindOf("autoscaling/v1", "Scale"), true, updates, nil},
		{"unheard.of", "v1alpha1", "things", "", kindOf("unheard.of/v1alpha1", "Thing"), true, writes, nil},
	}
}

func (g *generator) target() *target {
	if len(g.focus) > 0 && !g.chance(8) {
		return pick(g, g.focus...)
	}
	return pick(g, targets()...)
}

func (g *generator) question() *question {
	on := g.target()
	q := &question{
		Kind:        on.kind,
		Resource:    schema.GroupVersionResource{Group: on.group, Version: on.version, Resource: on.resource},
		SubResource: on.subresource,
		Name:        pick(g, "a", "b", "prod", "a-rather-long-name.example.com", "test"),
		Operation:   pick(g, on.operations...),
		User:        g.user(),
		DryRun:      g.chance(5),
	}
	switch {
	case on.namespaced:
		// Nothing else fails in a namespace that nobody knows, see comparison.
		if q.Namespace = pick(g, "prod", "prod", "test", "bare"); g.chance(40) {
			q.Namespace = "missing"
		}
	case on.resource == "namespaces":
		q.Namespace = q.Name // as kube-apiserver has it
	}
	if on.forwarded != nil {
		if q.ForwardedAs = pick(g, on.forwarded...); q.ForwardedAs == q.Kind.Version {
			q.ForwardedAs = ""
		}
	}
	g.objects(q)
	g.options(q)
	return q
}

func (g *generator) objects(q *question) {
	switch q.Operation {
	case admission.Create:
		q.Object = g.object(q)
		if g.chance(6) { // the name is still to be generated
			q.Name = ""
			metadata := q.Object.Object["metadata"].(map[string]any)
			delete(metadata, "name")
			if !g.chance(4) {
				metadata["generateName"] = pick(g, "a-", "gen-")
			}
			if q.Resource.Resource == "namespaces" {
				q.Namespace = ""
			}
		}
	case admission.Update:
		q.Object, q.OldObject = g.object(q), g.object(q)
	case admission.Delete:
		q.OldObject = g.object(q)
		if g.chance(8) {
			q.Name = "" // a collection
		}
		if g.chance(30) {
			q.OldObject = nil
		}
	case admission.Connect:
		q.Object = &unstructured.Unstructured{Object: map[string]any{
			"command": []any{"sh", "-c", pick(g, "ls", "rm -rf /")}, "container": "main", "stdin": true,
		}}
		q.Object.SetGroupVersionKind(q.Kind)
	}
}

func (g *generator) options(q *question) {
	var dryRun []string
	if q.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	kind := func(name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: name} }
	switch q.Operation {
	case admission.Create:
		q.Options = &metav1.CreateOptions{TypeMeta: kind("CreateOptions"), DryRun: dryRun, FieldManager: pick(g, "", "kubectl"), FieldValidation: pick(g, "", "Strict")}
	case admission.Update:
		q.Options = &metav1.UpdateOptions{TypeMeta: kind("UpdateOptions"), DryRun: dryRun, FieldManager: pick(g, "", "kubectl")}
	case admission.Delete:
		options := &metav1.DeleteOptions{TypeMeta: kind("DeleteOptions"), DryRun: dryRun}
		if g.chance(2) {
			options.GracePeriodSeconds, options.PropagationPolicy = ptr.To[int64](0), ptr.To(metav1.DeletePropagationForeground)
		}
		q.Options = options
	case admission.Connect: // has none
	}
	if g.chance(20) {
		q.Options = nil
	}
}

func (g *generator) user() user.DefaultInfo {
	return pick(g,
		user.DefaultInfo{Name: "alice", Groups: []string{"devs", "system:authenticated"}},
		user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"devs"}, Extra: map[string][]string{"scopes": {"a", "b"}, "example.com/x": {""}}},
		user.DefaultInfo{Name: "system:serviceaccount:prod:builder", UID: "u", Groups: []string{"system:serviceaccounts"}},
		user.DefaultInfo{Name: "über\t\"bob\"", Groups: []string{}, Extra: map[string][]string{"none": {}}},
		user.DefaultInfo{},
	)
}

// long has the length that the cost of expressions is reckoned with.
func long(length int) string { return strings.Repeat("x", length) }

// object has the fields that expressions look at, and some of them not, or of
// another type. Every number keeps its type in JSON: a float is never whole.
func (g *generator) object(q *question) *unstructured.Unstructured {
	metadata := map[string]any{"name": q.Name}
	if q.Namespace != "" && q.Kind.Kind != "Namespace" {
		metadata["namespace"] = q.Namespace
	}
	if labels := pick(g, map[string]any{"env": "prod", "app": "nginx"}, map[string]any{"env": "test", "app": "nginx", "we/ird": "x"},
		map[string]any{"app": "ünï", "team": "a"}, map[string]any{}, nil); labels != nil {
		metadata["labels"] = labels
	}
	if annotations := pick(g, nil, nil, map[string]any{"note": "a\nb"}, map[string]any{"example.com/owner": "", "x": "'\"\\"}); annotations != nil {
		metadata["annotations"] = annotations
	}
	if g.chance(8) {
		metadata["finalizers"] = []any{"a/b"}
		metadata["creationTimestamp"] = "2026-01-02T03:04:05Z"
	}
	spec := map[string]any{}
	for _, field := range objectFields {
		if !g.chance(9) {
			spec[field.name] = field.values[0]
			if g.chance(2) {
				spec[field.name] = pick(g, field.values...)
			}
		}
	}
	if g.large {
		g.enlarge(spec)
	}
	object := map[string]any{"metadata": metadata, "spec": spec}
	if g.chance(30) {
		object["spec"] = pick[any](g, nil, "text", []any{"a"}, int64(4))
	}
	if g.chance(5) {
		object["data"] = map[string]any{"name": "nginx", "limit": "5"}
	}
	made := &unstructured.Unstructured{Object: object}
	made.SetGroupVersionKind(q.Kind)
	return made.DeepCopy() // no two objects share what is in the table
}

// enlarge adds what dataExpressions look at.
func (g *generator) enlarge(spec map[string]any) {
	spec["big"] = long(pick(g, 10, 100, 1000, 9_900, 9_990, 10_000, 10_010, 10_100))
	spec["needle"] = strings.Repeat(pick(g, "y", "x"), pick(g, 10, 100, 1000, 9_900, 10_000, 10_010))
	items := []any{}
	for i := range pick(g, 3, 0, 10, 40, 100) {
		items = append(items, fmt.Sprint("item-", i))
	}
	spec["long"] = items
}

// objectFields are the fields of a spec with the values that they may have, the
// usual ones first. The values are JSON: int64, float64, string, bool, nil.
var objectFields = []struct {
	name   string
	values []any
}{
	{"replicas", []any{int64(3), int64(1), int64(0), int64(100), int64(-1), "3", 2.5, nil, int64(9223372036854775807)}},
	{"zero", []any{int64(0), int64(0), int64(1), 0.5}},
	{"flag", []any{true, false, true, "true", nil}},
	{"name", []any{"nginx", "redis", "", "Ünïcode ☃ \U0001F600", "a,b,c", "line\nbreak", " padded ", "a/b-c.d", int64(7)}},
	{"image", []any{"registry.example.com/nginx:1.25.3", "nginx", "nginx@sha256:abc", ""}},
	{"items", []any{
		[]any{"a", "b", "c"},
		[]any{},
		[]any{"b", "a", "b"},
		[]any{int64(1), int64(2)},
		[]any{"a", int64(1), nil},
		[]any{[]any{"a"}, []any{"b", "c"}},
		"abc",
		map[string]any{"a": "b"},
	}},
	{"numbers", []any{[]any{int64(3), int64(1), int64(2)}, []any{}, []any{1.5, int64(2)}, []any{int64(1), "x"}}},
	{"containers", []any{
		[]any{map[string]any{"name": "main", "image": "nginx:1", "ports": []any{map[string]any{"containerPort": int64(80)}}}},
		[]any{map[string]any{"name": "main", "image": "nginx:1"}, map[string]any{"name": "side", "image": "redis", "ports": []any{}}},
		[]any{map[string]any{"name": "main"}, map[string]any{}},
		[]any{},
		nil,
	}},
	{"nested", []any{map[string]any{"a": map[string]any{"b": int64(1)}}, map[string]any{"a": map[string]any{}}, map[string]any{"a": "text"}, nil}},
	{"quantity", []any{"500m", "1Gi", "2", "1e3", "lots", int64(2)}},
	{"ip", []any{"192.168.1.5", "10.0.0.1", "::1", "127.0.0.1", "300.1.1.1", ""}},
	{"url", []any{"https://example.com:8443/path?q=1&q=2", "/relative", "http://[::1]/", "::bad"}},
	{"version", []any{"1.2.3", "v1.2", "1.2.3-alpha.1+b", "one"}},
	{"when", []any{"2026-01-02T03:04:05Z", "2026-02-30T00:00:00Z", "1h30m", "later"}},
	{"namespace", []any{"prod", "x"}}, // a word that CEL escapes
}
