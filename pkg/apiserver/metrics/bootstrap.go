// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	basemetrics "k8s.io/component-base/metrics"

	"github.com/portcullis-dev/portcullis/pkg/apiserver/bootstrap"
)

// bootstrapState shows, whenever it is read, what became of the manifests of
// bootstrap policies.
type bootstrapState struct {
	basemetrics.BaseStableCollector
	status func() bootstrap.Status

	objects, info, loaded, loadedAt, reloads *basemetrics.Desc
}

var _ basemetrics.StableCollector = (*bootstrapState)(nil)

func newBootstrapState(status func() bootstrap.Status) *bootstrapState {
	describe := func(name, help string, labels ...string) *basemetrics.Desc {
		return basemetrics.NewDesc(prefix+"_bootstrap_"+name, help, labels, nil, basemetrics.ALPHA, "")
	}
	return &bootstrapState{
		status:   status,
		objects:  describe("objects", "Number of bootstrap policies and bindings in force."),
		info:     describe("info", "The hash of the manifests of the bootstrap policies in force; the value is always 1.", "hash"),
		loaded:   describe("last_reload_success", "Whether the manifests of bootstrap policies as they are now are in force (1) or cannot be loaded (0)."),
		loadedAt: describe("last_reload_timestamp_seconds", "When the manifests of the bootstrap policies in force were loaded."),
		reloads:  describe("reloads_total", "Number of changes of the manifests of bootstrap policies that came into force, or that could not be loaded.", "result"),
	}
}

// DescribeWithStability implements basemetrics.StableCollector.
func (s *bootstrapState) DescribeWithStability(to chan<- *basemetrics.Desc) {
	for _, description := range []*basemetrics.Desc{s.objects, s.info, s.loaded, s.loadedAt, s.reloads} {
		to <- description
	}
}

// CollectWithStability implements basemetrics.StableCollector.
func (s *bootstrapState) CollectWithStability(to chan<- basemetrics.Metric) {
	show := func(description *basemetrics.Desc, kind basemetrics.ValueType, value float64, labels ...string) {
		to <- basemetrics.NewLazyConstMetric(description, kind, value, labels...)
	}
	status := s.status()
	show(s.objects, basemetrics.GaugeValue, float64(status.Objects))
	show(s.info, basemetrics.GaugeValue, 1, status.Hash)
	show(s.loaded, basemetrics.GaugeValue, oneIf(status.Err == nil))
	show(s.loadedAt, basemetrics.GaugeValue, float64(status.LoadedAt.UnixNano())/1e9)
	show(s.reloads, basemetrics.CounterValue, float64(status.Reloads), "success")
	show(s.reloads, basemetrics.CounterValue, float64(status.Failures), "failure")
}
