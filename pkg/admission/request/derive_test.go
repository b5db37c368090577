// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

func newRequest() *request.Request {
	return request.New(request.Fields{
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	})
}

func TestDeriveBuildsOnce(t *testing.T) {
	req := newRequest()
	key, failing := request.NewKey[*int]("view"), request.NewKey[string]("failing view")
	fault := errors.New("no view")
	var built, failed atomic.Int32
	first, err := request.Derive(req, key, func(*request.Request) (*int, error) { built.Add(1); return new(int), nil })
	if err != nil {
		t.Fatal(err)
	}
	start := make(chan struct{})
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			<-start
			got, err := request.Derive(req, key, func(*request.Request) (*int, error) { built.Add(1); return new(int), nil })
			if err != nil || got != first {
				t.Errorf("got another view, or error %v", err)
			}
			_, err = request.Derive(req, failing, func(*request.Request) (string, error) { failed.Add(1); return "", fault })
			if !errors.Is(err, fault) {
				t.Errorf("got error %v, want %v for everyone", err, fault)
			}
		})
	}
	close(start)
	group.Wait()
	if built.Load() != 1 || failed.Load() != 1 {
		t.Errorf("built %d and %d times, want once each", built.Load(), failed.Load())
	}
}

// TestKeysAreDistinct holds for keys of one name, too.
func TestKeysAreDistinct(t *testing.T) {
	req := newRequest()
	one, two := request.NewKey[int]("view"), request.NewKey[int]("view")
	for want, key := range map[int]*request.Key[int]{1: one, 2: two} {
		if got, _ := request.Derive(req, key, func(*request.Request) (int, error) { return want, nil }); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

func TestWithObjectCarriesNoViews(t *testing.T) {
	key := request.NewKey[string]("name")
	name := func(r *request.Request) (string, error) {
		if r.Object == nil {
			return "", nil
		}
		return r.Object.GetName(), nil
	}
	req := newRequest()
	if got, _ := request.Derive(req, key, name); got != "" {
		t.Fatalf("got %q, want no name", got)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}}}
	changed := req.WithObject(object)
	if got, _ := request.Derive(changed, key, name); got != "n" {
		t.Errorf("got %q from the copy, want that of its object", got)
	}
	if got, _ := request.Derive(req, key, name); got != "" || req.Object != nil {
		t.Errorf("the original has changed: name %q, object %v", got, req.Object)
	}
	if changed.Kind != req.Kind || changed.RequestResource != req.RequestResource || changed.User != req.User {
		t.Errorf("got %+v, want all other facts of %+v", changed.Fields, req.Fields)
	}
}

// TestDerivePanics: a view whose build has panicked is not taken for one.
func TestDerivePanics(t *testing.T) {
	key := request.NewKey[int]("panics")
	r := request.New(request.Fields{})
	build := func(*request.Request) (int, error) { panic("once") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		_, _ = request.Derive(r, key, build)
	}()
	if _, err := request.Derive(r, key, build); err == nil {
		t.Error("the second caller got a view")
	}
}

// TestLastingViews: copies of a request share what does not follow from what differs.
func TestLastingViews(t *testing.T) {
	req := newRequest()
	lasting, passing := request.NewLastingKey[*int]("lasting"), request.NewKey[*int]("passing")
	of := func(req *request.Request, key *request.Key[*int]) *int {
		t.Helper()
		view, err := request.Derive(req, key, func(*request.Request) (*int, error) { return new(int), nil })
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	for _, changed := range []*request.Request{req.WithObject(&unstructured.Unstructured{}), req.At(time.Unix(1, 0))} {
		if of(changed, lasting) != of(req, lasting) {
			t.Error("a lasting view is built again")
		}
		if of(changed, passing) == of(req, passing) {
			t.Error("another view is shared")
		}
	}
	if of(newRequest(), lasting) == of(req, lasting) {
		t.Error("another request has the same view")
	}
}
