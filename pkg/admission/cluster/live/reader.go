// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

const (
	// pageSize and pageTimeout bound a page of objects.
	pageSize    = 500
	pageTimeout = 5 * time.Second
	// maxListed bounds the objects of a kind that is not followed.
	maxListed = 10_000
)

// reader reads objects from the API server when they are asked for.
type reader struct {
	client dynamic.Interface
	lookup *lookup[*unstructured.Unstructured]
}

func newReader(client dynamic.Interface) *reader {
	return &reader{client: client, lookup: newLookup[*unstructured.Unstructured]()}
}

// where is a kind, and the resource by which it is served.
type where struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

func (r *reader) of(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return r.client.Resource(resource)
	}
	return r.client.Resource(resource).Namespace(namespace)
}

// named returns the object of a name, or nothing when there is none.
func (r *reader) named(ctx context.Context, at where, namespace, name string) ([]*unstructured.Unstructured, error) {
	key := strings.Join([]string{at.resource.Group, at.resource.Version, at.resource.Resource, namespace, name}, "/")
	found, err := r.lookup.get(ctx, key, func(ctx context.Context) (*unstructured.Unstructured, error) {
		found, err := r.of(at.resource, namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return trimmed(found), nil
	})
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", at.kind.Kind, strings.TrimPrefix(namespace+"/"+name, "/"), advise(err, at.resource))
	}
	return []*unstructured.Unstructured{found}, nil
}

// selection is what is listed.
type selection struct {
	namespace string // empty for all
	selector  labels.Selector
}

// selected lists the selected objects by namespace and name.
func (r *reader) selected(ctx context.Context, at where, wanted selection) ([]*unstructured.Unstructured, error) {
	if _, selectable := wanted.selector.Requirements(); !selectable {
		return nil, nil // the selector of nothing has no text
	}
	found, err := r.pages(ctx, at, wanted)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", at.kind.Kind, advise(err, at.resource))
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}

// pages reads all pages.
func (r *reader) pages(ctx context.Context, at where, wanted selection) (found []*unstructured.Unstructured, err error) {
	options := metav1.ListOptions{LabelSelector: wanted.selector.String(), Limit: pageSize}
	began := false // anew, since the state that the pages show is gone
	for {
		page, err := r.page(ctx, at.resource, wanted.namespace, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" && !began {
			options.Continue, found, began = "", nil, true
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if wanted.selector.Matches(labels.Set(page.Items[i].GetLabels())) {
				found = append(found, trimmed(&page.Items[i]))
			}
		}
		options.Continue = page.GetContinue()
		switch {
		case options.Continue == "":
			return found, nil
		case len(found) > maxListed:
			return nil, fmt.Errorf("there are more than %d; select fewer, or use the kind as a param in a policy that is in force", maxListed)
		}
	}
}

func (r *reader) page(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return r.of(resource, namespace).List(ctx, options)
}

// trimmed returns the object as policies see it, whether it was read or followed. It
// modifies the given one. What kube-apiserver's plugin sees of built-in kinds has no
// managedFields, since its informers do not keep them (controlplane/apiserver in
// k8s.io/kubernetes); what it sees of custom resources has.
func trimmed(object *unstructured.Unstructured) *unstructured.Unstructured {
	if scheme.Scheme.Recognizes(object.GroupVersionKind()) {
		unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	}
	return object
}

// source is where the objects of a kind are followed.
func source(client dynamic.Interface, resource schema.GroupVersionResource, kind schema.GroupVersionKind) mirror.Source {
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(kind)
	return mirror.Source{
		Name:    resource.GroupResource().String(),
		Example: example,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(resource).List(ctx, options)
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Resource(resource).Watch(ctx, options)
		},
		Client: client,
	}
}
