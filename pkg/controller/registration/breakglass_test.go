// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// run runs what a replica runs, until the test ends.
func run(t *testing.T, objects dynamic.Interface, clock *clocktesting.FakeClock) *BreakGlass {
	t.Helper()
	g := NewBreakGlass(Options{Objects: objects, Configurations: configurations(), Clock: clock})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return g
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("waited in vain until %s: %v", what, err)
	}
}

// waiting waits until all replicas wait for the clock, which must not be set before.
func waiting(t *testing.T, clock *clocktesting.FakeClock, replicas ...*BreakGlass) {
	t.Helper()
	eventually(t, "all wait for the clock", func() bool { return clock.Waiters() == 4*len(replicas) })
}

// configurations are four, each of which leads to a door of its own and opens that
// one; those that validate open the one that mutates as well.
func configurations() []Configuration {
	var all []Configuration
	for _, name := range []string{"portcullis", "portcullis-direct"} {
		validate, mutate := "/ValidatingWebhookConfiguration/"+name, "/MutatingWebhookConfiguration/"+name
		all = append(all,
			Configuration{Resource: "validatingwebhookconfigurations", Name: name, Door: validate, Opens: []string{validate, mutate}},
			Configuration{Resource: "mutatingwebhookconfigurations", Name: name, Door: mutate, Opens: []string{mutate}},
		)
	}
	return all
}

// openedIn waits until a replica is open and hears of all that follows.
func openedIn(t *testing.T, c *cluster, g *BreakGlass) {
	t.Helper()
	eventually(t, "it is open", func() bool { return isOpen(g) && c.watches.Load() >= 4 })
}

// isOpen says whether any door is open.
func isOpen(g *BreakGlass) bool {
	_, open := opened(g)
	return open
}

func opened(g *BreakGlass) (Window, bool) {
	for _, configuration := range configurations() {
		if window, open := g.Open(configuration.Door); open {
			return window, true
		}
	}
	return Window{}, false
}

