// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

const (
	// callTimeout bounds the reading of one object, as getParamDirectly in
	// k8s.io/apiserver/pkg/admission/plugin/policy/generic does.
	callTimeout = time.Second
	// absentFor is how long it is remembered that there is no such object, and
	// maxAbsent of how many.
	absentFor = time.Second
	maxAbsent = 4096
)

// lookup reads single objects from the API server. Those who ask for the same one at
// the same time share the answer.
type lookup[T any] struct {
	flights singleflight.Group
	absent  *cache.LRUExpireCache
}

func newLookup[T any](clock clock.Clock) *lookup[T] {
	return &lookup[T]{absent: cache.NewLRUExpireCacheWithClock(maxAbsent, clock)}
}

// get returns what read returns, or an error that isAbsent knows when there is no such
// object.
func (l *lookup[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	var none T
	if known, found := l.absent.Get(key); found {
		if err, ok := known.(error); ok {
			return none, err
		}
	}
	flight := l.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		found, err := read(ctx)
		if isAbsent(err) {
			l.absent.Add(key, err, absentFor)
		}
		return found, err
	})
	select {
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case landed := <-flight:
		found, _ := landed.Val.(T) // nothing else is read
		return found, landed.Err
	}
}

// isAbsent says that there is no such object. That nobody serves the resource is
// something else.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unreadable is an error of the API server about a resource. It is not taken for one
// about an object.
type unreadable struct{ text string }

func (e *unreadable) Error() string { return e.text }

// advise says of an error of the API server what to do about it, where that is known.
func advise(err error, resource schema.GroupVersionResource) error {
	switch {
	case apierrors.IsForbidden(err):
		return &unreadable{err.Error() + "; grant this server get, list and watch on " + resource.GroupResource().String()}
	case apierrors.IsNotFound(err):
		return &unreadable{resource.GroupVersion().String() + " " + resource.Resource + " are not served: " + err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &unreadable{"the API server of the cluster has not answered in time: " + err.Error()}
	default:
		return err
	}
}
