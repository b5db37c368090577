// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/lru"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/definition"
)

//nolint:gochecknoglobals // The name of a kind.
var definitionKind = definition.Kind

// defined is what is held of a CustomResourceDefinition: all but the schemas, which
// may be large.
type defined struct {
	metav1.ObjectMeta

	// definition is nil when the resource is not served, or cannot be read.
	definition *definition.Definition
}

// same says whether d and other define the same.
func (d *defined) same(other *defined) bool {
	return d.UID == other.UID && d.Generation == other.Generation && (d.definition == nil) == (other.definition == nil)
}

// newDefined reads a CustomResourceDefinition.
func newDefined(object runtime.Object) (*defined, error) {
	given, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is no CustomResourceDefinition", object)
	}
	d := &defined{ObjectMeta: *metadataOf(given)}
	if !isEstablished(given) {
		return d, nil
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": given.GetName()}}}
	bare.SetGroupVersionKind(definitionKind)
	spec, _, _ := unstructured.NestedMap(given.Object, "spec") // a copy
	if versions, ok := spec["versions"].([]any); ok {
		for _, version := range versions {
			if fields, ok := version.(map[string]any); ok {
				delete(fields, "schema")
				delete(fields, "additionalPrinterColumns")
			}
		}
	}
	delete(spec, "conversion")
	if strategy, _, _ := unstructured.NestedString(given.Object, "spec", "conversion", "strategy"); strategy != "" {
		spec["conversion"] = map[string]any{"strategy": strategy}
	}
	bare.Object["spec"] = spec
	if read, errs := definition.New(bare); len(errs) == 0 {
		d.definition = read
	}
	return d, nil
}

// isEstablished says that the resource is served.
func isEstablished(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := conditions.([]any)
	return slices.ContainsFunc(list, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == "True"
	})
}

// nameOf returns what is held of an object of which nothing is needed but that it has
// changed.
func nameOf(object runtime.Object) (*metav1.ObjectMeta, error) {
	given, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is no object", object)
	}
	return metadataOf(given), nil
}

func metadataOf(object *unstructured.Unstructured) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: object.GetName(), UID: object.GetUID(), Generation: object.GetGeneration()}
}

const (
	// maxWholes bounds the definitions that are kept with their schemas, and
	// wholeTimeout the reading of one.
	maxWholes    = 16
	wholeTimeout = 2 * time.Second
)

// wholes reads CustomResourceDefinitions with their schemas, which are needed only for
// objects that are not read from the API server.
type wholes struct {
	client dynamic.Interface
	lookup *lookup[*definition.Definition]
	known  *lru.Cache // of *definition.Definition, by *defined
}

func newWholes(client dynamic.Interface) *wholes {
	return &wholes{client: client, lookup: newLookup[*definition.Definition](), known: lru.New(maxWholes)}
}

func (w *wholes) of(d *defined) (*definition.Definition, error) {
	if known, found := w.known.Get(d); found {
		if whole, ok := known.(*definition.Definition); ok {
			return whole, nil
		}
	}
	//nolint:forbidigo // What is asked is in no context: see cluster.View.
	ctx, cancel := context.WithTimeout(context.Background(), wholeTimeout)
	defer cancel()
	whole, err := w.lookup.get(ctx, string(d.UID)+"/"+fmt.Sprint(d.Generation), func(ctx context.Context) (*definition.Definition, error) {
		read, err := w.client.Resource(definitionResource).Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		whole, errs := definition.New(read)
		return whole, errs.ToAggregate()
	})
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", d.Name, advise(err, definitionResource))
	}
	w.known.Add(d, whole)
	return whole, nil
}
