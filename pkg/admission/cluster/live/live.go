// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live is the view of a cluster through its API server. Namespaces and the
// kinds that policies use as params are followed; what is not there is asked for, each
// time within a bound. Which kinds there are is read from discovery, again and again.
// What cannot be read is an error, and never looks as if there were nothing: before the
// first answers, without the right to read, and when a kind has gone. It does not know
// policies, and writes nothing but SubjectAccessReviews, which are stored nowhere.
package live

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

// Options are what a Cluster needs. All of them are required.
type Options struct {
	// Dynamic, Kubernetes and Discovery are clients of the same API server. Their own
	// limits of requests a second apply. The view needs few calls, but for params that
	// are not there and answers about rights, which it asks for again and again.
	Dynamic    dynamic.Interface
	Kubernetes kubernetes.Interface
	Discovery  discovery.DiscoveryInterfaceWithContext
	Clock      clock.WithTicker
}

// Cluster is a cluster that is followed through its API server. Make one by New. Its
// methods are safe for concurrent use, but for WatchDefinitions.
type Cluster struct {
	clock       clock.WithTicker
	namespaces  *namespaces
	definitions *mirror.Mirror[*defined]
	services    *mirror.Mirror[*metav1.ObjectMeta]
	survey      *survey
	kinds       *kinds
	reader      *reader
	wholes      *wholes
	schemas     *schemas
	authorizer  *reviewer
}

// New returns a cluster of which nothing has been read yet. It asks the API server for
// nothing: Run does.
func New(options Options) *Cluster {
	c := &Cluster{clock: options.Clock}
	c.reader = newReader(options.Dynamic)
	c.namespaces = newNamespaces(options.Kubernetes, options.Clock)
	c.survey = newSurvey(options.Discovery, options.Clock)
	c.definitions = mirror.New(source(options.Dynamic, definitionResource, definitionKind), options.Clock, newDefined, c.survey.definitionsChanged)
	c.services = mirror.New(source(options.Dynamic, serviceResource, serviceKind), options.Clock, nameOf, c.survey.definitionsChanged)
	c.survey.definitions = c.definitions
	c.kinds = newKinds(options.Dynamic, options.Clock, c.survey)
	c.survey.moved = c.kinds.arrange
	c.wholes = newWholes(options.Dynamic)
	c.schemas = newSchemas(c.survey)
	c.authorizer = newReviewer(options.Kubernetes.AuthorizationV1())
	return c
}

// View returns the cluster as it is now. Ask once for each request: which kinds a view
// knows stays the same, but that it gets to know new ones. Before the cluster has been
// read, whatever needs it is an error, except for Equivalents, which cannot say so and
// then knows the built-in resources only: judge nothing before Ready. Whatever is
// asked, a view waits once, and for two seconds at most, for kinds that it does not know.
func (c *Cluster) View() cluster.View {
	now := c.survey.latest.Load()
	return &view{cluster: c, snapshot: now, mapper: newMapper(c.survey, now)}
}

// Run follows the cluster until ctx ends. Call it once.
func (c *Cluster) Run(ctx context.Context) {
	var running wait.Group
	defer running.Wait()
	for _, run := range []func(context.Context){
		c.namespaces.mirror.Run, c.definitions.Run, c.services.Run, c.survey.run, c.kinds.run,
	} {
		running.StartWithContext(ctx, run)
	}
	<-ctx.Done()
}

// Use says of which kinds objects are asked for again and again, as params of the
// policies in force are. Exactly these are followed from now on; objects of others are
// read when they are asked for. Of more than 500 kinds, some are not followed. Kinds
// that are not served, or not yet, may be among them.
func (c *Cluster) Use(kinds []schema.GroupVersionKind) { c.kinds.use(kinds) }

// WatchDefinitions has notify called when kinds have been added, changed or removed,
// or the schemas of some, with their API groups, sorted: what the kinds of these groups
// are, and their schemas, may be different from now on. It is called after views show
// that, by Run, which waits for it: it must return at once.
//
// Call it before Run. It tells of all groups when they have been read for the first
// time.
func (c *Cluster) WatchDefinitions(notify func(groups []string)) {
	c.survey.watchers = append(c.survey.watchers, notify)
}

// Ready returns nil when requests can be judged: Namespaces and the served kinds have
// been read once, and so have the objects of each used kind, unless it is known that
// they cannot be, or that has taken too long. A kind that comes into use later makes
// it an error again, for a short time.
func (c *Cluster) Ready() error {
	var errs []error
	if state := c.namespaces.mirror.State(); !state.Synced {
		errs = append(errs, fmt.Errorf("namespaces: %w", unreadBecause(state.Err, namespaceResource)))
	}
	if err := c.survey.unread(); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, c.kinds.ready()...)
	}
	return errors.Join(errs...)
}

// unreadBecause says why objects have not been read yet.
func unreadBecause(err error, resource schema.GroupVersionResource) error {
	if err == nil {
		return mirror.ErrUnread
	}
	return advise(err, resource)
}

var (
	namespaceResource  = corev1.SchemeGroupVersion.WithResource("namespaces")
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	serviceResource    = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	serviceKind        = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
)
