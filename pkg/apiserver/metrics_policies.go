// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

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

	compiled bool // guarded by the lock of serverMetrics
}

// series returns the counters of a policy, and nil when it is not stored any
// more. A policy may be judged before its notification has come.
func (m *serverMetrics) series(id policy.ID) *policySeries {
	m.mu.RLock()
	series := m.policies[id]
	m.mu.RUnlock()
	if series == nil {
		series = m.follow(id)
	}
	return series
}

// follow begins or ends the series of a policy, as it is stored or not. To look
// and to change is one step: what follows the deletion of a policy always finds it
// gone, so that no series stays behind.
func (m *serverMetrics) follow(id policy.ID) *policySeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	report, stored := m.stored(id)
	series := m.policies[id]
	if !stored {
		if series != nil {
			delete(m.policies, id)
			m.remove(id)
		}
		return nil
	}
	if series == nil {
		series = m.newSeries(id)
		m.policies[id], m.kinds[id.Kind] = series, true
	}
	series.compiled = report.Damage == nil && len(report.Faults) == 0
	return series
}

func (m *serverMetrics) newSeries(id policy.ID) *policySeries {
	dialect, name := m.dialects[id.Kind], policyLabel(id)
	series := &policySeries{
		failures: m.failures.WithLabelValues(dialect, id.Kind, name),
		failOpen: m.failOpen.WithLabelValues(dialect, id.Kind, name),
		duration: m.evaluationDuration.WithLabelValues(dialect),
	}
	for outcome, label := range outcomeLabels() {
		series.outcomes[outcome] = m.evaluations.WithLabelValues(dialect, id.Kind, name, label)
	}
	return series
}

func (m *serverMetrics) remove(id policy.ID) {
	dialect, name := m.dialects[id.Kind], policyLabel(id)
	m.failures.DeleteLabelValues(dialect, id.Kind, name)
	m.failOpen.DeleteLabelValues(dialect, id.Kind, name)
	for _, label := range outcomeLabels() {
		m.evaluations.DeleteLabelValues(dialect, id.Kind, name, label)
	}
}

// policyCount says how many policies of a kind are stored.
type policyCount struct{ compiled, faulty int }

// count returns the number of policies by kind, also of the kinds of which there
// are none any more.
func (m *serverMetrics) count() map[string]policyCount {
	m.mu.RLock()
	defer m.mu.RUnlock()
	counts := make(map[string]policyCount, len(m.kinds))
	for kind := range m.kinds {
		counts[kind] = policyCount{}
	}
	for id, series := range m.policies {
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
