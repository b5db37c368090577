// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"
)

// Two processes with one identity have one Lease, and each would say of both what is
// in force on itself. As long as both write it, it says that nothing is, so that no
// policy becomes ready.

// contest looks for another process in a Lease that was found. Before this one has
// joined, that is the one whose place it takes. What others wrote once may be a Lease
// that was restored; who writes again after this process has is alive.
func (p *publisher) contest(ctx context.Context, found *coordinationv1.Lease) {
	if holder := holderOf(found); p.joined.Load() == nil || holder == p.holder || holder == "" {
		return
	}
	until := p.clock.Now().Add(leaseDuration)
	p.contested.Store(&until)
	p.taken++
	if p.taken == 2 {
		err := fmt.Errorf("another server has the identity %s: give each its own --identity", strings.TrimPrefix(p.name, leasePrefix))
		klog.FromContext(ctx).Error(err, "Two servers write one Lease; no policy becomes ready until one of them stops", "lease", p.name, "holder", holderOf(found))
	}
}

// inContest says whether another process may write the Lease too.
func (p *publisher) inContest() bool {
	until := p.contested.Load()
	return until != nil && p.clock.Now().Before(*until)
}

// settle ends a contest that was over when the Lease was written.
func (p *publisher) settle(ctx context.Context) {
	if p.contested.Load() == nil || p.inContest() {
		return
	}
	if p.taken > 1 {
		klog.FromContext(ctx).Info("No other server writes the Lease of this one any more", "lease", p.name)
	}
	p.contested.Store(nil)
	p.taken = 0
}
