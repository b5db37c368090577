// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// WatchDefinitions has notify called when CustomResourceDefinitions have been
// added, changed or removed, with the API groups that they define, sorted: what
// the kinds of these groups are, and their schemas, may be different from now on.
// It is called after the new view is in force, by Run, which waits for it: it must
// return at once. A definition counts as changed when its spec has.
//
// Call it before Run. It does not tell of what Open has loaded.
func (d *Directory) WatchDefinitions(notify func(groups []string)) {
	d.watchers = append(d.watchers, notify)
}

// tell calls the watchers if the definitions of two views differ.
func (d *Directory) tell(ctx context.Context, previous, current *View) {
	if len(d.watchers) == 0 || previous == current {
		return
	}
	groups, err := changedGroups(ctx, previous, current)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The CustomResourceDefinitions cannot be compared; nobody is told of their changes", "directory", d.path)
		return
	}
	if len(groups) == 0 {
		return
	}
	for _, notify := range d.watchers {
		notify(slices.Clone(groups))
	}
}

// changedGroups returns the groups of the definitions that are in one view only, or
// differ.
func changedGroups(ctx context.Context, a, b cluster.View) ([]string, error) {
	before, err := definitionsOf(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := definitionsOf(ctx, b)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for name, spec := range before {
		if !reflect.DeepEqual(spec, after[name]) {
			changed[groupOf(spec)] = true
		}
	}
	for name, spec := range after {
		if !reflect.DeepEqual(spec, before[name]) {
			changed[groupOf(spec)] = true
		}
	}
	return slices.Sorted(maps.Keys(changed)), nil
}

// definitionsOf returns the specs of the definitions of a view, by name.
func definitionsOf(ctx context.Context, view cluster.View) (map[string]map[string]any, error) {
	objects, err := view.Objects(ctx, cluster.Selection{
		Kind:     apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		Selector: labels.Everything(),
	})
	if err != nil {
		return nil, err
	}
	specs := make(map[string]map[string]any, len(objects))
	for _, obj := range objects {
		spec, _, err := unstructured.NestedFieldNoCopy(obj.Object, "spec")
		if err != nil {
			return nil, err
		}
		specs[obj.GetName()], _ = spec.(map[string]any)
	}
	return specs, nil
}

func groupOf(spec map[string]any) string {
	group, _ := spec["group"].(string)
	return group
}
