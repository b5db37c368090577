// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
)

const (
	// sight is how long ago the last renewal of its own Lease that this process has
	// seen may have been made and seen for it to believe what it sees of others. Who
	// hears late of himself, or not at all, hears so of the others, and must know before
	// their Leases seem to end: these were renewed within renewPeriod before.
	sight = leaseDuration - renewPeriod - 2*time.Second
	// maxNamed bounds the replicas that are named in a text.
	maxNamed = 3
)

// passed says whether the writes are in force on all replicas that are alive, or which
// are waited for. The text is empty when that is not known.
//
// It may say so because a watch tells of all Leases in the order in which they were
// written. The Lease of this replica must say that the writes are in force here: who
// has seen it say so has seen each Lease that was created before. A replica whose
// Lease was created later has read the writes, or is not ready before it has: see
// publisher.ready. And who has seen a renewal of its own has seen what the others had
// renewed by then, so that none seems to be gone whose renewals are on their way.
func (o *observer) passed(writes []catalog.Write) (passed bool, waiting string) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	now := o.clock.Now()
	if !o.sees(now) {
		return false, ""
	}
	alive := 0
	var behind []string
	for _, one := range o.replicas {
		if !now.Before(one.ends) {
			continue
		}
		alive++
		if !one.passed(writes) {
			behind = append(behind, one.identity)
		}
	}
	if len(behind) == 0 {
		return true, ""
	}
	return false, fmt.Sprintf("in force on %d of %d replicas; waiting for %s", alive-len(behind), alive, listed(behind))
}

// sees says whether this process hears of itself, and so of the others, in time. By
// the clock of this process, which has written when that was: its own Lease may come
// often, and each time from long ago.
func (o *observer) sees(now time.Time) bool {
	own := o.replicas[o.own]
	if !o.synced || own == nil || own.holder != o.holder || own.lease.Spec.RenewTime == nil {
		return false
	}
	age := now.Sub(own.lease.Spec.RenewTime.Time)
	return age >= 0 && age <= sight && now.Sub(o.heard) <= sight
}

// passed says whether all writes are in force on the replica.
func (r *replica) passed(writes []catalog.Write) bool {
	for _, write := range writes {
		order, err := resourceversion.CompareResourceVersion(r.enforced[write.Kind], write.ResourceVersion)
		if err != nil || order < 0 {
			return false
		}
	}
	return true
}

// listed names replicas, always in the same way.
func listed(names []string) string {
	slices.Sort(names)
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

func identityOf(lease *coordinationv1.Lease) string {
	return strings.TrimPrefix(lease.Name, leasePrefix)
}
