// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// get answers a GET of one object, or of those that a selector selects.
func get(ctx context.Context, from horizon, target address, selector labels.Selector) (any, error) {
	kind, err := kindOf(from.v.in.View, target.resource)
	if err != nil {
		return nil, err
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	ref := verdict.ParamRef{APIVersion: apiVersion, Kind: name, Namespace: target.namespace, Name: target.name}
	if err := from.v.reads(ctx, ref); err != nil {
		return nil, err
	}
	objects, err := from.v.in.View.Objects(ctx, cluster.Selection{
		Kind: kind, Namespace: target.namespace, Name: target.name, Selector: selector,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	if target.name != "" {
		if len(objects) == 0 {
			return nil, fmt.Errorf("%s does not exist", target)
		}
		return objects[0].Object, nil
	}
	if err := from.v.run.Spend(ctx, 1+len(objects), mapEntrySize+len(objects)*anySize); err != nil {
		return nil, err
	}
	items := make([]any, len(objects))
	for i, object := range objects {
		items[i] = object.Object
	}
	return map[string]any{
		"apiVersion": apiVersion, "kind": name + "List", "metadata": map[string]any{}, "items": items,
	}, nil
}

// anySize is what an item of a list takes.
const anySize = 16

// kindOf returns the kind that a resource serves.
func kindOf(view cluster.View, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := view.Mapper().KindFor(resource)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the API server serves no %s in version %s: %w", resource.GroupResource(), resource.Version, err)
	}
	mapping, err := view.Mapper().RESTMapping(kind.GroupKind(), resource.Version)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the API server serves no %s in version %s: %w", resource.GroupResource(), resource.Version, err)
	}
	// A mapper also finds what is only like the resource.
	if mapping.Resource != resource || !cluster.Lists(kind.GroupKind()) {
		return schema.GroupVersionKind{}, fmt.Errorf("the API server lists no %s in version %s", resource.GroupResource(), resource.Version)
	}
	return mapping.GroupVersionKind, nil
}
