// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

const (
	// period is how often the files are looked at for changes of which the
	// system has said nothing: network filesystems know only their own, and
	// the target of a link may be anywhere.
	period = 10 * time.Second
	// blindPeriod is period when the system cannot tell of all changes.
	blindPeriod = time.Second
)

// Run follows the files until ctx ends. A change is in force, or its faults are
// known to Status and to the log, when the files have not changed for a short
// while and are loaded. Run may be called once.
func (d *Directory) Run(ctx context.Context) {
	if d.path == "" {
		<-ctx.Done()
		return
	}
	w := newWatch(d.path)
	defer w.close()
	d.follow(ctx, w)
}

// follow looks at the files when w has seen a change, and from time to time.
func (d *Directory) follow(ctx context.Context, w *watch) {
	timer := d.clock.NewTimer(0) // for what has changed since Open
	defer timer.Stop()
	soon, reread := true, false
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.events():
			seen, wrote := w.concerns(event)
			reread = reread || wrote
			if seen && !soon {
				soon = true
				timer.Reset(settle)
			}
		case err := <-w.errors():
			klog.FromContext(ctx).V(2).Info("Changes of manifests may have been missed; all are read again", "directory", d.path, "err", err)
			reread = true
			if !soon {
				soon = true
				timer.Reset(settle)
			}
		case <-timer.C():
			// What changes after it was listed must be seen.
			wait := w.follow(ctx, d.seen)
			if soon = d.look(ctx, reread); soon {
				wait = settle
			} else if left := d.patienceLeft(); left > 0 {
				wait = min(wait, left)
			}
			reread = reread && soon
			timer.Reset(wait)
		}
	}
}
