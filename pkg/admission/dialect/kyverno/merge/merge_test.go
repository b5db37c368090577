// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

const (
	aPod     = `"apiVersion": "v1", "kind": "Pod", `
	aService = `"apiVersion": "v1", "kind": "Service", `
	aWidget  = `"apiVersion": "example.com/v1", "kind": "Widget", `
)

// rule is a rule of merging. Objects are written without their outer braces.
type rule struct{ name, object, patch, want string }

// TestRules shows each rule, and that kyaml has it.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, r := range []rule{
		// Maps and scalars.
		{"scalar", aPod + `"a": 1`, `"a": 2`, aPod + `"a": 2`},
		{"same", aPod + `"a": {"b": [1]}`, `"a": {}`, aPod + `"a": {"b": [1]}`},
		{"new map", aPod + `"a": 1`, `"b": {"c": {"d": 1}}`, aPod + `"a": 1, "b": {"c": {"d": 1}}`},
		{"empty map and list are added", aPod + `"a": 1`, `"b": {}, "c": []`, aPod + `"a": 1, "b": {}, "c": []`},
		{"empty map in a new element", aPod + `"spec": {}`, `"spec": {"volumes": [{"name": "n", "emptyDir": {}}]}`, aPod + `"spec": {"volumes": [{"name": "n", "emptyDir": {}}]}`},
		{"null deletes", aPod + `"a": {"b": 1, "c": 2}, "d": [1], "e": {"f": 1}`, `"a": {"b": null}, "d": null, "e": null`, aPod + `"a": {"c": 2}`},
		{"null for all keys leaves the map", aPod + `"a": {"b": 1}`, `"a": {"b": null}`, aPod + `"a": {}`},
		{"null where nothing is", aPod + `"a": 1`, `"b": null, "c": {"d": null}`, aPod + `"a": 1, "c": {}`},
		{"null stays in the object", aPod + `"a": null, "b": null`, `"b": null`, aPod + `"a": null`},
		{"over null", aPod + `"a": null, "b": null, "c": null`, `"a": 1, "b": {"x": 1}, "c": [1]`, aPod + `"a": 1, "b": {"x": 1}, "c": [1]`},
		{"a string stays a string", aPod + `"a": "1", "b": "x", "c": "x", "d": "x"`, `"a": 2, "b": true, "c": 1.5, "d": 1e21`, aPod + `"a": "2", "b": "true", "c": "1.5", "d": "1e+21"`},
		{"a number becomes a string", aPod + `"a": 1, "b": true`, `"a": "2", "b": "no"`, aPod + `"a": "2", "b": "no"`},
		{"a number becomes a boolean", aPod + `"a": 1`, `"a": true`, aPod + `"a": true`},
		{"keys of other directives are plain keys", aPod + `"a": {"b": 1}`, `"a": {"$retainKeys": ["c"], "$setElementOrder/x": []}`, aPod + `"a": {"b": 1, "$retainKeys": ["c"], "$setElementOrder/x": []}`},

		// Directives in maps.
		{"delete a map", aPod + `"a": {"b": 1}, "c": 1`, `"a": {"$patch": "delete", "x": 1}`, aPod + `"c": 1`},
		{"delete no map", aPod + `"c": 1`, `"a": {"$patch": "delete"}`, aPod + `"c": 1`},
		{"replace a map", aPod + `"a": {"b": 1, "c": {"d": 1}}`, `"a": {"$patch": "replace", "c": {"e": 1, "f": null}}`, aPod + `"a": {"c": {"e": 1}}`},
		{"replace no map", aPod + `"c": 1`, `"a": {"$patch": "replace", "b": {"$patch": "merge", "d": {"$patch": "delete"}}}`, aPod + `"c": 1, "a": {"b": {}}`},
		{"merge a map", aPod + `"a": {"b": 1}`, `"a": {"$patch": "merge", "c": 1}`, aPod + `"a": {"b": 1, "c": 1}`},
		{"replace the object", aPod + `"a": 1`, `"$patch": "replace", "b": 1`, `"b": 1`},

		// Lists that are replaced.
		{"a list without keys", aPod + `"spec": {"tolerations": [{"key": "a"}]}`, `"spec": {"tolerations": [{"key": "b", "value": null}]}`, aPod + `"spec": {"tolerations": [{"key": "b", "value": null}]}`},
		{"an empty list replaces", aPod + `"spec": {"tolerations": [{"key": "a"}]}`, `"spec": {"tolerations": []}`, aPod + `"spec": {"tolerations": []}`},
		{"lists of custom resources", aWidget + `"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a", "image": "x"}]}`, `"metadata": {"finalizers": ["b"]}, "spec": {"containers": [{"name": "a", "tty": true}]}`, aWidget + `"metadata": {"finalizers": ["b"]}, "spec": {"containers": [{"name": "a", "tty": true}]}`},
		{"kinds that are newer than 1.21", `"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"finalizers": ["a"]}`, `"metadata": {"finalizers": ["b"]}`, `"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"finalizers": ["b"]}`},
		{"lists that are newer than 1.21", aPod + `"spec": {"schedulingGates": [{"name": "a"}]}`, `"spec": {"schedulingGates": [{"name": "b"}]}`, aPod + `"spec": {"schedulingGates": [{"name": "b"}]}`},
		{"the imagePullSecrets of a ServiceAccount", `"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "a"}], "secrets": [{"name": "a"}]`, `"imagePullSecrets": [{"name": "b"}], "secrets": [{"name": "b"}]`, `"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "b"}], "secrets": [{"name": "b"}, {"name": "a"}]`},

		// Lists that are merged.
		{"new elements come first", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}]}`, `"spec": {"containers": [{"name": "c"}, {"name": "d"}]}`, aPod + `"spec": {"containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}, {"name": "b"}]}`},
		{"elements that match come first", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c", "image": "x"}]}`, `"spec": {"containers": [{"name": "c", "tty": true}, {"name": "b"}]}`, aPod + `"spec": {"containers": [{"name": "c", "image": "x", "tty": true}, {"name": "b"}, {"name": "a"}]}`},
		{"an empty list changes nothing", aPod + `"spec": {"containers": [{"name": "a"}]}`, `"spec": {"containers": []}`, aPod + `"spec": {"containers": [{"name": "a"}]}`},
		{"into an empty list", aPod + `"spec": {"containers": []}`, `"spec": {"containers": [{"name": "a", "env": null}]}`, aPod + `"spec": {"containers": [{"name": "a"}]}`},
		{"lists within elements", aPod + `"spec": {"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}]}]}`, `"spec": {"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}, {"name": "x", "value": "3"}]}]}`, aPod + `"spec": {"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}, {"name": "x", "value": "3"}]}]}`},
		{"retainKeys of the schema is ignored", aPod + `"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}`, `"spec": {"volumes": [{"name": "a", "secret": {"secretName": "s"}}]}`, aPod + `"spec": {"volumes": [{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}]}`},
		{"templates", `"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}]}}}`, `"spec": {"template": {"spec": {"containers": [{"name": "a", "tty": true}]}}}`, `"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x", "tty": true}]}}}`},
		{"objects in custom resources", aWidget + `"spec": {"pod": {` + aPod + `"spec": {"containers": [{"name": "a", "image": "x"}]}}}`, `"spec": {"pod": {"spec": {"containers": [{"name": "a", "tty": true}]}}}`, aWidget + `"spec": {"pod": {` + aPod + `"spec": {"containers": [{"name": "a", "image": "x", "tty": true}]}}}`},
		{"a list of scalars", aPod + `"metadata": {"finalizers": ["a", "b", "c"]}`, `"metadata": {"finalizers": ["d", "c"]}`, aPod + `"metadata": {"finalizers": ["d", "c", "a", "b"]}`},
		{"keys are compared as texts", aPod + `"spec": {"containers": [{"name": "1", "image": "x"}]}`, `"spec": {"containers": [{"name": 1, "tty": true}]}`, aPod + `"spec": {"containers": [{"name": "1", "image": "x", "tty": true}]}`},

		// Two keys.
		{"two keys", aPod + `"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}, {"containerPort": 2, "protocol": "UDP"}]}]}`, `"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 2, "protocol": "UDP", "name": "b"}, {"containerPort": 1, "protocol": "UDP"}]}]}`, aPod + `"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "protocol": "TCP"}, {"containerPort": 2, "protocol": "UDP", "name": "b"}]}]}`},
		{"the second key is nowhere", aService + `"spec": {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}`, `"spec": {"ports": [{"port": 2, "targetPort": 3}]}`, aService + `"spec": {"ports": [{"port": 2, "name": "b", "targetPort": 3}, {"port": 1}]}`},
		{"other ports have the second key", aService + `"spec": {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 2, "name": "b"}]}`, `"spec": {"ports": [{"port": 2, "targetPort": 3}]}`, aService + `"spec": {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 2, "name": "b", "targetPort": 3}]}`},

		// Directives in lists.
		{"delete an element", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}]}`, `"spec": {"containers": [{"name": "b", "$patch": "delete"}, {"name": "c", "$patch": "delete"}]}`, aPod + `"spec": {"containers": [{"name": "a"}]}`},
		{"delete the last element", aPod + `"spec": {"volumes": [{"name": "a"}]}`, `"spec": {"volumes": [{"name": "a", "$patch": "delete"}]}`, aPod + `"spec": {"volumes": []}`},
		{"replace an element moves it", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b", "image": "x"}]}`, `"spec": {"containers": [{"name": "b", "$patch": "replace", "image": "y"}, {"name": "c", "$patch": "replace", "image": "z"}]}`, aPod + `"spec": {"containers": [{"name": "b", "image": "x"}, {"name": "c", "image": "z"}, {"name": "a"}]}`},
		{"replace a list", aPod + `"spec": {"containers": [{"name": "a"}]}, "metadata": {"finalizers": ["a"]}`, `"spec": {"containers": [{"name": "b"}, {"$patch": "replace"}]}, "metadata": {"finalizers": [{"$patch": "replace"}, "b"]}`, aPod + `"spec": {"containers": [{"name": "b"}]}, "metadata": {"finalizers": ["b"]}`},
		{"delete a list", aPod + `"spec": {"containers": [{"name": "a"}]}`, `"spec": {"containers": [{"$patch": "delete"}, {"name": "b"}]}`, aPod + `"spec": {}`},
		{"merge a list", aPod + `"spec": {"containers": [{"name": "a"}]}`, `"spec": {"containers": [{"$patch": "merge"}, {"name": "b"}]}`, aPod + `"spec": {"containers": [{"name": "b"}, {"name": "a"}]}`},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			object, patch, want := decode(t, r.object), decode(t, r.patch), decode(t, r.want)
			got, err := Merge(object, patch)
			check(t, "ours", got, err, want)
			got, err = upstream(object, patch)
			check(t, "kyaml", got, err, want)
		})
	}
}

