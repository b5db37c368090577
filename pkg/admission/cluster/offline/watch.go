// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// watch tells when something happens in the folders of a directory of
// manifests, or to the directory itself. It does not know what has changed.
type watch struct {
	notify  *fsnotify.Watcher // nil when err is set
	err     error
	dir     string
	watched map[string]fs.FileInfo
	// inside are those of watched that hold manifests.
	inside map[string]bool
	// above are the places on the way to dir whose change makes dir another
	// one: dir itself and the links on the way.
	above   map[string]bool
	trouble string // the last one that was logged
}

func newWatch(dir string) *watch {
	w := &watch{dir: dir}
	if w.notify, w.err = fsnotify.NewWatcher(); w.err != nil {
		w.notify = nil
	}
	return w
}

func (w *watch) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

func (w *watch) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watch) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

// follow watches the folders of a listing, and no others, and the way to them.
// It returns after what time to look at the files if nothing happens until then.
func (w *watch) follow(ctx context.Context, found *listing) time.Duration {
	err := w.err
	if w.notify != nil {
		err = w.update(found)
	}
	if err == nil {
		w.trouble = ""
		return period
	}
	// What is not there any more is for the next look to find out.
	if problem := err.Error(); problem != w.trouble && !errors.Is(err, fs.ErrNotExist) {
		w.trouble = problem
		klog.FromContext(ctx).Info("The system does not tell of changes of manifests; they are looked for each second, at some cost. "+
			"Raise fs.inotify.max_user_instances or fs.inotify.max_user_watches if they are used up", "directory", w.dir, "err", err)
	}
	return blindPeriod
}

// update brings what is watched in step with a listing. To watch again what is
// watched does nothing, unless it was removed and made anew meanwhile.
func (w *watch) update(found *listing) error {
	wanted := make(map[string]fs.FileInfo, len(found.folders))
	w.inside, w.above = make(map[string]bool, len(found.folders)), way(w.dir)
	for _, folder := range found.folders {
		path := filepath.Clean(folder.path)
		wanted[path], w.inside[path] = folder.info, true
	}
	for path := range w.above {
		parent := filepath.Dir(path)
		if _, known := wanted[parent]; !known {
			info, err := os.Stat(parent)
			if err != nil {
				return err
			}
			wanted[parent] = info
		}
	}
	for path, info := range w.watched {
		if now, still := wanted[path]; !still || !os.SameFile(now, info) {
			// An error says that it has ended by itself.
			_ = w.notify.Remove(path)
		}
	}
	w.watched = wanted
	var errs []error
	for path := range wanted {
		if err := w.notify.Add(path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// way returns dir and the links on the way to it.
func way(dir string) map[string]bool {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	found := map[string]bool{path: true}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			found[path] = true
		}
	}
	return found
}

// concerns says whether an event may be that of a change of the manifests, and
// whether a manifest may have been written in a way that cannot be seen.
func (w *watch) concerns(event fsnotify.Event) (seen, wrote bool) {
	path := filepath.Clean(event.Name)
	switch {
	case w.above[path]:
		return true, false
	case !w.inside[path] && !w.inside[filepath.Dir(path)]:
		return false, false
	case isManifest(path) && !isHidden(path):
		return true, event.Has(fsnotify.Create | fsnotify.Write)
	default:
		// A folder, or what a link leads to.
		return event.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename), false
	}
}
