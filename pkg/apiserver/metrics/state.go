// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	basemetrics "k8s.io/component-base/metrics"
)

// state shows, whenever it is read, what state the server is in.
type state struct {
	basemetrics.BaseStableCollector
	descriptions stateDescriptions
	sources      Sources
	policies     func() map[string]policyCount // by kind
}

type stateDescriptions struct {
	policies, synced, unjudged, age, heard, objects, loaded, loadedAt, reloads *basemetrics.Desc
}

var _ basemetrics.StableCollector = (*state)(nil)

func newState(sources Sources, policies func() map[string]policyCount) *state {
	describe := func(name, help string, labels ...string) *basemetrics.Desc {
		return basemetrics.NewDesc(prefix+"_"+name, help, labels, nil, basemetrics.ALPHA, "")
	}
	return &state{
		sources:  sources,
		policies: policies,
		descriptions: stateDescriptions{
			policies: describe("policies", "Number of policies, stored ones and bootstrap policies. One that does not compile, or cannot be read, fails the requests that it matches.", "kind", "compiled"),
			synced:   describe("snapshot_synced", "Whether the server has a complete set of policies (1) or refuses to judge (0)."),
			unjudged: describe("break_glass_open", "Whether reviews are admitted without being judged (1) because an administrator said so in the webhook registration."),
			age: describe("snapshot_age_seconds",
				"Time since the policies in force were last known to be those that are stored; absent as long as that has never been known."),
			heard: describe("cluster_unheard_seconds",
				"Time since kube-apiserver last told anything of the cluster that policies read; absent until it has for the first time."),
			objects:  describe("objects", "Number of objects in the manifests that policies read."),
			loaded:   describe("objects_last_reload_success", "Whether the manifests as they are now are in force (1) or cannot be loaded (0)."),
			loadedAt: describe("objects_last_reload_timestamp_seconds", "When the manifests in force were loaded."),
			reloads:  describe("objects_reloads_total", "Number of changes of the manifests that came into force, or that could not be loaded.", "result"),
		},
	}
}

// DescribeWithStability implements basemetrics.StableCollector.
func (s *state) DescribeWithStability(to chan<- *basemetrics.Desc) {
	d := &s.descriptions
	for _, description := range []*basemetrics.Desc{d.policies, d.synced, d.unjudged, d.age, d.heard, d.objects, d.loaded, d.loadedAt, d.reloads} {
		to <- description
	}
}

// CollectWithStability implements basemetrics.StableCollector.
func (s *state) CollectWithStability(to chan<- basemetrics.Metric) {
	gauge := func(description *basemetrics.Desc, value float64, labels ...string) {
		to <- basemetrics.NewLazyConstMetric(description, basemetrics.GaugeValue, value, labels...)
	}
	for kind, count := range s.policies() {
		gauge(s.descriptions.policies, float64(count.compiled), kind, strconv.FormatBool(true))
		gauge(s.descriptions.policies, float64(count.faulty), kind, strconv.FormatBool(false))
	}
	gauge(s.descriptions.synced, oneIf(s.sources.Complete()))
	if s.sources.Unjudged != nil {
		gauge(s.descriptions.unjudged, oneIf(s.sources.Unjudged()))
	}
	if s.sources.Age != nil {
		if age, known := s.sources.Age(s.sources.Clock.Now()); known {
			gauge(s.descriptions.age, seconds(age))
		}
	}
	if s.sources.HeardAt != nil {
		if at := s.sources.HeardAt(); !at.IsZero() {
			gauge(s.descriptions.heard, seconds(s.sources.Clock.Since(at)))
		}
	}
	if s.sources.Objects == nil {
		return
	}
	objects := s.sources.Objects()
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
