// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

const (
	// maxFollowed bounds the kinds that are followed.
	maxFollowed = 500
	// settleTime is how long a kind that is used may keep the cluster from being ready.
	settleTime = 10 * time.Second
)

// kinds follows the kinds that are used.
type kinds struct {
	client dynamic.Interface
	clock  clock.Clock
	survey *survey
	again  chan struct{} // holds a sign that something may have to be arranged anew

	mu     sync.Mutex
	wanted []schema.GroupVersionKind // ordered
	beyond int                       // those that are too many
	// current are the kinds that are wanted. The map is immutable.
	current atomic.Pointer[map[schema.GroupVersionKind]*follower]
}

func newKinds(client dynamic.Interface, clock clock.Clock, survey *survey) *kinds {
	k := &kinds{client: client, clock: clock, survey: survey, again: make(chan struct{}, 1)}
	k.current.Store(&map[schema.GroupVersionKind]*follower{})
	return k
}

func (k *kinds) use(wanted []schema.GroupVersionKind) {
	wanted = slices.Clone(wanted)
	slices.SortFunc(wanted, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	wanted = slices.Compact(wanted)
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Equal(wanted, k.wanted) {
		return
	}
	k.wanted = wanted
	k.beyond = max(0, len(wanted)-maxFollowed)
	previous := *k.current.Load()
	current := make(map[schema.GroupVersionKind]*follower, len(wanted))
	for _, kind := range wanted[:len(wanted)-k.beyond] {
		if current[kind] = previous[kind]; current[kind] == nil {
			current[kind] = newFollower(kind, k.client, k.clock)
		}
	}
	k.current.Store(&current)
	wake(k.again)
}

// find returns the follower of a kind, or nil when it is not followed.
func (k *kinds) find(kind schema.GroupVersionKind) *follower { return (*k.current.Load())[kind] }

// arrange has the followers look where their objects are now.
func (k *kinds) arrange() { wake(k.again) }

// run follows what is wanted until ctx ends.
func (k *kinds) run(ctx context.Context) {
	var following wait.Group
	defer following.Wait()
	placed := map[schema.GroupVersionKind]*follower{}
	for {
		current := *k.current.Load()
		for kind, one := range placed {
			if current[kind] != one {
				one.leave(nil)
				delete(placed, kind)
			}
		}
		now := k.survey.latest.Load()
		for kind, one := range current {
			placed[kind] = one
			one.arrange(ctx, &following, now)
		}
		select {
		case <-ctx.Done():
			for _, one := range placed {
				one.cancel()
			}
			return
		case <-k.again:
		}
	}
}

// ready returns why used kinds are not followed yet.
func (k *kinds) ready() []error {
	var errs []error
	for _, one := range k.ordered() {
		if err := one.ready(); err != nil && k.clock.Since(one.since) < settleTime {
			errs = append(errs, fmt.Errorf("%v: %w", one.kind, err))
		}
	}
	return errs
}

func (k *kinds) status() (used []InformerStatus, beyond int) {
	for _, one := range k.ordered() {
		used = append(used, one.status())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return used, k.beyond
}

func (k *kinds) ordered() []*follower {
	var all []*follower
	for _, one := range *k.current.Load() {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *follower) int { return cmp.Compare(a.kind.String(), b.kind.String()) })
	return all
}
