// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
)

// gate is opened and closed by the test.
type gate struct {
	mu       sync.Mutex
	open     bool
	text     string
	asked    []catalog.Write
	times    int // that it was asked
	notify   []func()
	watching int
}

func (g *gate) Passed(writes ...catalog.Write) (passed bool, waiting string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = writes
	g.times++
	if g.open {
		return true, ""
	}
	return false, g.text
}

func (g *gate) Watch(notify func()) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notify = append(g.notify, notify)
	g.watching++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.watching--
	}
}

func (g *gate) set(open bool, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.text = open, text
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.times
}

func (g *gate) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, notify := range g.notify {
		notify()
	}
}

func (g *gate) watched() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watching
}

func written(since, bound string) catalog.Report {
	report := reported("p", 1, 1)
	report.Since = since
	if bound != "" {
		report.BoundSince = catalog.Write{Kind: "Binding", ResourceVersion: bound}
	}
	return report
}

func of(report catalog.Report, generation int64) catalog.Report {
	report.Generation = generation
	return report
}

// ready is the condition Ready of a policy, as one text.
func ready(api *store, name string) string {
	api.mu.Lock()
	defer api.mu.Unlock()
	condition := meta.FindStatusCondition(api.byName[name].Status.Conditions, Ready)
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("%s %s@%d %s", condition.Status, condition.Reason, condition.ObservedGeneration, condition.Message)
}

// TestGate: the condition Ready never says more than the gate lets pass, and is not
// written more often than users need.
func TestGate(t *testing.T) {
	const (
		inForce = "True InForce@%d it judges the requests that it matches"
		onOne   = "in force on 1 of 2 replicas; waiting for b"
		onNone  = "in force on 0 of 2 replicas; waiting for a, b"
		unknown = "Unknown Propagating@%d " + onOne
	)
	broken := of(written("16", "9"), 4)
	broken.Faults = append(broken.Faults, fault("bad"))
	steps := []struct {
		name   string
		report catalog.Report
		after  time.Duration
		open   bool
		text   string
		want   string
		writes int
		asked  []string
	}{
		{name: "new", report: written("5", ""), text: onOne, want: "", asked: []string{"5"}},
		{name: "a moment later", report: written("5", ""), after: patience / 2, text: onNone, want: ""},
		{name: "nobody can tell", report: written("5", ""), after: patience, want: ""},
		{name: "long on its way", report: written("5", ""), text: onOne, want: fmt.Sprintf(unknown, 1), writes: 1},
		{name: "still", report: written("5", ""), after: patience, text: onOne, want: fmt.Sprintf(unknown, 1)},
		{name: "nobody can tell any more", report: written("5", ""), after: patience, want: fmt.Sprintf(unknown, 1)},
		{name: "another text", report: written("5", ""), text: onNone, want: "Unknown Propagating@1 " + onNone, writes: 1},
		{name: "there", report: written("5", ""), open: true, want: fmt.Sprintf(inForce, 1), writes: 1},
		{name: "a binding", report: written("5", "9"), text: onOne, want: fmt.Sprintf(unknown, 1), writes: 1, asked: []string{"5", "9"}},
		{name: "another server has it", report: written("5", "9"), text: onNone, want: fmt.Sprintf(unknown, 1)},
		{name: "the binding is there", report: written("5", "9"), open: true, want: fmt.Sprintf(inForce, 1), writes: 1},
		{name: "a spec", report: of(written("12", "9"), 2), text: onOne, want: fmt.Sprintf(inForce, 1)},
		{name: "it is there soon", report: of(written("12", "9"), 2), after: patience / 2, open: true, want: fmt.Sprintf(inForce, 2), writes: 1},
		{name: "another one", report: of(written("14", "9"), 3), text: onOne, want: fmt.Sprintf(inForce, 2)},
		{name: "it takes long", report: of(written("14", "9"), 3), after: patience, text: onOne, want: fmt.Sprintf(unknown, 3), writes: 1},
		{
			name: "one that does not compile", report: broken, text: onOne,
			want:   "False NotCompiled@4 it does not compile: each request that it matches and that needs an expression at fault is handled by its failurePolicy Fail",
			writes: 1,
		},
	}
	api, told, gate := &store{}, &reports{}, &gate{}
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	c := New(kindsOf(api), told, gate)
	c.propagation.clock = clock
	api.put(stored("p", 1))
	for _, step := range steps {
		p, err := api.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.Generation = step.report.Generation
		api.put(p)
		clock.Step(step.after)
		gate.set(step.open, step.text)
		told.set("p", step.report)
		_, before := api.count()
		for range 2 { // the second time, there is nothing to do
			if err := c.sync(t.Context(), idOf("p")); err != nil {
				t.Fatal(err)
			}
		}
		if got := ready(api, "p"); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		if _, after := api.count(); after-before != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, after-before, step.writes)
		}
		var asked []string
		for _, write := range gate.asked {
			asked = append(asked, write.ResourceVersion)
		}
		if step.asked != nil && !slices.Equal(asked, step.asked) {
			t.Errorf("%s: asked for %v, want %v", step.name, asked, step.asked)
		}
	}
	if len(c.propagation.all()) != 0 {
		t.Errorf("waiting are %v", c.propagation.all())
	}
	told.mu.Lock()
	delete(told.byName, "p")
	told.mu.Unlock()
	c.propagation.wait(idOf("p"))
	if err := c.sync(t.Context(), idOf("p")); err != nil || len(c.propagation.all()) != 0 {
		t.Errorf("%v, waiting are %v after the deletion", err, c.propagation.all())
	}
}

// TestRunFollowsTheGate: what waits is written when the gate tells of something new,
// and when it does not, as with the end of a server.
func TestRunFollowsTheGate(t *testing.T) {
	api, told, gate := &store{}, &reports{}, &gate{text: "in force on 1 of 2 replicas; waiting for b"}
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	c := New(kindsOf(api), told, gate)
	c.propagation.clock = clock
	names := []string{"p", "q", "r"}
	for _, name := range names {
		api.put(stored(name, 1))
		told.set(name, reported(name, 1, 1))
	}
	all := func(want string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(names, func(name string) bool { return ready(api, name) != want })
		}
	}
	// Each term of a leader is one run.
	for term := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Run(ctx)
		}()
		eventually(t, "nobody waits", func() bool {
			looked := 0
			for _, entry := range c.propagation.all() {
				if entry.looked {
					looked++
				}
			}
			return gate.watched() == 1 && clock.HasWaiters() && looked == len(names)
		})
		if term == 0 {
			gate.set(true, "")
			gate.tell()
			eventually(t, "the gate is open and nobody passes", all("True InForce@1 it judges the requests that it matches"))
			gate.set(false, "in force on 1 of 2 replicas; waiting for b")
		} else {
			eventually(t, "a gate that has closed is passed", all("Unknown Propagating@1 in force on 1 of 2 replicas; waiting for b"))
			gate.set(true, "")
			clock.Step(patience)
			eventually(t, "a server has ended and nobody passes", all("True InForce@1 it judges the requests that it matches"))
		}
		cancel()
		<-ended
		if gate.watched() != 0 {
			t.Fatal("the gate is watched after the end")
		}
	}
	if _, writes := api.count(); writes != 3*len(names) {
		t.Errorf("%d writes, want %d", writes, 3*len(names))
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if len(told.notify) != 2 {
		t.Errorf("%d watches of the reports, want one a term", len(told.notify))
	}
}
