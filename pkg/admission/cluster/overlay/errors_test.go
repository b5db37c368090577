// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

func TestErrors(t *testing.T) {
	tests := []struct {
		name string
		over string
		want []string
	}{
		{
			name: "nothing there",
			over: "{a: b}",
			want: []string{
				`objects[0].apiVersion: Required value: name the group and version, for example apps/v1`,
				`objects[0].kind: Required value: name the kind, for example ConfigMap`,
				`objects[0].metadata.name: Required value: give the object a name`,
			},
		},
		{
			name: "wrong types",
			over: "{apiVersion: 1, kind: [A], metadata: {name: 1, namespace: 2, labels: {b: true, a: 1}, annotations: []}}",
			want: []string{
				`objects[0].apiVersion: Invalid value: 1: must be a string; put it in quotes`,
				`objects[0].kind: Invalid value: ["A"]: must be a string; put it in quotes`,
				`objects[0].metadata.name: Invalid value: 1: must be a string; put it in quotes`,
				`objects[0].metadata.namespace: Invalid value: 2: must be a string`,
				`objects[0].metadata.labels[a]: Invalid value: 1: must be a string; put it in quotes`,
				`objects[0].metadata.labels[b]: Invalid value: true: must be a string; put it in quotes`,
				`objects[0].metadata.annotations: Invalid value: []: must be a mapping of strings`,
			},
		},
		{
			name: "metadata of a wrong type, names that are none",
			over: "{apiVersion: v1, kind: ConfigMap, metadata: []}\n---\n{apiVersion: a/b/c, kind: A, metadata: {name: ''}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}",
			want: []string{
				`objects[0].metadata: Invalid value: []: must be a mapping`,
				`objects[1].apiVersion: Invalid value: "a/b/c": write it as group/version, for example apps/v1`,
				`objects[1].metadata.name: Required value: give the object a name`,
				`objects[2].metadata.name: Invalid value: "a/b": may not contain '/'`,
			},
		},
		{
			name: "unknown kinds",
			over: "{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}\n---\n{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: a}}",
			want: []string{
				`objects[0].kind: Not found: "Gadget": no such kind in a.example/v1; add its CustomResourceDefinition`,
				`objects[1].apiVersion: Unsupported value: "batch/v1beta1": supported values: "batch/v1"`,
			},
		},
		{
			name: "unserved version",
			over: gadgets + "---\n{apiVersion: a.example/v1alpha1, kind: Gadget, metadata: {name: a}}",
			want: []string{`objects[1].apiVersion: Unsupported value: "a.example/v1alpha1": supported values: "a.example/v1", "a.example/v1beta1"`},
		},
		{
			name: "twice, in two versions",
			over: gadgets + "---\n{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}\n---\n{apiVersion: a.example/v1beta1, kind: Gadget, metadata: {name: a, namespace: default}}",
			want: []string{`objects[2].metadata.name: Duplicate value: "default/a": Gadget is given twice; keep one of them`},
		},
		{
			name: "definition without a name hides kinds that it may define",
			over: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}\n---\n{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}",
			want: []string{`objects[0].metadata.name: Required value: give the object a name`},
		},
		{
			name: "empty definition",
			over: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}\n---\n{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}",
			want: []string{
				`objects[0].spec.group: Required value: name the API group`,
				`objects[0].spec.names.plural: Required value: name the resource, for example gadgets`,
				`objects[0].spec.names.kind: Required value: name the kind, for example Gadget`,
				`objects[0].spec.scope: Unsupported value: "": supported values: "Cluster", "Namespaced"`,
				`objects[0].spec.versions: Required value: list at least one version`,
			},
		},
		{
			name: "broken definition",
			over: strings.NewReplacer("name: gadgets.a.example", "name: gizmos.a.example", "name: v1beta1", "name: v1", "name: v1alpha1, ", "", "storage: false", "storage: true",
				"scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Magic}").Replace(gadgets),
			want: []string{
				`objects[0].metadata.name: Invalid value: "gizmos.a.example": must be "gadgets.a.example": spec.names.plural and spec.group`,
				`objects[0].spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"`,
				`objects[0].spec.versions[1].name: Duplicate value: "v1"`,
				`objects[0].spec.versions[2].name: Required value: name the version, for example v1`,
				`objects[0].spec.versions: Invalid value: 3: exactly one version must have storage: true`,
			},
		},
		{
			name: "definition of another form",
			over: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {versions: {}}}",
			want: []string{`objects[0].kind: Invalid value: "CustomResourceDefinition": the object cannot be read as a CustomResourceDefinition: cannot restore slice from map`},
		},
		{
			name: "definition of a built-in kind",
			over: strings.NewReplacer("a.example", "apps", "gadget", "deployment", "Gadget", "Deployment").Replace(gadgets),
			want: []string{`objects[0].spec.names.kind: Invalid value: "Deployment": kube-apiserver serves the kind itself; remove the CustomResourceDefinition`},
		},
		{
			name: "definitions of one kind",
			over: strings.NewReplacer("gadgets", "gizmos").Replace(gadgets) + "---\n" + strings.NewReplacer("gadgets", "things").Replace(gadgets),
			want: []string{`objects[1].spec.names.kind: Invalid value: "Gadget": CustomResourceDefinition gizmos.a.example defines the kind too; keep one of them`},
		},
		{
			name: "definition of a kind that the base has",
			over: strings.NewReplacer("a.example", "b.example", "gadgets", "things").Replace(gadgets),
			want: []string{`objects[0].spec.names.kind: Invalid value: "Gadget": gadgets.b.example has the kind already; choose another one`},
		},
		{
			name: "namespace of another form",
			over: "{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: []}",
			want: []string{`objects[0].kind: Invalid value: "Namespace": the object cannot be read as a Namespace: cannot restore struct from: slice`},
		},
	}
	base := newBase(t, strings.NewReplacer("a.example", "b.example").Replace(gadgets))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			view, err := overlay.New(base, decode(t, test.over))
			if err == nil {
				t.Fatalf("got %v, want an error", view)
			}
			if got, want := err.Error(), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestErrorsAreAttributable(t *testing.T) {
	objects := decode(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	_, err := overlay.New(newBase(t, ""), append(objects, nil, &unstructured.Unstructured{}))
	var errs overlay.Errors
	if !errors.As(err, &errs) || len(errs) != 4 {
		t.Fatalf("got %v, want four errors", err)
	}
	var one *overlay.ObjectError
	if !errors.As(err, &one) || one.Index != 1 {
		t.Errorf("got %v, want the first error to be that of index 1", one)
	}
	if errs[1].Index != 2 || errs[1].SameAs != 0 || errs[1].Err.Type != field.ErrorTypeDuplicate {
		t.Errorf("got %v, want index 2 to be the same as 0", errs[1])
	}
	list := errs.At(field.NewPath("spec", "cluster"))
	if got, want := list[0].Error(), "spec.cluster[1].metadata.name: Required value: give the object a name"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := list[2].Error(), "spec.cluster[3].kind: Required value: an object is needed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
