// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func laidOver(t *testing.T, base cluster.View, objects []*unstructured.Unstructured) cluster.View {
	t.Helper()
	view, err := overlay.New(base, objects)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func read(t *testing.T, view cluster.View, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := view.Objects(t.Context(), cluster.Selection{Kind: kind, Namespace: "default", Name: name})
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %s: got %v, %v, want one object", kind, name, found, err)
	}
	return found[0]
}

// TestStored compares with the recorded answers, wherever the definition stands.
func TestStored(t *testing.T) {
	all := decode(t, readFile(t, "stored.yaml"))
	definition, objects := all[:1], all[1:]
	given := make([]*unstructured.Unstructured, 0, len(all))
	for _, obj := range all {
		given = append(given, obj.DeepCopy())
	}
	empty := newBase(t, "")
	together := laidOver(t, empty, all)
	views := map[string]cluster.View{
		"in one layer":       together,
		"definition below":   laidOver(t, laidOver(t, empty, definition), objects),
		"two layers":         laidOver(t, laidOver(t, laidOver(t, empty, definition), objects), decode(t, gadgets)),
		"defined once again": laidOver(t, together, definition),
	}
	answers := decode(t, readFile(t, "stored-answers.yaml"))
	if want := 3 * len(objects); len(answers) != want {
		t.Fatalf("there are %d answers, want %d", len(answers), want)
	}
	for name, view := range views {
		t.Run(name, func(t *testing.T) {
			for _, want := range answers {
				got := read(t, view, want.GroupVersionKind(), want.GetName()).DeepCopy()
				for _, own := range []string{"uid", "creationTimestamp"} {
					unstructured.RemoveNestedField(got.Object, "metadata", own)
				}
				if diff := cmp.Diff(want.Object, got.Object); diff != "" {
					t.Errorf("%s in %s (-want +got):\n%s", want.GetName(), want.GetAPIVersion(), diff)
				}
			}
		})
	}
	if diff := cmp.Diff(given, all); diff != "" {
		t.Errorf("what was given has changed:\n%s", diff)
	}
}

// limitDefinition defines the kind Limit in one version, or in v1 and v2.
func limitDefinition(rest string, schemas ...string) string {
	text := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: limits.b.example}, spec: " +
		"{group: b.example, scope: Namespaced, names: {plural: limits, kind: Limit}, " + rest + "versions: ["
	for i, schema := range schemas {
		text += fmt.Sprintf("{name: v%d, served: true, storage: %t, schema: %s}, ", i+1, i == 0, schema)
	}
	return text + "]}}\n"
}

func limit(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "b.example", Version: version, Kind: "Limit"}
}

const (
	oneDefault  = "{openAPIV3Schema: {type: object, properties: {max: {type: integer, default: 3}}}}"
	twoDefaults = "{openAPIV3Schema: {type: object, properties: {max: {type: integer, default: 3}, min: {type: integer, default: 1}}}}"
)

// TestStoredVersions wants of each object which fields it has beside those of
// every object.
func TestStoredVersions(t *testing.T) {
	const open = "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
	tests := []struct {
		name, definition, object string
		in                       string
		want                     string // fields, or an error
	}{
		{"default", limitDefinition("", oneDefault), "{apiVersion: b.example/v1, unknown: x}", "v1", "max:3"},
		{"not structural", limitDefinition("", "{openAPIV3Schema: {properties: {max: {default: 3}}}}"), "{apiVersion: b.example/v1, unknown: x}", "v1", "unknown:x"},
		{"no schema", limitDefinition("", "{}"), "{apiVersion: b.example/v1, unknown: x}", "v1", "unknown:x"},
		{"no schema, other version", limitDefinition("", "{}", "{}"), "{apiVersion: b.example/v1, unknown: x}", "v2", "unknown:x"},
		{"nothing is pruned", limitDefinition("preserveUnknownFields: true, ", oneDefault), "{apiVersion: b.example/v1, unknown: x}", "v1", "unknown:x"},
		{"storage has no schema", limitDefinition("", "{}", oneDefault), "{apiVersion: b.example/v1, unknown: x}", "v2", ""},
		{"storage knows less", limitDefinition("", oneDefault, twoDefaults), "{apiVersion: b.example/v2, min: 5}", "v2", "max:3"},
		{"the version read has a default of its own", limitDefinition("", open, twoDefaults), "{apiVersion: b.example/v1}", "v2", ""},
		{"the version written has a default of its own", limitDefinition("", open, twoDefaults), "{apiVersion: b.example/v2}", "v1", "max:3 min:1"},
		{"webhook, same version", limitDefinition("conversion: {strategy: Webhook}, ", oneDefault, twoDefaults), "{apiVersion: b.example/v2, min: 5}", "v2", "max:3 min:5"},
		{
			"webhook, other version", limitDefinition("conversion: {strategy: Webhook}, ", oneDefault, twoDefaults), "{apiVersion: b.example/v2, min: 5}", "v1",
			"Limit default/a: unable to convert b.example/v2, Kind=Limit to b.example/v1, Kind=Limit: the conversion webhook is not called; the object that the API server converted is needed",
		},
		{"a schema that is none", limitDefinition("", "{openAPIV3Schema: {type: 5}}"), "{apiVersion: b.example/v1}", "v1", "Limit default/a: CustomResourceDefinition limits.b.example: version v1: the schema cannot be used: json: cannot unmarshal number"},
		{"status stays", limitDefinition("", "{openAPIV3Schema: {type: object, properties: {status: {type: string}}}, subresources: {status: {}}}"), "{apiVersion: b.example/v1, status: x}", "v1", "status:x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := decode(t, test.object[:1]+"kind: Limit, metadata: {name: a}, "+test.object[1:])[0]
			view := laidOver(t, newBase(t, test.definition), []*unstructured.Unstructured{obj})
			found, err := view.Objects(t.Context(), cluster.Selection{Kind: limit(test.in), Namespace: "default", Name: "a"})
			if err != nil {
				if !strings.HasPrefix(err.Error(), "Limit") || !strings.HasPrefix(err.Error(), test.want) || test.want == "" {
					t.Errorf("got %v, want %s", err, test.want)
				}
				return
			}
			fields := found[0].DeepCopy().Object
			for _, common := range []string{"apiVersion", "kind", "metadata"} {
				delete(fields, common)
			}
			if got, want := fmt.Sprint(fields), "map["+test.want+"]"; got != want || found[0].GroupVersionKind() != limit(test.in) {
				t.Errorf("got %s in %s, want %s", got, found[0].GetAPIVersion(), want)
			}
		})
	}
}