// TestDoorsAreOpenedByTheirOwn: who may make a configuration of another kind or name,
// or one that leads nowhere, opens nothing of what is registered.
func TestDoorsAreOpenedByTheirOwn(t *testing.T) {
	validate, mutate := "/ValidatingWebhookConfiguration/portcullis", "/MutatingWebhookConfiguration/portcullis"
	for name, test := range map[string]struct {
		kind, name string
		astray     bool
		want       []string
	}{
		"validating":         {kind: "ValidatingWebhookConfiguration", name: "portcullis", want: []string{validate, mutate}},
		"mutating":           {kind: "MutatingWebhookConfiguration", name: "portcullis", want: []string{mutate}},
		"direct":             {kind: "ValidatingWebhookConfiguration", name: "portcullis-direct"},
		"that leads nowhere": {kind: "ValidatingWebhookConfiguration", name: "portcullis", astray: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := broken(test.kind, test.name)
			if test.astray {
				object.Object["webhooks"] = []any{}
			}
			clock := clocktesting.NewFakeClock(now())
			g := NewBreakGlass(Options{Configurations: configurations(), Objects: newCluster(object), Clock: clock})
			for _, target := range g.targets {
				if target.name == test.name && strings.HasPrefix(strings.ToLower(test.kind), strings.TrimSuffix(target.resource, "s")) {
					target.changed(object)
				}
				if _, err := target.look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, door := range []string{validate, mutate} {
				if _, open := g.Open(door); open {
					got = append(got, door)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("opened %q, want %q", got, test.want)
			}
		})
	}
}

// broken is a configuration whose glass is broken for an hour, as a patch of an
// administrator leaves it.
func broken(kind, name string) *unstructured.Unstructured {
	return configuration(kind, name, now(), map[string]string{UntilAnnotation: stamp(now().Add(time.Hour)), ReasonAnnotation: "INC-1"})
}

// restored fails the test unless the configuration is put back, with last in its
// annotation.
func restored(t *testing.T, c *cluster, gvr schema.GroupVersionResource, name, last string) {
	t.Helper()
	eventually(t, gvr.Resource+" "+name+" is put back", func() bool { return !lax(c.get(t, gvr, name)) })
	object := c.get(t, gvr, name)
	got := object.GetAnnotations()
	if _, ok := got[UntilAnnotation]; ok {
		t.Errorf("the annotations are %v, want none of when", got)
	}
	if _, ok := got[ReasonAnnotation]; ok {
		t.Errorf("the annotations are %v, want none of why", got)
	}
	if !strings.Contains(got[LastAnnotation], last) {
		t.Errorf("the last is %q, want %q", got[LastAnnotation], last)
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil || len(webhooks) != 2 {
		t.Errorf("got webhooks %v, error %v, want the two", webhooks, err)
	}
}

// TestWindow: two replicas open at once, and close at the end; one of them puts the
// configuration back.
func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		gvr        schema.GroupVersionResource
		kind, name string
	}{
		{validating(), "ValidatingWebhookConfiguration", "portcullis"},
		{mutating(), "MutatingWebhookConfiguration", "portcullis"},
		{validating(), "ValidatingWebhookConfiguration", "portcullis-direct"},
	} {
		t.Run(tc.gvr.Resource+"/"+tc.name, func(t *testing.T) {
			c := newCluster(broken(tc.kind, tc.name), configuration(tc.kind, "another", now(), map[string]string{UntilAnnotation: "never"}))
			clock := clocktesting.NewFakeClock(now())
			replicas := []*BreakGlass{run(t, c, clock), run(t, c, clock)}
			for _, g := range replicas {
				openedIn(t, c, g)
				if window, _ := opened(g); window != (Window{Until: now().Add(time.Hour), Reason: "INC-1"}) {
					t.Errorf("got %s", shown(&window))
				}
			}
			waiting(t, clock, replicas...)
			clock.SetTime(now().Add(time.Hour - time.Nanosecond))
			waiting(t, clock, replicas...)
			for _, g := range replicas {
				if !isOpen(g) {
					t.Error("closed before its end")
				}
			}
			clock.SetTime(now().Add(time.Hour))
			for _, g := range replicas {
				if isOpen(g) {
					t.Error("open after its end")
				}
			}
			restored(t, c, tc.gvr, tc.name, "2026-03-01T13:00:00Z ended: it was until 2026-03-01T13:00:00Z: INC-1")
			if got := c.patches.Load(); got != 1 {
				t.Errorf("got %d patches, want 1", got)
			}
			if got := c.get(t, tc.gvr, "another"); got.GetResourceVersion() != "1" {
				t.Errorf("another configuration was written")
			}
		})
	}
}

// TestLongerWindow: who needs longer says it again, and the latest end counts.
func TestLongerWindow(t *testing.T) {
	c := newCluster(broken("ValidatingWebhookConfiguration", "portcullis"), broken("MutatingWebhookConfiguration", "portcullis"))
	clock := clocktesting.NewFakeClock(now())
	g := run(t, c, clock)
	openedIn(t, c, g)
	waiting(t, clock, g)
	later := now().Add(50 * time.Minute)
	clock.SetTime(later)
	c.write(t, validating(), configuration("ValidatingWebhookConfiguration", "portcullis", later, map[string]string{UntilAnnotation: stamp(later.Add(MaxWindow)), ReasonAnnotation: "INC-2"}))
	eventually(t, "the second window is open", func() bool {
		window, _ := opened(g)
		return window.Reason == "INC-2"
	})
	waiting(t, clock, g)
	clock.SetTime(now().Add(time.Hour))
	restored(t, c, mutating(), "portcullis", "INC-1")
	if !isOpen(g) {
		t.Error("the second window ended with the first")
	}
}

// TestRefusedWindow: what is too long or cannot be read opens nothing, and does not
// stay.
func TestRefusedWindow(t *testing.T) {
	for until, why := range map[string]string{
		stamp(now().Add(24 * time.Hour)): "refused: " + UntilAnnotation + " 2026-03-02T12:00:00Z is more than 4h0m0s after it was written",
		"tomorrow":                       "refused: " + UntilAnnotation + ` "tomorrow" is no time as in RFC 3339`,
	} {
		c := newCluster(configuration("ValidatingWebhookConfiguration", "portcullis", now(), map[string]string{UntilAnnotation: until}))
		g := run(t, c, clocktesting.NewFakeClock(now()))
		restored(t, c, validating(), "portcullis", why)
		if isOpen(g) {
			t.Errorf("%s is open", until)
		}
	}
}

