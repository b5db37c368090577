// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

// Status is how well a cluster is known at the moment.
type Status struct {
	// Informers are the resources that are followed, ordered by resource: those that
	// every cluster needs, and one for each used kind.
	Informers []InformerStatus
	// Unfollowed counts the used kinds that are too many to be followed.
	Unfollowed int
	// Discovery is how well it is known which kinds there are.
	Discovery DiscoveryStatus
}

// InformerStatus is the state of one resource that is followed.
type InformerStatus struct {
	// Kind is empty for those that every cluster needs.
	Kind schema.GroupVersionKind
	// Resource is empty when no resource serves the kind.
	Resource schema.GroupVersionResource
	// Synced says that all objects have been read once.
	Synced  bool
	Objects int
	// Err is why the resource cannot be followed at the moment, or nil.
	Err error
	// HeardAt is when the API server told of the resource last, be it that there is
	// nothing new; zero when it never has.
	HeardAt time.Time
}

// DiscoveryStatus is how well it is known which kinds there are.
type DiscoveryStatus struct {
	// ReadAt is when the API server told so last; zero when it never has.
	ReadAt time.Time
	// Err is why it could not be read since, or nil.
	Err error
	// SchemasErr is why it is not known which schemas there are, or nil.
	SchemasErr error
	// Unread are the group versions that the API server could not tell of.
	// What was known of them is still in use.
	Unread []schema.GroupVersion
}

// Status returns the present state.
func (c *Cluster) Status() Status {
	status := Status{
		Informers: []InformerStatus{
			informer(namespaceResource, c.namespaces.mirror.State()),
			informer(definitionResource, c.definitions.State()),
			informer(serviceResource, c.services.State()),
		},
		Discovery: c.survey.status(),
	}
	used, unfollowed := c.kinds.status()
	status.Informers = append(status.Informers, used...)
	status.Unfollowed = unfollowed
	slices.SortFunc(status.Informers, func(a, b InformerStatus) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Kind.String(), b.Kind.String()))
	})
	return status
}

func informer(resource schema.GroupVersionResource, state mirror.State) InformerStatus {
	return InformerStatus{Resource: resource, Synced: state.Synced, Objects: state.Objects, Err: state.Err, HeardAt: state.HeardAt}
}

// HeardAt returns when the API server told of anything last: of a resource that is
// followed, or of which kinds there are. It is zero when it never has.
func (c *Cluster) HeardAt() time.Time {
	status := c.Status()
	last := status.Discovery.ReadAt
	for _, one := range status.Informers {
		if one.HeardAt.After(last) {
			last = one.HeardAt
		}
	}
	return last
}
