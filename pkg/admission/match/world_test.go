// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	listersv1 "k8s.io/client-go/listers/core/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// world is a cluster that is seen by both sides of a comparison: it is the view
// of our matcher, and the lister and the object interfaces of upstream's.
type world struct {
	cluster.View // panics on what a matcher must not ask
	namespaces   map[string]*corev1.Namespace
	registry     runtime.EquivalentResourceRegistry
}

// brokenNamespace is one that cannot be read.
const brokenNamespace = "broken"

func newWorld() *world {
	w := &world{
		namespaces: map[string]*corev1.Namespace{},
		registry: runtime.NewEquivalentResourceRegistryWithIdentity(func(resource schema.GroupResource) string {
			if resource == (schema.GroupResource{Group: "extensions", Resource: "deployments"}) {
				return "deployments.apps"
			}
			return resource.String()
		}),
	}
	for name, labels := range map[string]map[string]string{
		"prod": {"env": "prod", "team": "a"}, "test": {"env": "test"}, "bare": nil,
	} {
		w.namespaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	for _, known := range []struct{ group, version, resource, subresource, kind string }{
		{"", "v1", "pods", "", "Pod"},
		{"", "v1", "pods", "status", "Pod"},
		{"", "v1", "namespaces", "", "Namespace"},
		{"", "v1", "namespaces", "status", "Namespace"},
		{"extensions", "v1beta1", "deployments", "", "Deployment"},
		{"extensions", "v1beta1", "deployments", "scale", "Scale"},
		{"apps", "v1beta1", "deployments", "", "Deployment"},
		{"apps", "v1", "deployments", "", "Deployment"},
		{"apps", "v1", "deployments", "scale", "Scale"},
		{"example.com", "v1", "widgets", "", "Widget"},
		{"example.com", "v1beta1", "widgets", "", ""}, // a kind that nobody knows
		{"example.com", "v2", "widgets", "", "Widget"},
		{"example.com", "v1", "namespaces", "", "Namespace"},
		{"example.com", "v2", "namespaces", "", "Namespace"},
	} {
		var kind schema.GroupVersionKind
		if known.kind != "" {
			kind = schema.GroupVersionKind{Group: known.group, Version: known.version, Kind: known.kind}
		}
		resource := schema.GroupVersionResource{Group: known.group, Version: known.version, Resource: known.resource}
		w.registry.RegisterKindFor(resource, known.subresource, kind)
	}
	return w
}

func (w *world) Namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	if name == brokenNamespace {
		return nil, errors.New("the store does not answer")
	}
	if namespace, ok := w.namespaces[name]; ok {
		return namespace, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}

func (w *world) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	var others []cluster.Equivalent
	for _, other := range w.registry.EquivalentResourcesFor(resource, subresource) {
		if other != resource {
			others = append(others, cluster.Equivalent{Resource: other, Kind: w.registry.KindFor(other, subresource)})
		}
	}
	return others
}

// lister gives upstream's matcher the namespaces of a world.
type lister struct {
	listersv1.NamespaceLister
	world *world
}

func (l lister) Get(name string) (*corev1.Namespace, error) {
	return l.world.Namespace(context.Background(), name)
}

func (w *world) objectInterfaces() admission.ObjectInterfaces {
	return &admission.RuntimeObjectInterfaces{EquivalentResourceMapper: w.registry}
}