// TestEarlyEnd: without the annotations requests are judged again, and nothing is let
// through when no server answers.
func TestEarlyEnd(t *testing.T) {
	c := newCluster(broken("ValidatingWebhookConfiguration", "portcullis"))
	clock := clocktesting.NewFakeClock(now())
	g := run(t, c, clock)
	openedIn(t, c, g)
	refusal := errors.New("connection refused")
	c.refuse.Store(&refusal)
	c.write(t, validating(), configuration("ValidatingWebhookConfiguration", "portcullis", now(), nil))
	eventually(t, "it is closed", func() bool { return !isOpen(g) })
	eventually(t, "all wait", clock.HasWaiters)
	c.refuse.Store(nil)
	eventually(t, "it was tried again", func() bool {
		clock.Step(lastRetry)
		return c.patches.Load() > 0
	})
	restored(t, c, validating(), "portcullis", "ended: the annotations were removed: INC-1")
}

// TestNoWindowIsLeftAlone: a failurePolicy that nobody wrote for an emergency stays.
func TestNoWindowIsLeftAlone(t *testing.T) {
	c := newCluster(configuration("ValidatingWebhookConfiguration", "portcullis", now(), nil), broken("MutatingWebhookConfiguration", "portcullis"))
	clock := clocktesting.NewFakeClock(now())
	g := run(t, c, clock)
	openedIn(t, c, g)
	waiting(t, clock, g)
	clock.SetTime(now().Add(time.Hour))
	restored(t, c, mutating(), "portcullis", "INC-1")
	if got := c.get(t, validating(), "portcullis"); got.GetResourceVersion() != "1" {
		t.Errorf("it was written: %v", got)
	}
}

// TestDeletedConfiguration opens nothing.
func TestDeletedConfiguration(t *testing.T) {
	c := newCluster(broken("ValidatingWebhookConfiguration", "portcullis"))
	g := run(t, c, clocktesting.NewFakeClock(now()))
	openedIn(t, c, g)
	if err := c.Resource(validating()).Delete(t.Context(), "portcullis", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is closed", func() bool { return !isOpen(g) })
}

// TestUnreadableCluster: what cannot be read opens nothing, and a replica that has lost
// sight of the cluster closes at the end that it knows.
func TestUnreadableCluster(t *testing.T) {
	c := newCluster(broken("ValidatingWebhookConfiguration", "portcullis"))
	unreadable := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	}
	clock := clocktesting.NewFakeClock(now())
	sighted := run(t, c, clock)
	openedIn(t, c, sighted)

	blind := newCluster(broken("ValidatingWebhookConfiguration", "portcullis"))
	asked := make(chan struct{}, 100)
	blind.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked <- struct{}{}
		return unreadable(action)
	})
	never := run(t, blind, clock)
	<-asked
	if isOpen(never) {
		t.Error("what cannot be read is open")
	}

	refusal := errors.New("connection refused")
	c.refuse.Store(&refusal)
	clock.SetTime(now().Add(time.Hour))
	if isOpen(sighted) {
		t.Error("open after its end")
	}
	c.refuse.Store(nil)
	eventually(t, "it was tried again", func() bool {
		clock.Step(lastRetry)
		return c.patches.Load() > 0
	})
	restored(t, c, validating(), "portcullis", "INC-1")
}

// TestClockSetBack: a window does not become longer by that.
func TestClockSetBack(t *testing.T) {
	c := newCluster(broken("ValidatingWebhookConfiguration", "portcullis"))
	clock := clocktesting.NewFakeClock(now())
	g := run(t, c, clock)
	openedIn(t, c, g)
	clock.SetTime(now().Add(-24 * time.Hour))
	if isOpen(g) {
		t.Error("open a day before it was written")
	}
}
