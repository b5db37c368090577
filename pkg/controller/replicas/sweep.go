// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

const (
	// sweepPeriod is how often the leader looks for Leases that were left behind.
	sweepPeriod = time.Minute
	// sweepAfter is how long after its end a Lease is removed.
	sweepAfter = 10 * time.Minute
)

// sweep removes, until ctx ends, the Leases of replicas that were killed.
func (o *observer) sweep(ctx context.Context) {
	ticker := o.clock.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		for _, lease := range o.leftBehind() {
			o.remove(ctx, lease)
		}
	}
}

func (o *observer) leftBehind() []*coordinationv1.Lease {
	o.mu.RLock()
	defer o.mu.RUnlock()
	now := o.clock.Now()
	var leases []*coordinationv1.Lease
	for _, one := range o.replicas {
		if now.Sub(one.ends) > sweepAfter {
			leases = append(leases, one.lease)
		}
	}
	return leases
}

func (o *observer) remove(ctx context.Context, lease *coordinationv1.Lease) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := remove(ctx, o.leases, lease)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return // it is gone, or its replica is back
	}
	klog.FromContext(ctx).Error(err, "The Lease of a server that is gone cannot be removed", "lease", lease.Name)
}
