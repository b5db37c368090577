// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"strings"
	"sync/atomic"

	basemetrics "k8s.io/component-base/metrics"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// policyCounters are those of one stored policy. All of their series are there from
// the beginning, so that the first error is an increase. The series are made when they
// are read: ten thousand policies have a hundred thousand.
type policyCounters struct {
	outcomes [gravities]atomic.Uint64
	failures atomic.Uint64
	failOpen atomic.Uint64
	duration basemetrics.ObserverMetric // of the dialect

	compiled bool // guarded by the lock of the registry
}

// counters returns those of a policy, and nil when it is not stored any more. A
// policy may be judged before its notification has come.
func (r *Registry) counters(id policy.ID) *policyCounters {
	r.mu.RLock()
	counters := r.policies[id]
	r.mu.RUnlock()
	if counters == nil {
		counters = r.follow(id)
	}
	return counters
}

// follow begins or ends the counters of a policy, as it is stored or not; bindings
// have none. To look and to change is one step: what follows the deletion of a
// policy always finds it gone, so that no counters stay behind.
func (r *Registry) follow(id policy.ID) *policyCounters {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, stored := r.sources.Report(id)
	if !stored || report.Binding {
		delete(r.policies, id)
		return nil
	}
	counters := r.policies[id]
	if counters == nil {
		counters = &policyCounters{duration: r.evaluationDuration.WithLabelValues(r.dialects[id.Kind])}
		r.policies[id], r.kinds[id.Kind] = counters, true
	}
	counters.compiled = report.Damage == nil && len(report.Faults) == 0
	return counters
}

// policyCount says how many policies of a kind are stored.
type policyCount struct{ compiled, faulty int }

// count returns the number of policies by kind, also of the kinds of which there
// are none any more.
func (r *Registry) count() map[string]policyCount {
	r.mu.RLock()
	defer r.mu.RUnlock()
	counts := make(map[string]policyCount, len(r.kinds))
	for kind := range r.kinds {
		counts[kind] = policyCount{}
	}
	for id, counters := range r.policies {
		count := counts[id.Kind]
		if counters.compiled {
			count.compiled++
		} else {
			count.faulty++
		}
		counts[id.Kind] = count
	}
	return counts
}

// policyLabel names a policy, and no two alike: names have no slash and are UTF-8. One
// that the storage should not have let pass is made UTF-8, as labels have to be.
func policyLabel(id policy.ID) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// judgements shows, whenever it is read, what the policies have led to.
type judgements struct {
	basemetrics.BaseStableCollector
	evaluations, failures, failOpen *basemetrics.Desc
	registry                        *Registry
}

var _ basemetrics.StableCollector = (*judgements)(nil)

func newJudgements(r *Registry) *judgements {
	describe := func(name, help string, more ...string) *basemetrics.Desc {
		labels := append([]string{"dialect", "kind", "policy"}, more...)
		return basemetrics.NewDesc(prefix+"_"+name, help, labels, nil, basemetrics.ALPHA, "")
	}
	return &judgements{
		registry: r,
		evaluations: describe("policy_evaluations_total",
			"Number of times that a policy judged a review, through one binding and with one param. The outcome is the gravest of what its rules led to.", "outcome"),
		failures: describe("policy_errors_total",
			"Number of evaluations in which a policy, its binding or its param could not be used or judged, whatever the failurePolicy."),
		failOpen: describe("policy_fail_open_total",
			"Number of evaluations in which something could not be used or judged and the failurePolicy Ignore let that pass."),
	}
}

// DescribeWithStability implements basemetrics.StableCollector.
func (j *judgements) DescribeWithStability(to chan<- *basemetrics.Desc) {
	to <- j.evaluations
	to <- j.failures
	to <- j.failOpen
}

// CollectWithStability implements basemetrics.StableCollector.
func (j *judgements) CollectWithStability(to chan<- basemetrics.Metric) {
	count := func(description *basemetrics.Desc, counter *atomic.Uint64, labels ...string) {
		to <- basemetrics.NewLazyConstMetric(description, basemetrics.CounterValue, float64(counter.Load()), labels...)
	}
	for id, counters := range j.registry.all() {
		dialect, name := j.registry.dialects[id.Kind], policyLabel(id)
		for outcome, label := range outcomeLabels() {
			count(j.evaluations, &counters.outcomes[outcome], dialect, id.Kind, name, label)
		}
		count(j.failures, &counters.failures, dialect, id.Kind, name)
		count(j.failOpen, &counters.failOpen, dialect, id.Kind, name)
	}
}

// all returns the counters of all policies: who reads them may be slow, and holds
// nobody up.
func (r *Registry) all() map[policy.ID]*policyCounters {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.policies)
}