// TestStoredOverOtherDefinition lays a definition over objects of another one:
// what that has pruned is gone, what it has set stays.
func TestStoredOverOtherDefinition(t *testing.T) {
	base := newBase(t, limitDefinition("", oneDefault)+"---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a}, min: 7}")
	view := newOver(t, base, limitDefinition("", strings.ReplaceAll(twoDefaults, "default: 3", "default: 4")))
	if fields := read(t, view, limit("v1"), "a").Object; fields["max"] != int64(3) || fields["min"] != int64(1) {
		t.Errorf("got %v, want max 3 and min 1", fields)
	}
	if fields := read(t, base, limit("v1"), "a").Object; fields["max"] != int64(3) || fields["min"] != nil {
		t.Errorf("got %v below, want max 3", fields)
	}
}

// TestStoredOverSameDefinition: what is stored is not written again in the version
// in which it is read.
func TestStoredOverSameDefinition(t *testing.T) {
	const open = "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
	none := limitDefinition("", open, twoDefaults)
	base := newBase(t, none+"---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a}}")
	if got := read(t, newOver(t, base, none), limit("v2"), "a").Object["max"]; got != nil {
		t.Errorf("got max %v, want none", got)
	}
	// With a webhook it can only be taken in that version.
	webhook := newOver(t, base, limitDefinition("conversion: {strategy: Webhook}, ", open, twoDefaults))
	if got := read(t, webhook, limit("v2"), "a").Object["max"]; got != int64(3) {
		t.Errorf("webhook: got max %v, want 3", got)
	}
}

