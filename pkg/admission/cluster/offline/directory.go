// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

const (
	// settle is how long manifests must not have changed before they are read:
	// whoever writes them may not have finished.
	settle = 100 * time.Millisecond
	// patience is how long manifests may go on changing, and a manifest that held
	// objects may be empty, before that is a failure.
	patience = 10 * time.Second
	// attempts is how often Open reads a directory that changes meanwhile.
	attempts = 10
)

// Directory is the cluster of a directory of manifests, which may change. Make
// one by Open. It shows the directory whole, as it was at one time, or not at
// all: when the files cannot be loaded, what was loaded last stays in force.
//
// To remove all objects of a file, remove the file. A file that is truncated
// removes nothing, since its new content may be on the way: what was loaded last
// stays in force, and when nothing has been written for a while, that is a failure.
// A file that held no objects before may be empty.
//
// View and Status are safe for concurrent use, and are so while Run follows the
// files.
type Directory struct {
	path   string
	bounds limits
	clock  clock.Clock
	read   func(*listing) *outcome
	state  atomic.Pointer[state]
	// watchers are added before Run, which calls them.
	watchers []func(groups []string)

	// The rest belongs to Open, and to Run from then on.

	seen     *listing    // by the last look
	changing time.Time   // since when every look has seen a change; zero when the last has not
	tried    *listing    // that was loaded last; nil to load in any case
	outcome  *outcome    // of loading tried
	inForce  *outcome    // the last one without an error
	root     fs.FileInfo // the directory when it was loaded without an error

	held       map[string]int // objects of each file when they were loaded without an error
	emptySince time.Time      // since when some of those files have been empty; zero when none is
}

// state is what readers get. It is immutable.
type state struct {
	view   *View
	status Status
}

// Status says how the view of a Directory came about.
type Status struct {
	// Objects is the number of objects of the manifests in force.
	Objects int
	// LoadedAt is when the manifests in force were loaded, or loaded again
	// after a failure.
	LoadedAt time.Time
	// Err is why the manifests as they are now are not in force, one line for
	// each fault with file, document and line. It is nil when they are.
	Err error
	// Reloads counts the changes that came into force since Open, and Failures
	// those that did not. A change that leaves the content as it was, or
	// leaves the same faults, is not counted.
	Reloads, Failures int64
}

// Open loads the manifests below dir as Load does, and has the same errors. The
// clock says when manifests have settled. To follow the files from then on, call
// Run. With an empty dir the cluster has no objects of its own and never changes.
func Open(dir string, clock clock.Clock) (*Directory, error) {
	d := newDirectory(dir, clock, defaultLimits())
	if err := d.start(); err != nil {
		return nil, err
	}
	return d, nil
}

func newDirectory(dir string, clock clock.Clock, bounds limits) *Directory {
	d := &Directory{path: dir, bounds: bounds, clock: clock}
	d.read = func(found *listing) *outcome { return d.bounds.load(d.path, found) }
	return d
}

func (d *Directory) start() error {
	if d.path == "" {
		view, err := New(nil)
		if err != nil {
			return err
		}
		d.enforce(&outcome{view: view}, Status{LoadedAt: d.clock.Now()})
		return nil
	}
	for range attempts {
		now := d.list()
		if t := d.clock.Now(); now.changedSince(t.Add(-settle), t) {
			d.clock.Sleep(settle)
			if !d.list().equal(now) {
				continue
			}
		}
		result := d.load(now)
		if !d.list().equal(now) {
			continue
		}
		if result.err != nil {
			return result.err
		}
		d.seen, d.tried, d.outcome = now, now, result
		d.root, d.held = now.folders[0].info, result.held
		d.enforce(result, Status{Objects: result.objects, LoadedAt: d.clock.Now()})
		return nil
	}
	return d.keepsChanging()
}

// View returns the cluster as it is now. Ask once for each request: what a view
// shows does not change.
func (d *Directory) View() cluster.View { return d.state.Load().view }

