// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap reads policies and bindings from a directory of manifests,
// which is followed: they are in force whatever is stored, and nobody changes them
// through the API. The rules for them are those that kube-apiserver has for
// policies of staticManifestsDir (KEP-5793).
//
// It does not know how policies are compiled or judge, nor what becomes of the
// stored ones.
package bootstrap

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

const (
	// period is how often the manifests are read. It is the way to see a change on
	// every filesystem, and a directory of policies is small.
	period = time.Second
	// settle is how long manifests must not have changed before they are put in
	// force: whoever writes them may not have finished.
	settle = 100 * time.Millisecond
	// patience is how long manifests may go on changing before that is a failure.
	patience = 10 * time.Second
	// attempts is how often Open reads manifests that change meanwhile.
	attempts = 10
)

var (
	errNone = errors.New("no manifests: put the bootstrap policies here as *.yaml, *.yml or *.json, or leave out --bootstrap-policies")
	errGone = errors.New("all manifests are gone, as when a volume is unmounted: put them back; to be without bootstrap policies, start the server without --bootstrap-policies")
)

// Directory is a directory of bootstrap policies, which may change. It is taken
// whole, as it was at one time, or not at all: when the manifests cannot be used,
// the policies that were loaded last stay in force.
//
// Units and Status are safe for concurrent use, and are so while Run follows the
// manifests.
type Directory struct {
	path   string
	bounds limits
	loader loader
	clock  clock.Clock
	state  atomic.Pointer[state]

	// The rest belongs to Open, and to Run from then on.

	seen     digest    // of the last look
	tried    digest    // of what was loaded last, with success or without
	changing time.Time // since when every look has seen a change; zero when the last has not
}

// state is what readers get. It is immutable.
type state struct {
	units  []*policy.Unit
	status Status
}

// Status says how the policies in force came about.
type Status struct {
	// Objects is the number of policies and bindings in force.
	Objects int
	// Hash is that of the manifests in force, as sha256:hex. Servers that have the
	// same one have the same bootstrap policies.
	Hash string
	// LoadedAt is when the manifests in force were loaded.
	LoadedAt time.Time
	// Err is why the manifests as they are now are not in force, one line for each
	// fault with its place. It is nil when they are.
	Err error
	// Reloads counts the changes that came into force since Open, and Failures those
	// that did not.
	Reloads, Failures int64
}

// digest is that of what was read of a directory, faults included.
type digest [sha256.Size]byte

func (d digest) String() string { return fmt.Sprintf("sha256:%x", d[:]) }

// Open loads the manifests of dir, which are the files *.yaml, *.yml and *.json
// right in it whose names do not begin with a dot, in alphabetical order. There
// must be at least one. The error joins all faults, up to a hundred, one a line,
// with file, document and line. To follow the manifests from then on, call Run.
func Open(ctx context.Context, dir string, manifests Manifests, compiler Compiler, clock clock.Clock) (*Directory, error) {
	d := &Directory{path: dir, bounds: defaultLimits(), loader: loader{manifests: manifests, compiler: compiler}, clock: clock}
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Directory) start(ctx context.Context) error {
	found := d.bounds.read(d.path)
	for range attempts {
		d.clock.Sleep(settle)
		again := d.bounds.read(d.path)
		if again.digest != found.digest {
			found = again
			continue
		}
		units, err := d.load(ctx, found)
		if err != nil {
			return err
		}
		d.seen, d.tried = found.digest, found.digest
		d.state.Store(&state{units: units, status: Status{Objects: len(units), Hash: found.digest.String(), LoadedAt: d.clock.Now()}})
		klog.FromContext(ctx).Info("The bootstrap policies were loaded", "directory", d.path, "objects", len(units), "hash", found.digest)
		return nil
	}
	return d.keepsChanging()
}

// Units returns the policies and bindings in force.
func (d *Directory) Units() []*policy.Unit { return d.state.Load().units }

// Status returns how the policies in force came about.
func (d *Directory) Status() Status { return d.state.Load().status }

// Run follows the manifests until ctx ends. It calls enforce with the policies and
// bindings of each change that can be used, when the manifests have not changed for
// a short while. It may be called once.
func (d *Directory) Run(ctx context.Context, enforce func([]*policy.Unit)) {
	timer := d.clock.NewTimer(0) // for what has changed since Open
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			wait := period
			if !d.look(ctx, enforce) {
				wait = settle
			}
			timer.Reset(wait)
		}
	}
}

// look reads the manifests, and loads them when they differ from those that were
// loaded last and have not changed since the look before. It reports whether they
// have settled.
func (d *Directory) look(ctx context.Context, enforce func([]*policy.Unit)) (settled bool) {
	found := d.bounds.read(d.path)
	if found.digest != d.seen {
		d.seen = found.digest
		if d.changing.IsZero() {
			d.changing = d.clock.Now()
		}
		if d.clock.Since(d.changing) >= patience && d.tried != (digest{}) {
			d.tried = digest{} // whatever settles is loaded
			d.fail(ctx, d.keepsChanging())
		}
		return false
	}
	d.changing = time.Time{}
	if found.digest == d.tried {
		return true
	}
	d.tried = found.digest
	units, err := d.load(ctx, found)
	if err != nil {
		d.fail(ctx, err)
		return true
	}
	enforce(units)
	status := d.Status()
	status.Objects, status.Hash, status.LoadedAt, status.Err = len(units), found.digest.String(), d.clock.Now(), nil
	status.Reloads++
	d.state.Store(&state{units: units, status: status})
	klog.FromContext(ctx).Info("The bootstrap policies were loaded anew", "directory", d.path, "objects", len(units), "hash", status.Hash)
	return true
}

// fail says why the manifests as they are now are not in force.
func (d *Directory) fail(ctx context.Context, err error) {
	next := *d.state.Load()
	next.status.Err = err
	next.status.Failures++
	d.state.Store(&next)
	klog.FromContext(ctx).Error(err, "The bootstrap policies cannot be loaded; those that were loaded last stay in force",
		"directory", d.path, "loadedAt", next.status.LoadedAt)
}

// load returns what was read as units. A panic is an error: files that come in
// while the server runs must not end it.
func (d *Directory) load(ctx context.Context, found *contents) (units []*policy.Unit, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			units, err = nil, fmt.Errorf("%s: loading the bootstrap policies failed: %v; this is a fault of the program, please report it", d.path, problem)
		}
	}()
	if len(found.files) == 0 && len(found.faults) == 0 {
		if d.state.Load() == nil {
			return nil, fmt.Errorf("%s: %w", d.path, errNone)
		}
		return nil, fmt.Errorf("%s: %w", d.path, errGone)
	}
	return d.loader.load(ctx, d.path, found)
}

func (d *Directory) keepsChanging() error {
	return fmt.Errorf("%s: the manifests keep changing while they are read; write them elsewhere and move them here when they are complete", d.path)
}
