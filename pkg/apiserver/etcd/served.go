// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// What a caller should know when etcd has not answered.
const (
	afterRead  = "stored policies stay in force; try again later"
	afterWrite = "whether the change is stored is not known; the policies in force stay in force until it is; read the object before you try again"
)

// servedStorage is what the API serves a kind from. Where an answer needs etcd
// and etcd is gone, it says so, as 503 and without Retry-After: clients would
// wait on their own then. Watches live on.
type servedStorage struct {
	storage.Interface // the watch cache
	connection        *connection
}

// Create stores a new object.
func (s *servedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.explain(ctx, s.Interface.Create(ctx, key, obj, out, ttl), afterWrite)
}

// Delete removes an object.
func (s *servedStorage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return s.explain(ctx, s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts), afterWrite)
}

// GuaranteedUpdate changes an object.
func (s *servedStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	return s.explain(ctx, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached), afterWrite)
}

// Get reads an object.
func (s *servedStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return s.explain(ctx, s.Interface.Get(ctx, key, opts, out), afterRead)
}

// GetList reads many objects.
func (s *servedStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	return s.explain(ctx, s.Interface.GetList(ctx, key, opts, out), afterRead)
}

// Watch refuses a version that etcd has not reached: it stems from before etcd
// has gone back, and the watch would miss what comes until it is reached again.
func (s *servedStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	version, err := s.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if version > uint64(s.connection.history.mark().revision) { //nolint:gosec // revisions are not negative
		current, err := s.GetCurrentResourceVersion(ctx)
		if err == nil && version > current {
			return nil, apierrors.NewResourceExpired(fmt.Sprintf("resource version %d is not of the present storage, which is at %d", version, current))
		}
	}
	return s.Interface.Watch(ctx, key, opts)
}

func (s *servedStorage) explain(ctx context.Context, err error, advice string) error {
	var unanswered *unansweredError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unanswered):
	case isUnanswered(err) && ctx.Err() != nil:
		// The caller has not waited. That is no word on etcd, unless it was gone before.
		unanswered = s.connection.failure.Load()
	case isUnanswered(err):
		unanswered = &unansweredError{reason: reasonOf(err, nil)}
	case apierrors.IsTooManyRequests(err):
		// The watch cache is not filled. When that is for want of etcd, waiting
		// does not help the caller.
		unanswered = s.connection.failure.Load()
	}
	if unanswered == nil {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the storage (etcd at %s) does not answer: %s; %s", s.connection.servers, unanswered.reason, advice))
}