func TestStoredFaults(t *testing.T) {
	const items = "{openAPIV3Schema: {type: object, properties: {items: {type: array, items: {type: object, properties: {text: {type: string, default: %s}}}}}}}"
	large := limitDefinition("", fmt.Sprintf(items, strings.Repeat("a", 100_000)))
	tests := map[string]struct{ definition, object, want string }{
		"too large": {large, "items: [" + strings.Repeat("{}, ", 1000) + "]", "Limit default/a: the defaults of its CustomResourceDefinition make it larger by more than 16777216 bytes"},
		"metadata":  {limitDefinition("", oneDefault), "metadata: {name: a, finalizers: none}", "Limit default/a: metadata: json: cannot unmarshal string into Go struct field ObjectMeta.finalizers"},
		"deep schema": {
			limitDefinition("", "{openAPIV3Schema: {type: object, properties: {a: "+strings.Repeat("{type: array, items: ", 100)+
				"{type: string, description: "+strings.Repeat("x", 1<<20)+"}"+strings.Repeat("}", 100)+"}}}"), "n: 1",
			"Limit default/a: CustomResourceDefinition limits.b.example: version v1: the schema cannot be used: it is large and has too many lists in lists",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := "{apiVersion: b.example/v1, kind: Limit, " + test.object
			if !strings.Contains(object, "metadata") {
				object += ", metadata: {name: a}"
			}
			view := newBase(t, test.definition+"---\n"+object+"}\n")
			_, err := view.Objects(t.Context(), cluster.Selection{Kind: limit("v1"), Selector: labels.Everything()})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestStoredFaultsTellNoValues: who hears of them may not be able to read the
// object.
func TestStoredFaultsTellNoValues(t *testing.T) {
	view := newBase(t, limitDefinition("", "{openAPIV3Schema: {type: object, properties: {pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}}")+
		"---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a}, pod: {apiVersion: v1, kind: Pod, metadata: {annotations: {password: hunter2, n: 5}}}}\n")
	_, err := view.Objects(t.Context(), cluster.Selection{Kind: limit("v1"), Selector: labels.Everything()})
	const want = "Limit default/a: pod.metadata: json: cannot unmarshal number into Go struct field ObjectMeta.annotations of type string"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestReadIsBounded: no definition makes of objects more than there is room for,
// whether they are in its layer or below. What has been read stays.
func TestReadIsBounded(t *testing.T) {
	plain := limitDefinition("", "{openAPIV3Schema: {type: object}}")
	large := limitDefinition("", "{openAPIV3Schema: {type: object, properties: {list: {type: array, default: ["+strings.Repeat("{}, ", 10)+
		"], items: {type: object, properties: {text: {type: string, default: "+strings.Repeat("a", 1<<20)+"}}}}}}}") // 10 MiB for each object
	objects := ""
	for i := range 30 {
		objects += fmt.Sprintf("---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a%d}}\n", i)
	}
	for name, view := range map[string]cluster.View{
		"in the layer": newBase(t, large+objects),
		"below":        newOver(t, newBase(t, plain+objects), large),
	} {
		first := read(t, view, limit("v1"), "a0")
		_, err := view.Objects(t.Context(), cluster.Selection{Kind: limit("v1"), Selector: labels.Everything()})
		if want := "the objects take up more than 256 MiB"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if read(t, view, limit("v1"), "a0") != first {
			t.Errorf("%s: what has been read has changed", name)
		}
	}
}

// TestReadingEnds: there may be very many objects to be read for the first time.
func TestReadingEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	const object = "---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a}}\n"
	below := newBase(t, limitDefinition("", oneDefault)+object)
	for name, view := range map[string]cluster.View{
		"in the layer": newBase(t, limitDefinition("", oneDefault)+object),
		"below":        newOver(t, below, limitDefinition("", twoDefaults)),
	} {
		read(t, below, limit("v1"), "a")
		_, err := view.Objects(ended, cluster.Selection{Kind: limit("v1"), Selector: labels.Everything()})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v", name, err, context.Canceled)
		}
	}
}

// TestStoredOnce wants the same object for everyone who asks, at the same time
// too.
func TestStoredOnce(t *testing.T) {
	objects := decode(t, limitDefinition("", oneDefault, twoDefaults)+"---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a}}")
	for range 300 {
		view := laidOver(t, newBase(t, ""), objects)
		found := make([]*unstructured.Unstructured, 4)
		start := make(chan struct{})
		var group sync.WaitGroup
		for i := range found {
			group.Go(func() {
				<-start
				found[i] = read(t, view, limit("v2"), "a")
			})
		}
		close(start)
		group.Wait()
		for _, one := range found {
			if one != found[0] {
				t.Fatalf("got %p and %p, want the same object", found[0], one)
			}
		}
	}
}

// TestStoredIsTheGiven wants no copy where nothing had to be done.
func TestStoredIsTheGiven(t *testing.T) {
	for _, rest := range []string{"max: 5", "max: 3, min: 1"} {
		obj := decode(t, "{apiVersion: b.example/v1, kind: Limit, metadata: {name: a, namespace: default, uid: u, generation: 1, creationTimestamp: '1970-01-01T00:00:00Z'}, "+rest+"}")[0]
		for _, schema := range []string{oneDefault, twoDefaults, "{}"} {
			view := newBase(t, limitDefinition("", schema))
			got, err := view.Stored(obj, limit("v1"))
			if err != nil {
				t.Fatal(err)
			}
			if same := reflect.DeepEqual(got.Object, obj.Object); same != (got == obj) {
				t.Errorf("%s with %s: a copy was made for nothing", rest, schema)
			}
		}
	}
}

// TestRequestsAreNotTouched: Convert is for objects of requests.
func TestRequestsAreNotTouched(t *testing.T) {
	view := newBase(t, limitDefinition("", oneDefault, twoDefaults))
	obj := decode(t, "{apiVersion: b.example/v1, kind: Limit, metadata: {name: a}, unknown: x}")[0]
	got, err := view.Convert(obj, limit("v2"))
	if err != nil {
		t.Fatal(err)
	}
	want := obj.DeepCopy()
	want.SetAPIVersion("b.example/v2")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the object has changed (-want +got):\n%s", diff)
	}
}
