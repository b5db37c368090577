// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package named follows single objects of a cluster, each by its name.
package named

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Lister is a client of one resource; L is the type of its lists.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Follow calls changed with the object called name whenever it has changed, and with
// nil when there is none any more, until ctx ends; one call at a time. O is what client
// decodes into; empty is one of it. It reads no other object, as RBAC by name asks for,
// and keeps trying: without the right to list and watch, nothing is heard.
func Follow[O, L runtime.Object](ctx context.Context, client Lister[L], empty O, name string, changed func(object runtime.Object)) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	logger := klog.FromContext(ctx)
	tell := func(object any) {
		if object, ok := object.(O); ok {
			changed(object)
		} else {
			changed(nil)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		Logger: &logger,
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = selector
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = selector
				return client.Watch(ctx, options)
			},
		}, client),
		ObjectType: empty,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    tell,
			UpdateFunc: func(_, object any) { tell(object) },
			DeleteFunc: func(any) { changed(nil) },
		},
	})
	informer.RunWithContext(ctx)
}
