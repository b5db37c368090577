// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

// catalogue is an API server that tells which kinds there are, and counts how often.
type catalogue struct {
	discovery.DiscoveryInterfaceWithContext
	openapi.ClientWithContext
	rounds  atomic.Int32
	slow    atomic.Int64 // how long an answer takes
	defined atomic.Value // of string: a kind of example.com
}

func (c *catalogue) GroupsAndMaybeResourcesWithContext(ctx context.Context) (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	c.rounds.Add(1)
	list := &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget"}}}
	if kind, ok := c.defined.Load().(string); ok {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "others", Kind: kind})
	}
	select {
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	case <-time.After(time.Duration(c.slow.Load())):
	}
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: gv.String(), Version: gv.Version}}}}}
	return groups, map[schema.GroupVersion]*metav1.APIResourceList{gv: list}, nil, nil
}

func (c *catalogue) OpenAPIV3WithContext(context.Context) openapi.ClientWithContext { return c }

func (*catalogue) PathsWithContext(context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	return nil, errors.New("none")
}

// surveyed runs what a test does with a cluster whose kinds have been read, at rest.
func surveyed(t *testing.T, test func(c *Cluster, server *catalogue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := &catalogue{}
		s := newSurvey(server, clock.RealClock{})
		s.moved = func() {}
		s.definitions = mirror.New(mirror.Source{
			Name: "definitions", Example: &unstructured.Unstructured{},
			List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}}, nil
			},
			Watch: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if options.SendInitialEvents != nil {
					return nil, errors.New("lists are not streamed")
				}
				return watch.NewFake(), nil
			},
		}, clock.RealClock{}, newDefined, s.definitionsChanged)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{}, 2)
		go func() { s.definitions.Run(ctx); done <- struct{}{} }()
		go func() { s.run(ctx); done <- struct{}{} }()
		time.Sleep(15 * time.Second) // nothing follows up any more
		synctest.Wait()
		test(&Cluster{clock: clock.RealClock{}, survey: s}, server)
		cancel()
		<-done
		<-done
	})
}

func unknown(i int) schema.GroupKind {
	return schema.GroupKind{Group: "example.com", Kind: fmt.Sprint("Unknown", i)}
}

// TestWaitsOnce: a view waits for one round however many kinds it does not know, and
// later views do not wait for the same ones, also while a round is under way.
func TestWaitsOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		slow time.Duration
		most time.Duration
	}{
		{"fast", 10 * time.Millisecond, time.Second},
		{"slow", 5 * time.Second, awaitTimeout},
		{"never", time.Hour, awaitTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			surveyed(t, func(c *Cluster, server *catalogue) {
				server.slow.Store(int64(test.slow))
				before := server.rounds.Load()
				for i, most := range []time.Duration{test.most, 0} {
					began, view := time.Now(), c.View()
					for n := range maxMissed {
						if _, err := view.Mapper().RESTMapping(unknown(n), "v1"); err == nil {
							t.Fatal("an unknown kind is known")
						}
					}
					if took := time.Since(began); took > most {
						t.Errorf("view %d has waited for %v, want at most %v", i, took, most)
					}
				}
				if got := server.rounds.Load() - before; got > 1 {
					t.Errorf("%d rounds for what is asked at once, want 1", got)
				}
			})
		})
	}
}

// TestAsksSeldom: rounds do not come faster than one a second, whatever is asked for.
func TestAsksSeldom(t *testing.T) {
	surveyed(t, func(c *Cluster, server *catalogue) {
		server.slow.Store(int64(10 * time.Millisecond))
		before, began := server.rounds.Load(), time.Now()
		for n := range 5000 {
			if time.Since(began) >= 10*time.Second {
				break
			}
			_, _ = c.View().Mapper().RESTMapping(unknown(n), "v1")
		}
		if got, took := server.rounds.Load()-before, time.Since(began); took < 10*time.Second || got > 11 || got < 9 {
			t.Errorf("%d rounds in %v, want one a second", got, took)
		}
	})
}

// TestFreshKind: a kind that has been defined is found by the first who asks, also when
// a round is under way that has begun before, and by those who did not know it lately
// when they hear of the change.
func TestFreshKind(t *testing.T) {
	gadget := schema.GroupKind{Group: "example.com", Kind: "Gadget"}
	t.Run("at rest", func(t *testing.T) {
		surveyed(t, func(c *Cluster, server *catalogue) {
			server.defined.Store("Gadget")
			if _, err := c.View().Mapper().RESTMapping(gadget, "v1"); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a round is under way", func(t *testing.T) {
		surveyed(t, func(c *Cluster, server *catalogue) {
			server.slow.Store(int64(300 * time.Millisecond))
			go func() { _, _ = c.View().Mapper().RESTMapping(unknown(0), "v1") }()
			synctest.Wait()
			server.defined.Store("Gadget")
			if _, err := c.View().Mapper().RESTMapping(gadget, "v1"); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("missed lately", func(t *testing.T) {
		surveyed(t, func(c *Cluster, server *catalogue) {
			view := c.View()
			for _, kind := range []schema.GroupKind{unknown(0), gadget} {
				if _, err := view.Mapper().RESTMapping(kind, "v1"); !meta.IsNoMatchError(err) {
					t.Fatalf("got %v, want no match", err)
				}
			}
			server.defined.Store("Gadget")
			c.survey.definitionsChanged()
			if _, err := c.View().Mapper().RESTMapping(gadget, "v1"); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestMissedBeforeAChange: what was missing in a round is not noted when definitions
// have changed since that began.
func TestMissedBeforeAChange(t *testing.T) {
	surveyed(t, func(c *Cluster, _ *catalogue) {
		view := c.View()
		_, _ = view.Mapper().RESTMapping(unknown(0), "v1")
		c.survey.definitionsChanged()
		_, _ = view.Mapper().RESTMapping(unknown(1), "v1")
		if !c.survey.worthAsking("example.com/Unknown1") {
			t.Error("the kind is not asked for again")
		}
	})
}

// TestMappersOfTheSameTypes: each view has its own mapper; those of the same types say
// so.
func TestMappersOfTheSameTypes(t *testing.T) {
	surveyed(t, func(c *Cluster, server *catalogue) {
		types := func() any {
			own, ok := c.View().Mapper().(interface{ Types() any })
			if !ok {
				t.Fatal("the mapper does not tell its types")
			}
			return own.Types()
		}
		first := types()
		time.Sleep(2 * surveyPeriod)
		if types() != first {
			t.Error("other types, although nothing has changed")
		}
		server.defined.Store("Gadget")
		time.Sleep(2 * surveyPeriod)
		if types() == first {
			t.Error("the same types, although a kind was defined")
		}
	})
}
