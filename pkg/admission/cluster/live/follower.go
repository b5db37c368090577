// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

// follower follows the objects of a kind, wherever they are.
type follower struct {
	kind   schema.GroupVersionKind
	client dynamic.Interface
	clock  clock.Clock
	since  time.Time

	mu     sync.Mutex
	place  place
	mirror *mirror.Mirror[*unstructured.Unstructured] // nil when there is no place
	stop   context.CancelFunc
	why    error         // there is no place
	placed chan struct{} // closed while there is a mirror
}

// place is where the objects of a kind are. Objects of a resource that is defined anew
// are in another place.
type place struct {
	resource   schema.GroupVersionResource
	definition types.UID
}

func newFollower(kind schema.GroupVersionKind, client dynamic.Interface, clock clock.Clock) *follower {
	return &follower{kind: kind, client: client, clock: clock, since: clock.Now(), placed: make(chan struct{})}
}

// arrange follows the objects at the place where they are now. That it is not known
// where they are changes nothing.
func (f *follower) arrange(ctx context.Context, following *wait.Group, now *snapshot) {
	if !now.read {
		return
	}
	mapping, err := now.table.RESTMapping(f.kind.GroupKind(), f.kind.Version)
	if err != nil {
		if unknown := now.unknown(f.kind.Group, f.kind.Version); unknown != nil && meta.IsNoMatchError(err) {
			err = unknown
		}
		f.leave(err)
		return
	}
	at := place{resource: mapping.Resource}
	if d := now.definitions[f.kind.GroupKind()]; d != nil {
		at.definition = d.UID
	}
	f.mu.Lock()
	stays := f.mirror != nil && f.place == at
	f.mu.Unlock()
	if stays {
		return
	}
	f.leave(nil)
	made := mirror.New(source(f.client, at.resource, f.kind), f.clock, readObject, func() {})
	ctx, stop := context.WithCancel(ctx)
	f.mu.Lock()
	f.place, f.mirror, f.stop, f.why = at, made, stop, nil
	close(f.placed)
	f.mu.Unlock()
	following.StartWithContext(ctx, made.Run)
}

func readObject(object runtime.Object) (*unstructured.Unstructured, error) {
	given, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is no unstructured object", object)
	}
	return trimmed(given), nil
}

// leave ends following, for a reason.
func (f *follower) leave(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
	if f.mirror == nil {
		return
	}
	f.stop()
	f.place, f.mirror, f.stop, f.placed = place{}, nil, nil, make(chan struct{})
}

// cancel ends following and keeps what is held.
func (f *follower) cancel() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
}

// held returns the mirror of the objects, when what it holds may be relied on. It
// waits for the first answer as CollectParams in
// k8s.io/apiserver/pkg/admission/plugin/policy/generic does, and has its text.
func (f *follower) held(ctx context.Context, resource schema.GroupVersionResource) (*mirror.Mirror[*unstructured.Unstructured], error) {
	until := f.clock.Now().Add(patience)
	f.mu.Lock()
	placed := f.placed
	f.mu.Unlock()
	if err := await(ctx, f.clock, until, placed); err != nil {
		return nil, err
	}
	f.mu.Lock()
	held, at, why := f.mirror, f.place, f.why
	f.mu.Unlock()
	if held == nil || at.resource != resource {
		return nil, f.unsynced(why, resource)
	}
	if err := await(ctx, f.clock, until, held.Answered()); err != nil {
		return nil, err
	}
	switch err := held.Usable(); {
	case errors.Is(err, mirror.ErrUnread):
		return nil, f.unsynced(held.State().Err, resource)
	case err != nil:
		return nil, f.unsynced(err, resource)
	}
	return held, nil
}

func (f *follower) unsynced(why error, resource schema.GroupVersionResource) error {
	apiVersion, kind := f.kind.ToAPIVersionAndKind()
	param := &admissionregistrationv1.ParamKind{APIVersion: apiVersion, Kind: kind}
	text := fmt.Sprintf("paramKind kind `%v` not yet synced to use for admission", param)
	if why == nil {
		return errors.New(text)
	}
	return &unreadable{text + ": " + advise(why, resource).Error()}
}

// ready returns why the objects have not been read yet, or nil also when it is known
// that they cannot be.
func (f *follower) ready() error {
	f.mu.Lock()
	held, why := f.mirror, f.why
	f.mu.Unlock()
	if held == nil {
		if meta.IsNoMatchError(why) {
			return nil
		}
		if why == nil {
			why = mirror.ErrUnread
		}
		return why
	}
	if err := held.Usable(); errors.Is(err, mirror.ErrUnread) {
		return errors.Join(err, held.State().Err)
	}
	return nil
}

func (f *follower) status() InformerStatus {
	f.mu.Lock()
	held, at, why := f.mirror, f.place, f.why
	f.mu.Unlock()
	if held == nil {
		return InformerStatus{Kind: f.kind, Err: why}
	}
	status := informer(at.resource, held.State())
	status.Kind = f.kind
	return status
}
