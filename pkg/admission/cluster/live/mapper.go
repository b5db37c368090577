// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
)

// mapper maps kinds as a snapshot knows them. Of kinds that the snapshot does not
// know, the API server is asked anew, once for all of them: they may have been defined
// since. What the API server could not tell is an error, and not "no match". Each view
// has its own mapper.
type mapper struct {
	patient
	snapshot *snapshot
}

func newMapper(survey *survey, snapshot *snapshot) *mapper {
	return &mapper{patient: patient{survey: survey}, snapshot: snapshot}
}

// Types is the same for mappers of the same types. See cluster.View.
func (m *mapper) Types() any { return m.snapshot }

var _ meta.RESTMapper = (*mapper)(nil)

// question is what a mapper is asked.
type question struct {
	group    string
	versions []string
	name     string // of the kind or resource
}

// find returns the answer, and the snapshot that gives it.
func find[T any](m *mapper, asked question, in func(*discovery.Table) (T, error)) (T, *snapshot, error) {
	var none T
	if !m.snapshot.read {
		if err := m.survey.unread(); err != nil {
			return none, m.snapshot, err
		}
	}
	var found T
	var err error
	var last *snapshot
	for _, next := range m.snapshots(asked.group + "/" + asked.name) {
		if s := next(); s != last && s.read {
			last = s
			if found, err = in(s.table); !meta.IsNoMatchError(err) {
				return found, s, err
			}
		}
	}
	if why := last.unknown(asked.group, asked.versions...); why != nil {
		return none, last, why
	}
	if why := m.survey.failing(); why != nil {
		return none, last, &unreadable{fmt.Sprintf("%v; whether it has been defined since is not known: %v", err, why)}
	}
	return none, last, err
}

// snapshots are those that may have an answer, in the order in which to ask for them.
func (m *mapper) snapshots(asked string) []func() *snapshot {
	return []func() *snapshot{
		func() *snapshot { return m.snapshot },
		m.survey.latest.Load,
		func() *snapshot { return m.again(asked) },
	}
}

// knowing returns a snapshot with resource in it, or the mapper's own when none has it.
func (m *mapper) knowing(resource schema.GroupResource) *snapshot {
	if m.snapshot.table.HasResource(resource) {
		return m.snapshot // as nearly always, for each request
	}
	for _, next := range m.snapshots(resource.Group + "/" + resource.Resource) {
		if s := next(); s.read && s.table.HasResource(resource) {
			return s
		}
	}
	return m.snapshot
}

func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, _, err := m.mapping(kind, versions...)
	return found, err
}

func (m *mapper) mapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, *snapshot, error) {
	return find(m, question{kind.Group, versions, kind.Kind}, func(t *discovery.Table) (*meta.RESTMapping, error) {
		return t.RESTMapping(kind, versions...)
	})
}

func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	found, _, err := find(m, question{kind.Group, versions, kind.Kind}, func(t *discovery.Table) ([]*meta.RESTMapping, error) {
		return t.RESTMappings(kind, versions...)
	})
	return found, err
}

func (m *mapper) ResourcesFor(partial schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	found, _, err := find(m, ofResource(partial), func(t *discovery.Table) ([]schema.GroupVersionResource, error) {
		return t.ResourcesFor(partial)
	})
	return found, err
}

func (m *mapper) ResourceFor(partial schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	found, _, err := find(m, ofResource(partial), func(t *discovery.Table) (schema.GroupVersionResource, error) {
		return t.ResourceFor(partial)
	})
	return found, err
}

func (m *mapper) KindsFor(partial schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	found, _, err := find(m, ofResource(partial), func(t *discovery.Table) ([]schema.GroupVersionKind, error) {
		return t.KindsFor(partial)
	})
	return found, err
}

func (m *mapper) KindFor(partial schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	found, _, err := find(m, ofResource(partial), func(t *discovery.Table) (schema.GroupVersionKind, error) {
		return t.KindFor(partial)
	})
	return found, err
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	found, _, err := find(m, question{name: resource}, func(t *discovery.Table) (string, error) {
		return t.ResourceSingularizer(resource)
	})
	return found, err
}

func ofResource(partial schema.GroupVersionResource) question {
	return question{partial.Group, []string{partial.Version}, partial.Resource}
}
