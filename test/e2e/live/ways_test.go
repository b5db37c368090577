// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// way is one on which an object is written.
type way struct {
	name           string
	creates, usual bool
	write          func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error
}

func ways() []way {
	dry := []string{metav1.DryRunAll}
	apply := func(options metav1.ApplyOptions) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		options.FieldManager, options.Force = "author", true
		return func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
			_, err := to.Apply(ctx, object.GetName(), object, options)
			return err
		}
	}
	create := func(options metav1.CreateOptions) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
			_, err := to.Create(ctx, object, options)
			return err
		}
	}
	update := func(options metav1.UpdateOptions, unconditional bool) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
			object.SetLabels(map[string]string{"written": "yes"})
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // conditions are written too
				stored, err := to.Get(ctx, object.GetName(), metav1.GetOptions{})
				if err == nil && !unconditional {
					object.SetResourceVersion(stored.GetResourceVersion())
				}
				if err == nil {
					_, err = to.Update(ctx, object, options)
				}
				return err
			})
		}
	}
	patch := func(kind types.PatchType) func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
			object.SetLabels(map[string]string{"written": "yes"})
			body, err := json.Marshal(map[string]any{"metadata": object.Object["metadata"], "spec": object.Object["spec"]})
			if kind == types.JSONPatchType && err == nil {
				body, err = json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": object.Object["spec"]}})
			}
			if err != nil {
				return err
			}
			_, err = to.Patch(ctx, object.GetName(), kind, body, metav1.PatchOptions{})
			return err
		}
	}
	return []way{
		{"create", true, true, create(metav1.CreateOptions{})},
		{"a dry run of create", true, false, create(metav1.CreateOptions{DryRun: dry})},
		{"server-side apply", true, false, apply(metav1.ApplyOptions{})},
		{"a dry run of server-side apply", true, false, apply(metav1.ApplyOptions{DryRun: dry})},
		{"update", false, true, update(metav1.UpdateOptions{}, false)},
		{"update of whatever is stored", false, false, update(metav1.UpdateOptions{}, true)},
		{"a dry run of update", false, false, update(metav1.UpdateOptions{DryRun: dry}, false)},
		{"merge patch", false, false, patch(types.MergePatchType)},
		{"JSON patch", false, false, patch(types.JSONPatchType)},
		{"server-side apply", false, false, apply(metav1.ApplyOptions{})},
		{"a dry run of server-side apply", false, false, apply(metav1.ApplyOptions{DryRun: dry})},
	}
}
