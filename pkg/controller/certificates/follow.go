// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// lister is a client of one resource; L is the type of its lists.
type lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// follow calls changed when the object called name has, until ctx ends. It reads no
// other object, as RBAC by name asks for, and holds no copy that anybody relies on:
// without the right to watch, changes are seen at the next poll.
func follow[L runtime.Object](ctx context.Context, client lister[L], object runtime.Object, name string, changed func()) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	logger := klog.FromContext(ctx)
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
		ObjectType: object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
	})
	informer.RunWithContext(ctx)
}

// follow wakes whoever keeps the Secret when somebody has changed it.
func (s *secret) follow(ctx context.Context, wake func()) {
	follow(ctx, s.client, &corev1.Secret{}, s.name, wake)
}

// follow wakes whoever writes the bundle when somebody has changed the target.
func (t *target) follow(ctx context.Context, wake func()) {
	follow(ctx, t.client, &unstructured.Unstructured{}, t.name, wake)
}