// Status returns how the present view came about.
func (d *Directory) Status() Status { return d.state.Load().status }

// look compares the files with those that were loaded last, and loads them when
// they differ and have not changed since the look before. With reread it loads
// them even when nothing can be seen to differ. It reports whether the files are
// still changing, so that another look is needed soon. Where only the content of
// emptied files is missing, the next event brings it, or patienceLeft ends.
func (d *Directory) look(ctx context.Context, reread bool) (again bool) {
	now := d.list()
	if !now.equal(d.seen) {
		return d.wait(ctx, now)
	}
	if d.tried == nil || !now.equal(d.tried) || reread || d.outcome.unread {
		result := d.load(now)
		if after := d.list(); !after.equal(now) {
			return d.wait(ctx, after)
		}
		if d.unfinished(result) {
			d.changing, d.tried = time.Time{}, nil
			return false
		}
		d.tried = now
		d.take(ctx, result)
	}
	d.changing = time.Time{}
	return false
}

// wait notes that the files have changed since the look before.
func (d *Directory) wait(ctx context.Context, now *listing) (again bool) {
	d.seen = now
	if d.changing.IsZero() {
		d.changing = d.clock.Now()
	}
	if d.clock.Since(d.changing) >= patience {
		d.tried = nil
		d.take(ctx, &outcome{err: d.keepsChanging()})
	}
	return true
}

func (d *Directory) keepsChanging() error {
	return fmt.Errorf("%s: the manifests keep changing while they are read; write them elsewhere and move them here when they are complete", d.path)
}

// take brings into force what was loaded, or says why it is not.
func (d *Directory) take(ctx context.Context, result *outcome) {
	last := d.outcome
	d.outcome = result
	if result.err == nil {
		d.root, d.held = d.tried.folders[0].info, result.held
	}
	if text(result.err) == text(last.err) && result.digest == last.digest {
		return
	}
	status := d.Status()
	logger := klog.FromContext(ctx)
	if result.err != nil {
		status.Err = result.err
		status.Failures++
		d.state.Store(&state{view: d.inForce.view, status: status})
		logger.Error(result.err, "The manifests cannot be loaded; those that were loaded last stay in force", "directory", d.path, "loadedAt", status.LoadedAt)
		return
	}
	if result.digest == d.inForce.digest {
		result = d.inForce // mended by going back
	}
	status.Objects, status.LoadedAt, status.Err = result.objects, d.clock.Now(), nil
	status.Reloads++
	previous := d.inForce.view
	d.enforce(result, status)
	d.tell(ctx, previous, result.view)
	logger.Info("The manifests were loaded anew", "directory", d.path, "objects", status.Objects)
}

func (d *Directory) enforce(result *outcome, status Status) {
	d.inForce = result
	d.state.Store(&state{view: result.view, status: status})
}

func (d *Directory) list() *listing { return d.bounds.list(d.path) }

// load reads the files of a listing. A panic is an error: files that come in
// while the server runs must not end it.
func (d *Directory) load(found *listing) (result *outcome) {
	defer func() {
		if problem := recover(); problem != nil {
			result = &outcome{err: fmt.Errorf("%s: loading the manifests failed: %v; this is a fault of the program, please report it", d.path, problem)}
		}
	}()
	if d.vanished(found) {
		return &outcome{err: fmt.Errorf("%s: %w", d.path, errVanished)}
	}
	return d.read(found)
}

var errVanished = errors.New("another directory without manifests has taken the place of this one, as when a volume is unmounted; " +
	"mount it again, or put a manifest here, which may be empty")

// vanished says that nothing is left of the directory but its name. The last
// manifest may be removed; the directory may not.
func (d *Directory) vanished(found *listing) bool {
	return d.inForce != nil && d.inForce.objects > 0 && found.err == nil &&
		len(found.files) == 0 && !os.SameFile(found.folders[0].info, d.root)
}
