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
	// sight is how long ago this replica must have seen its own Lease renewed to
	// believe what it sees of others. Who does not hear of himself for longer does not
	// hear of the others either, and must know so before their Leases seem to end:
	// these were renewed within renewPeriod before.
	sight = leaseDuration - renewPeriod - 2*time.Second
	// maxNamed bounds the replicas that are named in a text.
	maxNamed = 3
)

// passed says whether the writes are in force on all replicas that are alive, or which
// are waited for. The text is empty when that is not known.
func (o *observer) passed(writes []catalog.Write) (passed bool, waiting string) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	now := o.clock.Now()
	own := o.replicas[leasePrefix+o.own]
	if !o.synced || own == nil || now.Sub(own.seen) > sight {
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
