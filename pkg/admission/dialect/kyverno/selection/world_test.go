// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// world is a cluster with the namespaces shop (env=prod) and lab (none), in which alice
// has the Role shop:editor and the ClusterRole view. It counts what it is asked, and
// panics on what must not be asked.
type world struct {
	cluster.View
	broken bool // nothing can be read
	asked  []string
}

var errBroken = errors.New("the store does not answer")

func (w *world) Namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	w.asked = append(w.asked, "namespace "+name)
	if w.broken {
		return nil, errBroken
	}
	labels := map[string]map[string]string{"shop": {"env": "prod", "secret": "x", corev1.LabelMetadataName: "shop"}, "lab": nil}
	set, ok := labels[name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}, nil
}

func (w *world) Objects(_ context.Context, selected cluster.Selection) ([]*unstructured.Unstructured, error) {
	w.asked = append(w.asked, selected.Kind.Kind)
	if w.broken {
		return nil, errBroken
	}
	binding := map[string]any{
		"metadata": map[string]any{"name": "b"},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": "view"},
		"subjects": []any{map[string]any{"kind": "User", "name": "alice"}},
	}
	if selected.Kind.Kind == "RoleBinding" {
		binding["metadata"] = map[string]any{"name": "b", "namespace": "shop"}
		binding["roleRef"] = map[string]any{"kind": "Role", "name": "editor"}
	}
	return []*unstructured.Unstructured{{Object: binding}}, nil
}

func (w *world) Mapper() meta.RESTMapper { return mapper{world: w} }

type mapper struct {
	meta.RESTMapper
	world *world
}

func (m mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	m.world.asked = append(m.world.asked, "kind of "+resource.Resource)
	if m.world.broken {
		return schema.GroupVersionKind{}, errBroken
	}
	switch resource.Resource {
	case "deployments":
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, nil
	case "pods":
		return schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, nil
	}
	return schema.GroupVersionKind{}, &meta.NoResourceMatchError{PartialResource: resource}
}

// parsed reads YAML strictly.
func parsed[T any](t testing.TB, document string) *T {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var into T
	strict, err := kjson.UnmarshalStrict(raw, &into)
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return &into
}

// rule is what Compile takes of one.
type rule struct {
	Match   kyvernov1.MatchResources  `json:"match"`
	Exclude *kyvernov1.MatchResources `json:"exclude"`
}

func compile(t testing.TB, document, namespace string) *selection.Selection {
	t.Helper()
	r := parsed[rule](t, document)
	selected, errs := selection.Compile(r.Match, r.Exclude, namespace, field.NewPath("spec", "rules").Index(0))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return selected
}

// object returns an object of a kind, written as apiVersion/Kind, with metadata as YAML.
func object(t testing.TB, kind, metadata string) *unstructured.Unstructured {
	t.Helper()
	i := strings.LastIndexByte(kind, '/')
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind[:i], "kind": kind[i+1:], "metadata": *parsed[map[string]any](t, metadata),
	}}
}

// create returns alice's request that creates an object.
func create(obj *unstructured.Unstructured) request.Fields {
	kind := obj.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return request.Fields{
		Kind: kind, Resource: resource, Operation: admission.Create, Object: obj, Namespace: obj.GetNamespace(),
		User: &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "system:authenticated"}},
	}
}
