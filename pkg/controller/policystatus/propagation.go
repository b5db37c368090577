// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Gate knows what is in force on all servers.
type Gate interface {
	// Passed says whether writes are in force on each server that is alive. If not,
	// waiting tells users for which ones they wait; it is empty when nobody can tell at
	// the moment.
	Passed(writes ...catalog.Write) (passed bool, waiting string)
	// Watch calls notify, until stop is called, when Passed may have something new to
	// say.
	Watch(notify func()) (stop func())
}

// patience is how long a change may be on its way before a condition tells of it: most
// are in force everywhere by then, and their writers hear that first.
const patience = time.Second

// roundPause lies between two rounds over the policies that wait: each Lease of a
// server may be news, and busy servers write theirs ten times a second.
const roundPause = 100 * time.Millisecond

// propagation knows which policies are not known to be in force everywhere.
type propagation struct {
	gate  Gate // nil when there are no other servers
	clock clock.WithTicker

	mu      sync.Mutex
	waiting map[policy.ID]waiting
}

// waiting is what is known of a policy that waits.
type waiting struct {
	since  time.Time
	looked bool   // its condition does not say that it is in force
	told   string // what its condition says
}

// passed says whether a policy is in force everywhere as it is reported, or for what
// it waits.
func (p *propagation) passed(id policy.ID, report *catalog.Report) (passed bool, text string) {
	if p.gate == nil || !whole(report) {
		return true, ""
	}
	writes := []catalog.Write{{Kind: id.Kind, ResourceVersion: report.Since}}
	if report.BoundSince.ResourceVersion != "" {
		writes = append(writes, report.BoundSince)
	}
	return p.gate.Passed(writes...)
}

// due says whether the condition of a policy that waits may have to be changed.
func (p *propagation) due(entry waiting, text string) bool {
	return text != "" && (!entry.looked || entry.told != text && p.patient(entry))
}

func (p *propagation) patient(entry waiting) bool { return p.clock.Since(entry.since) >= patience }

// wait returns what is known of a policy, which waits from now on.
func (p *propagation) wait(id policy.ID) waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, ok := p.waiting[id]
	if !ok {
		entry = waiting{since: p.clock.Now()}
		p.waiting[id] = entry
	}
	return entry
}

// note notes that the condition of a policy has been looked at, and what it says.
func (p *propagation) note(id policy.ID, told string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if entry, ok := p.waiting[id]; ok {
		entry.looked, entry.told = true, told
		p.waiting[id] = entry
	}
}

// forget is called when a policy does not wait.
func (p *propagation) forget(id policy.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

func (p *propagation) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.waiting)
}

func (p *propagation) all() map[policy.ID]waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.waiting)
}

// followGate adds the policies about which there is something to do, when what they
// wait for may have happened, and when their patience ends.
func (c *Controller) followGate(ctx context.Context, add func(policy.ID)) {
	news := make(chan struct{}, 1)
	defer c.propagation.gate.Watch(func() {
		select {
		case news <- struct{}{}:
		default: // it will be seen with what came before
		}
	})()
	// Nobody tells of the end of a server that was killed, either.
	ticker := c.propagation.clock.NewTicker(patience)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-ticker.C():
		}
		entries := c.propagation.all()
		for id, entry := range entries {
			report, ok := c.reports.Report(id)
			if passed, text := c.propagation.passed(id, &report); !ok || passed || c.propagation.due(entry, text) {
				add(id)
			}
		}
		if len(entries) == 0 {
			continue
		}
		rest := c.propagation.clock.NewTimer(roundPause)
		select {
		case <-ctx.Done():
		case <-rest.C():
		}
		rest.Stop()
	}
}

// hold changes the condition Ready that is wanted of a policy that is not known to be
// in force everywhere, and returns false when nothing is to be written now. What is
// stored of an older generation says so itself and may stay for a while; of this one,
// it must not say that the policy is in force.
func (c *Controller) hold(entry waiting, text string, stored, wanted []metav1.Condition) bool {
	for i := range wanted {
		if wanted[i].Type != Ready {
			continue
		}
		before := meta.FindStatusCondition(stored, Ready)
		claimed := before != nil && before.Status == metav1.ConditionTrue && before.ObservedGeneration == wanted[i].ObservedGeneration
		if !claimed && !c.propagation.patient(entry) {
			return false
		}
		wanted[i].Status, wanted[i].Reason, wanted[i].Message = metav1.ConditionUnknown, reasonPropagating, text
	}
	return true
}
