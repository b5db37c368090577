// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// addMetrics adds the metrics of the engine to those that the server serves. It
// makes them hear of what becomes of the stored policies; what judges must be told
// of them. The storage must be set before.
func (c *Config) addMetrics(dialects []policy.Dialect, policies *catalog.Catalog, objects *offline.Directory) (*serverMetrics, error) {
	if c.Generic.RESTOptionsGetter == nil {
		return nil, errors.New("the storage is not set")
	}
	kinds := map[schema.GroupResource]string{}
	for _, kind := range stored.Kinds() {
		name, err := kindName(c.scheme, kind)
		if err != nil {
			return nil, err
		}
		kinds[policyapi.Resource(kind.Resource)] = name
	}
	m := newServerMetrics(dialects, policies.Report)
	complete := func() bool { return policies.Current() != nil }
	sources := stateSources{clock: m.clock, policies: m.count, complete: complete, objects: objects.Status}
	if c.Snapshot != nil {
		sources.age = c.Snapshot.Age
	}
	m.registry.CustomMustRegister(newStateMetrics(sources))

	writes := newPropagation(policies.Report, complete, m.clock, m.propagation)
	c.Generic.RESTOptionsGetter = &watchedStorage{RESTOptionsGetter: c.Generic.RESTOptionsGetter, kinds: kinds, propagation: writes}
	policies.Watch(func(id policy.ID) {
		m.follow(id)
		writes.changed()
	})
	c.Extra.Handlers = with(c.Extra.Handlers, metricsPath, m.handler())
	return m, nil
}
