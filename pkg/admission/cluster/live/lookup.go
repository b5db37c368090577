// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// callTimeout bounds the reading of one object, as getParamDirectly in
// k8s.io/apiserver/pkg/admission/plugin/policy/generic does.
const callTimeout = time.Second

// lookup reads single objects from the API server. Nobody is given what was read before
// they asked, that there was nothing included: an object that has just been made judges
// the next request. Of each object there is one reading at a time, which all who have
// come before it began share.
type lookup[T any] struct {
	mu      sync.Mutex
	flights map[string]*flight[T] // that are under way
	waiting map[string]*flight[T] // that begin when that of the same object has landed
}

// flight is one reading.
type flight[T any] struct {
	read   func() (T, error)
	landed chan struct{}
	found  T
	err    error
}

func newLookup[T any]() *lookup[T] {
	return &lookup[T]{flights: map[string]*flight[T]{}, waiting: map[string]*flight[T]{}}
}

// get returns what read returns, or an error that isAbsent knows when there is no such
// object.
func (l *lookup[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	mine := l.board(key, func() (T, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return read(ctx)
	})
	select {
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	case <-mine.landed:
		return mine.found, mine.err
	}
}

// board returns a flight that had not begun before.
func (l *lookup[T]) board(key string, read func() (T, error)) *flight[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := l.waiting[key]; next != nil {
		return next
	}
	made := &flight[T]{read: read, landed: make(chan struct{})}
	if l.flights[key] != nil {
		l.waiting[key] = made
		return made
	}
	l.flights[key] = made
	go l.fly(key, made)
	return made
}

// fly makes flights to an object as long as someone waits for one.
func (l *lookup[T]) fly(key string, next *flight[T]) {
	for next != nil {
		next.found, next.err = contained(next.read)
		close(next.landed)
		next = l.land(key)
	}
}

// contained reads, and makes an error of a panic, which would end the process: nobody
// else is there to recover it.
func contained[T any](read func() (T, error)) (found T, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			var none T
			found, err = none, &unreadable{fmt.Sprintf("reading it panicked: %v; this is a fault of the program, please report it", problem)}
		}
	}()
	return read()
}

// land ends a flight and returns the one that waits, or nil.
func (l *lookup[T]) land(key string) *flight[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.waiting[key]
	delete(l.waiting, key)
	delete(l.flights, key)
	if next != nil {
		l.flights[key] = next
	}
	return next
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
