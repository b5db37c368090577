// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

// patience is how long a question waits for objects to be read for the first time, as
// CollectParams in k8s.io/apiserver/pkg/admission/plugin/policy/generic waits.
const patience = time.Second

// namespaces follows the Namespaces.
type namespaces struct {
	clock  clock.Clock
	client kubernetes.Interface
	mirror *mirror.Mirror[*corev1.Namespace]
	lookup *lookup[*corev1.Namespace]
}

func newNamespaces(client kubernetes.Interface, clock clock.Clock) *namespaces {
	source := mirror.Source{
		Name:    namespaceResource.Resource,
		Example: &corev1.Namespace{},
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Namespaces().List(ctx, options)
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Namespaces().Watch(ctx, options)
		},
		Client: client,
	}
	return &namespaces{
		clock:  clock,
		client: client,
		mirror: mirror.New(source, clock, readNamespace, func() {}),
		lookup: newLookup[*corev1.Namespace](),
	}
}

func readNamespace(object runtime.Object) (*corev1.Namespace, error) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("%T is no Namespace", object)
	}
	return bare(namespace), nil
}

// bare returns the Namespace as kube-apiserver's informers hold it, and so as policies
// see it. It modifies the given one.
func bare(namespace *corev1.Namespace) *corev1.Namespace {
	namespace.TypeMeta, namespace.ManagedFields = metav1.TypeMeta{}, nil
	return namespace
}

// get returns a Namespace. One that is not held is read, as GetNamespace in
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace does: it may be
// so new that the API server has not told of it yet.
func (n *namespaces) get(ctx context.Context, name string) (*corev1.Namespace, error) {
	if name == "" {
		return nil, apierrors.NewNotFound(namespaceResource.GroupResource(), name)
	}
	if err := await(ctx, n.clock, n.clock.Now().Add(patience), n.mirror.Answered()); err != nil {
		return nil, err
	}
	if err := n.mirror.Usable(); err != nil {
		return nil, fmt.Errorf("namespace %q: %w", name, advise(err, namespaceResource))
	}
	if found, ok := n.mirror.Get("", name); ok {
		return found, nil
	}
	found, err := n.lookup.get(ctx, name, func(ctx context.Context) (*corev1.Namespace, error) {
		found, err := n.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return bare(found), nil
	})
	switch {
	case isAbsent(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("namespace %q: %w", name, advise(err, namespaceResource))
	}
	return found, nil
}

// await waits for done, until a time. Its error is that of ctx.
func await(ctx context.Context, clock clock.Clock, until time.Time, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	timer := clock.NewTimer(until.Sub(clock.Now()))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
