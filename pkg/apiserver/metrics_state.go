// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strconv"
	"time"

	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
)

// stateMetrics show, whenever they are read, what state the server is in.
type stateMetrics struct {
	basemetrics.BaseStableCollector
	descriptions stateDescriptions
	sources      stateSources
}

// stateSources tell what state the server is in.
type stateSources struct {
	clock    clock.PassiveClock
	policies func() map[string]policyCount // by kind
	// complete says whether there is a set of policies in force.
	complete func() bool
	// age says how old the policies in force may be, or that it is not known. It is
	// nil where nobody knows.
	age func(now time.Time) (time.Duration, bool)
	// objects says how the cluster that policies read came about.
	objects func() offline.Status
}

type stateDescriptions struct {
	policies, synced, age, objects, loaded, loadedAt, reloads *basemetrics.Desc
}

var _ basemetrics.StableCollector = (*stateMetrics)(nil)

func newStateMetrics(sources stateSources) *stateMetrics {
	describe := func(name, help string, labels ...string) *basemetrics.Desc {
		return basemetrics.NewDesc(metricsPrefix+"_"+name, help, labels, nil, basemetrics.ALPHA, "")
	}
	return &stateMetrics{
		sources: sources,
		descriptions: stateDescriptions{
			policies: describe("policies", "Number of stored policies. One that does not compile, or cannot be read, fails the requests that it matches.", "kind", "compiled"),
			synced:   describe("snapshot_synced", "Whether the server has a complete set of policies (1) or refuses to judge (0)."),
			age: describe("snapshot_age_seconds",
				"Time since the policies in force were last known to be those that are stored; absent as long as that has never been known."),
			objects:  describe("objects", "Number of objects in the manifests that policies read."),
			loaded:   describe("objects_last_reload_success", "Whether the manifests as they are now are in force (1) or cannot be loaded (0)."),
			loadedAt: describe("objects_last_reload_timestamp_seconds", "When the manifests in force were loaded."),
			reloads:  describe("objects_reloads_total", "Number of changes of the manifests that came into force, or that could not be loaded.", "result"),
		},
	}
}

// DescribeWithStability implements basemetrics.StableCollector.
func (s *stateMetrics) DescribeWithStability(to chan<- *basemetrics.Desc) {
	d := &s.descriptions
	for _, description := range []*basemetrics.Desc{d.policies, d.synced, d.age, d.objects, d.loaded, d.loadedAt, d.reloads} {
		to <- description
	}
}

// CollectWithStability implements basemetrics.StableCollector.
func (s *stateMetrics) CollectWithStability(to chan<- basemetrics.Metric) {
	gauge := func(description *basemetrics.Desc, value float64, labels ...string) {
		to <- basemetrics.NewLazyConstMetric(description, basemetrics.GaugeValue, value, labels...)
	}
	for kind, count := range s.sources.policies() {
		gauge(s.descriptions.policies, float64(count.compiled), kind, strconv.FormatBool(true))
		gauge(s.descriptions.policies, float64(count.faulty), kind, strconv.FormatBool(false))
	}
	gauge(s.descriptions.synced, oneIf(s.sources.complete()))
	if s.sources.age != nil {
		if age, known := s.sources.age(s.sources.clock.Now()); known {
			gauge(s.descriptions.age, seconds(age))
		}
	}
	objects := s.sources.objects()
	gauge(s.descriptions.objects, float64(objects.Objects))
	gauge(s.descriptions.loaded, oneIf(objects.Err == nil))
	gauge(s.descriptions.loadedAt, float64(objects.LoadedAt.UnixNano())/1e9)
	to <- basemetrics.NewLazyConstMetric(s.descriptions.reloads, basemetrics.CounterValue, float64(objects.Reloads), "success")
	to <- basemetrics.NewLazyConstMetric(s.descriptions.reloads, basemetrics.CounterValue, float64(objects.Failures), "failure")
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
