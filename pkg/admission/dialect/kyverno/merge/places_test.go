// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withElements returns a patch in which the list at spec.KEY is an *Elements.
func withElements(t *testing.T, key, others string, changes ...Change) any {
	t.Helper()
	elements := &Elements{Changes: changes}
	if list, ok := decode(t, `"l": [`+others+`]`)["l"].([]any); ok {
		elements.Others = list
	}
	return map[string]any{"spec": map[string]any{key: elements}}
}

func TestElements(t *testing.T) {
	t.Parallel()
	change := func(index int, patch string) Change { return Change{Index: index, Patch: decode(t, patch)} }
	for _, test := range []struct {
		name, object, key, others string
		changes                   []Change
		want, err                 string
	}{
		{"by place", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}]}`, "containers", ``, []Change{change(1, `"x": 1`)}, aPod + `"spec": {"containers": [{"name": "b", "x": 1}, {"name": "a"}]}`, ""},
		{"in their order", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}`, "containers", ``, []Change{change(2, `"x": 1`), change(1, `"y": 1`)}, aPod + `"spec": {"containers": [{"name": "c", "x": 1}, {"name": "b", "y": 1}, {"name": "a"}]}`, ""},
		{"several for one", aPod + `"spec": {"containers": [{"name": "a"}]}`, "containers", ``, []Change{change(0, `"x": 1, "y": 1`), change(0, `"y": 2`)}, aPod + `"spec": {"containers": [{"name": "a", "x": 1, "y": 2}]}`, ""},
		{"one of two with the same key", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "a"}]}`, "containers", ``, []Change{change(1, `"x": 1`)}, aPod + `"spec": {"containers": [{"name": "a", "x": 1}, {"name": "a"}]}`, ""},
		{"delete one of two with the same key", aPod + `"spec": {"containers": [{"name": "a", "x": 1}, {"name": "a"}]}`, "containers", ``, []Change{change(0, `"$patch": "delete"`), change(0, `"x": 2`)}, aPod + `"spec": {"containers": [{"name": "a"}]}`, ""},
		{"without key", aPod + `"spec": {"containers": [{"x": 1}, {"name": "a"}, {"x": 2}]}`, "containers", ``, []Change{change(2, `"y": 1`)}, aPod + `"spec": {"containers": [{"x": 2, "y": 1}, {"x": 1}, {"name": "a"}]}`, ""},
		{"nothing", aPod + `"spec": {"containers": [{"name": "a"}]}`, "containers", ``, []Change{change(0, ``)}, aPod + `"spec": {"containers": [{"name": "a"}]}`, ""},
		{"with others", aPod + `"spec": {"containers": [{"name": "a", "x": 0}, {"name": "b"}]}`, "containers", `{"name": "a", "x": 2}, {"name": "c"}`, []Change{change(1, `"x": 1`), change(0, `"x": 1, "y": 1`)}, aPod + `"spec": {"containers": [{"name": "a", "x": 2, "y": 1}, {"name": "c"}, {"name": "b", "x": 1}]}`, ""},
		{"replace", aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}]}`, "containers", `{"$patch": "replace"}, {"name": "c"}`, []Change{change(1, `"x": 1`)}, aPod + `"spec": {"containers": [{"name": "c"}, {"name": "b", "x": 1}]}`, ""},
		{"delete the list", aPod + `"spec": {"containers": [{"name": "a"}]}`, "containers", `{"$patch": "delete"}`, []Change{change(0, `"x": 1`)}, aPod + `"spec": {}`, ""},
		{"only others", aPod + `"spec": {"containers": [{"name": "a"}]}`, "containers", `{"name": "b"}`, nil, aPod + `"spec": {"containers": [{"name": "b"}, {"name": "a"}]}`, ""},
		{"no list", aPod + `"spec": {}`, "containers", `{"name": "b", "x": null}`, nil, aPod + `"spec": {"containers": [{"name": "b"}]}`, ""},
		{"two keys", aService + `"spec": {"ports": [{"port": 1}, {"port": 2, "protocol": "TCP"}]}`, "ports", ``, []Change{change(1, `"port": 3`)}, aService + `"spec": {"ports": [{"port": 1}, {"port": 3, "protocol": "TCP"}]}`, ""},

		{"no keys", aWidget + `"spec": {"nodes": [{"a": 1}, {"a": 2}]}`, "nodes", ``, []Change{change(1, `"b": 1`)}, aWidget + `"spec": {"nodes": [{"a": 1}, {"a": 2, "b": 1}]}`, ""},
		{"no keys, another one", aWidget + `"spec": {"nodes": [{"a": 1}]}`, "nodes", `{"a": 2, "c": null}, {"a": 2}`, []Change{change(0, `"b": 1`)}, aWidget + `"spec": {"nodes": [{"a": 2}, {"a": 1, "b": 1}]}`, ""},
		{"no keys, one that is there", aWidget + `"spec": {"nodes": [{"a": 1}, {"a": 2}]}`, "nodes", `{"a": 2.0}`, nil, aWidget + `"spec": {"nodes": [{"a": 1}, {"a": 2}]}`, ""},
		{"no keys, delete", aWidget + `"spec": {"nodes": [{"a": 1}, {"a": 2}]}`, "nodes", ``, []Change{change(0, `"$patch": "delete"`)}, aWidget + `"spec": {"nodes": [{"a": 2}]}`, ""},
		{"no keys, replace", aWidget + `"spec": {"nodes": [{"a": 1}, {"a": 2}]}`, "nodes", `{"$patch": "replace"}, {"a": 3}`, []Change{change(1, `"b": 1`)}, aWidget + `"spec": {"nodes": [{"a": 3}, {"a": 2, "b": 1}]}`, ""},
		{"an object in a custom resource", aWidget + `"spec": {"pods": [{` + aPod + `"spec": {"containers": [{"name": "a"}]}}]}`, "pods", ``, []Change{change(0, `"spec": {"containers": [{"name": "b"}]}`)}, aWidget + `"spec": {"pods": [{` + aPod + `"spec": {"containers": [{"name": "b"}, {"name": "a"}]}}]}`, ""},

		{"no such place", aPod + `"spec": {"containers": [{"name": "a"}]}`, "containers", ``, []Change{change(1, `"x": 1`)}, "", "spec.containers[1]: the object has no such element"},
		{"no list to change", aPod + `"spec": {}`, "containers", ``, []Change{change(0, `"x": 1`)}, "", "spec.containers[0]: the object has no such element"},
		{"no list but a map", aPod + `"spec": {"containers": {}}`, "containers", ``, []Change{change(0, `"x": 1`)}, "", "spec.containers: the patch has a list where the object has a map; only null replaces a value by one of another kind"},
		{"what does not fit", aPod + `"spec": {"containers": [{"name": "a", "x": []}]}`, "containers", ``, []Change{change(0, `"x": 1`)}, "", "spec.containers[0].x: the patch has a scalar where the object has a list; only null replaces a value by one of another kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			object, patch := decode(t, test.object), withElements(t, test.key, test.others, test.changes...)
			got, err := Merge(object, patch)
			if diff := cmp.Diff(decode(t, test.object), object); diff != "" {
				t.Errorf("the object was modified (-want +got)\n%s", diff)
			}
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, test.want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestElementsOfMany is about lists that are indexed.
func TestElementsOfMany(t *testing.T) {
	t.Parallel()
	var containers, want []any
	var changes []Change
	for i := range 2 * manyElements {
		name := fmt.Sprint("c", i/2)
		containers = append(containers, map[string]any{"name": name})
		switch {
		case i%2 == 0:
			changes = append(changes, Change{Index: i, Patch: map[string]any{directiveKey: string(directiveDelete)}})
		case i%4 == 1:
			changes = append(changes, Change{Index: i, Patch: map[string]any{"x": int64(i)}})
			want = append(want, map[string]any{"name": name, "x": int64(i)})
		}
	}
	for i := 3; i < len(containers); i += 4 {
		want = append(want, map[string]any{"name": fmt.Sprint("c", i/2)})
	}
	object := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": containers}}
	patch := map[string]any{"spec": map[string]any{"containers": &Elements{Changes: changes, Others: []any{map[string]any{"name": "c1", "y": true}}}}}
	got, err := Merge(object, patch)
	if err != nil {
		t.Fatal(err)
	}
	moved := append([]any{map[string]any{"name": "c1", "y": true}}, want...)
	for i, element := range moved[1:] {
		if m, ok := element.(map[string]any); ok && m["name"] == "c1" {
			moved = append(moved[:i+1], moved[i+2:]...)
			break
		}
	}
	if diff := cmp.Diff(map[string]any{"containers": moved}, got["spec"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	pod := Schema{}.Of(decode(t, aPod+`"spec": {}`)).Field("spec")
	containers := pod.Field("containers")
	for name, test := range map[string]struct {
		schema Schema
		want   string
	}{
		"one key":           {containers, "name= "},
		"two keys":          {containers.Elements().Field("ports"), "containerPort= protocol=TCP "},
		"replaced":          {pod.Field("tolerations"), ""},
		"of what":           {pod.Field("tolerations").Elements().Field("x"), ""},
		"scalars":           {Schema{}.Of(decode(t, aPod+`"a": 1`)).Field("metadata").Field("finalizers"), ""},
		"nothing known":     {Schema{}.Of(decode(t, aWidget+`"a": 1`)).Field("spec").Field("containers").Elements(), ""},
		"a Pod in a Widget": {Schema{}.Of(decode(t, aWidget+`"a": 1`)).Field("spec").Elements().Of(decode(t, aPod+`"a": 1`)).Field("spec").Field("volumes"), "name= "},
		"a Pod in a Pod":    {pod.Of(decode(t, aService+`"a": 1`)).Field("volumes"), "name= "},
	} {
		got := ""
		for i := range 3 {
			if key, fallback, ok := test.schema.Key(i); ok {
				got += key + "=" + fallback + " "
			}
		}
		if got != test.want {
			t.Errorf("%s: keys %q, want %q", name, got, test.want)
		}
	}
}