func check(t *testing.T, who string, got map[string]any, err error, want map[string]any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", who, err)
		return
	}
	if diff := cmp.Diff(want, copied(t, got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", who, diff)
	}
}

// decode decodes an object that is written without its outer braces.
func decode(t testing.TB, fields string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte("{"+fields+"}"), &object); err != nil {
		t.Fatalf("%v in %s", err, fields)
	}
	return object
}

func TestErrors(t *testing.T) {
	t.Parallel()
	deep := any(map[string]any{})
	for range maxDepth {
		deep = map[string]any{"a": deep}
	}
	for name, c := range map[string]struct {
		object string
		patch  any
		want   string
	}{
		"no map":               {aPod, nil, "the patch must be a map, not null"},
		"delete the object":    {aPod, map[string]any{"$patch": "delete"}, "the patch must not delete the whole object"},
		"map over list":        {aPod + `"spec": {"containers": []}`, decode(t, `"spec": {"containers": {"a": 1}}`), "spec.containers: the patch has a map where the object has a list; only null replaces a value by one of another kind"},
		"scalar over map":      {aPod + `"metadata": {"labels": {"a.b/c": {}}}`, decode(t, `"metadata": {"labels": {"a.b/c": 1}}`), "metadata.labels[a.b/c]: the patch has a scalar where the object has a map; only null replaces a value by one of another kind"},
		"list over scalar":     {aWidget + `"a": 1`, decode(t, `"a": []`), "a: the patch has a list where the object has a scalar; only null replaces a value by one of another kind"},
		"unknown directive":    {aPod + `"a": {}`, decode(t, `"a": {"$patch": "drop"}`), `a.$patch: "drop" is no directive; there are merge, replace and delete`},
		"in a new map":         {aPod, decode(t, `"a": {"b": {"$patch": 1}}`), `a.b.$patch: "1" is no directive; there are merge, replace and delete`},
		"in a list":            {aPod, decode(t, `"spec": {"containers": [{"name": "a"}, {"$patch": "x"}]}`), `spec.containers[1].$patch: "x" is no directive; there are merge, replace and delete`},
		"the first of several": {aPod + `"a": 1, "b": 1, "c": 1`, decode(t, `"c": [], "b": {}, "a": []`), "a: the patch has a list where the object has a scalar; only null replaces a value by one of another kind"},
		"a map among scalars":  {aPod, decode(t, `"metadata": {"finalizers": ["a", {"b": 1}]}`), "metadata.finalizers[1]: an element of this list must be a scalar and not empty, not a map"},
		"too deep":             {aPod, deep, "the patch is nested deeper than 200 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := decode(t, strings.TrimSuffix(c.object, ", "))
			got, err := Merge(object, c.patch)
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, %v, want the error %s", got, err, c.want)
			}
		})
	}
}

// TestSharing shows that an object that a patch does not change is returned as it is,
// and that what a patch does not touch is shared.
func TestSharing(t *testing.T) {
	t.Parallel()
	object := decode(t, aPod+`"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}, {"name": "b", "env": [{"name": "x"}]}]}`)
	before := copied(t, object)
	got, err := Merge(object, decode(t, `"metadata": {"labels": {"a": "b", "c": null}}, "spec": {"containers": [{"name": "a"}]}`))
	if err != nil || !same(got, object) {
		t.Errorf("a patch that changes nothing made %v, %v", got, err)
	}
	got, err = Merge(object, decode(t, `"spec": {"containers": [{"name": "a", "tty": true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if !same(got["metadata"], object["metadata"]) || !same(containers(got)[1], containers(object)[1]) {
		t.Error("what the patch does not touch was copied")
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the object was modified\n%s", diff)
	}
}

func containers(pod map[string]any) []any {
	spec, _ := pod["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	return list
}

// same says whether two maps are one.
func same(a, b any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
