// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

const (
	// compareTimeout bounds one comparison of a kind. Each answer of the storage
	// that it needs is bounded much tighter.
	compareTimeout = 30 * time.Second
	// A comparison waits for settleTime until what has just been written is in
	// force, and looks again after settlePause, or when looking takes long, after
	// settlePauses times that.
	settleTime   = time.Second
	settlePause  = 50 * time.Millisecond
	settlePauses = 4
)

// heldKind is a stored kind and what the server holds of it.
type heldKind struct {
	resource schema.GroupResource
	// name returns the name under which the object of a key is served.
	name   func(key string) cache.ObjectName
	mirror *mirror
	// inForce returns the version of an object that is in force.
	inForce func(name cache.ObjectName) (resourceVersion string, ok bool)

	// Of the probe alone.
	size      int                             // how many are stored
	heard     int64                           // how much the mirror had heard when it was last asked
	known     map[cache.ObjectName]bool       // what was held since the last success
	differing map[cache.ObjectName]difference // what was held other than it was stored, last
}

// versions are resource versions by object.
type versions map[cache.ObjectName]string

// difference says that an object is stored in one version and held in another. A
// version is empty where there is no object.
type difference struct {
	stored, held string
	revision     int64     // where it was seen first
	since        time.Time // since then, or since the mirror heard last of an earlier revision
}

// stuck returns an object that has differed in the same way for too long.
func (k *heldKind) stuck(now time.Time) (cache.ObjectName, bool) {
	patience := stuckAfter + time.Duration(k.size)*stuckPerObject
	for name, difference := range k.differing {
		if now.Sub(difference.since) >= patience {
			return name, true
		}
	}
	return cache.ObjectName{}, false
}

// compare returns nil when each object of a kind, at some time since the call, was
// held and in force as it was stored.
func (s *Snapshot) compare(ctx context.Context, kind *heldKind) error {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	var pending map[cache.ObjectName]bool
	var deadline time.Time
	for {
		began := time.Now()
		stored, revision, held, err := s.look(ctx, kind)
		if err != nil {
			kind.differing = nil
			return err
		}
		if pending == nil {
			pending = kind.all(stored, held)
			deadline = time.Now().Add(s.settling)
		}
		s.settle(kind, pending, stored, revision, held)
		switch {
		case len(pending) == 0:
			kind.known = namesOf(held)
			return nil
		case !time.Now().Before(deadline):
			return fmt.Errorf("%s is not in force as it is stored", first(pending))
		}
		if _, stuck := kind.stuck(s.clock.Now()); stuck {
			return errors.New("changes are not heard of")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(settlePause, settlePauses*time.Since(began))):
		}
	}
}

// all returns all objects that can be stored, held or in force.
func (k *heldKind) all(stored, held versions) map[cache.ObjectName]bool {
	if k.known == nil {
		k.known = map[cache.ObjectName]bool{}
	}
	for name := range held {
		k.known[name] = true
	}
	all := namesOf(stored)
	for name := range k.known {
		all[name] = true
	}
	return all
}

// settle removes from pending what is in force as it is stored, and notes what is
// held otherwise.
func (s *Snapshot) settle(kind *heldKind, pending map[cache.ObjectName]bool, stored versions, revision int64, held versions) {
	kind.size = len(stored)
	reached, heard := kind.mirror.progress()
	behind := heard != kind.heard // it hears, and there may be more to hear
	kind.heard = heard
	differing := map[cache.ObjectName]difference{}
	for name := range pending {
		now := difference{stored: stored[name], held: held[name], revision: revision, since: s.clock.Now()}
		inForce, _ := kind.inForce(name)
		switch before := kind.differing[name]; {
		case now.stored == now.held:
			if inForce == now.stored {
				delete(pending, name)
			}
			continue
		case before.stored == now.stored && before.held == now.held:
			now.revision = before.revision
			if !behind || reached > before.revision {
				now.since = before.since
			}
		}
		differing[name] = now
	}
	kind.differing = differing
}

// look returns what is stored and, a little later, what is held of a kind.
func (s *Snapshot) look(ctx context.Context, kind *heldKind) (stored versions, revision int64, held versions, err error) {
	found, revision, err := s.storage.Versions(ctx, kind.resource)
	if err != nil {
		return nil, 0, nil, err
	}
	if held, err = kind.mirror.held(); err != nil {
		return nil, 0, nil, err
	}
	stored = make(versions, len(found))
	for key, version := range found {
		stored[kind.name(key)] = strconv.FormatInt(version, 10)
	}
	return stored, revision, held, nil
}

func namesOf(versions versions) map[cache.ObjectName]bool {
	names := make(map[cache.ObjectName]bool, len(versions))
	for name := range versions {
		names[name] = true
	}
	return names
}

func first(names map[cache.ObjectName]bool) cache.ObjectName {
	for name := range names {
		return name
	}
	return cache.ObjectName{}
}
