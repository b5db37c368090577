// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"

	basemetrics "k8s.io/component-base/metrics"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// policySeries are the counters of one stored policy. All of them are there from
// the beginning, so that the first error is an increase.
type policySeries struct {
	outcomes [gravities]basemetrics.CounterMetric
	failures basemetrics.CounterMetric
	failOpen basemetrics.CounterMetric
	duration basemetrics.ObserverMetric // of the dialect

	compiled bool // guarded by the lock of the registry
}

// series returns the counters of a policy, and nil when it is not stored any
// more. A policy may be judged before its notification has come.
func (r *Registry) series(id policy.ID) *policySeries {
	r.mu.RLock()
	series := r.policies[id]
	r.mu.RUnlock()
	if series == nil {
		series = r.follow(id)
	}
	return series
}

// follow begins or ends the series of a policy, as it is stored or not; bindings
// have none. To look and to change is one step: what follows the deletion of a
// policy always finds it gone, so that no series stays behind.
func (r *Registry) follow(id policy.ID) *policySeries {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, stored := r.sources.Report(id)
	series := r.policies[id]
	if !stored || report.Binding {
		if series != nil {
			delete(r.policies, id)
			r.remove(id)
		}
		return nil
	}
	if series == nil {
		series = r.newSeries(id)
		r.policies[id], r.kinds[id.Kind] = series, true
	}
	series.compiled = report.Damage == nil && len(report.Faults) == 0
	return series
}

func (r *Registry) newSeries(id policy.ID) *policySeries {
	dialect, name := r.dialects[id.Kind], policyLabel(id)
	series := &policySeries{
		failures: r.failures.WithLabelValues(dialect, id.Kind, name),
		failOpen: r.failOpen.WithLabelValues(dialect, id.Kind, name),
		duration: r.evaluationDuration.WithLabelValues(dialect),
	}
	for outcome, label := range outcomeLabels() {
		series.outcomes[outcome] = r.evaluations.WithLabelValues(dialect, id.Kind, name, label)
	}
	return series
}

func (r *Registry) remove(id policy.ID) {
	dialect, name := r.dialects[id.Kind], policyLabel(id)
	r.failures.DeleteLabelValues(dialect, id.Kind, name)
	r.failOpen.DeleteLabelValues(dialect, id.Kind, name)
	for _, label := range outcomeLabels() {
		r.evaluations.DeleteLabelValues(dialect, id.Kind, name, label)
	}
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
	for id, series := range r.policies {
		count := counts[id.Kind]
		if series.compiled {
			count.compiled++
		} else {
			count.faulty++
		}
		counts[id.Kind] = count
	}
	return counts
}

// policyLabel names a policy. Labels must be UTF-8, which names are unless someone
// has written to etcd past the API.
func policyLabel(id policy.ID) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}
