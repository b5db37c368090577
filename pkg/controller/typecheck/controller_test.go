// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/message"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

const (
	fitting = "True NoWarnings every expression fits apps/v1, Kind=Deployment"
	broken  = "False TypeWarnings spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: bad"
	unlucky = "Unknown CheckFailed checking types: no luck; the policy judges all the same"
)

func newChecks() *checks {
	return &checks{found: map[string]*typing.Result{
		"fits": fits(), "wrong": wrong("spec.validations[0].expression", "ERROR: bad"), "wild": {},
	}}
}

// TestWrites follows one policy from generation to generation.
func TestWrites(t *testing.T) {
	w, c := newWorld(), newChecks()
	w.put("p", 1, "wrong")
	run(t, w, c)
	p := w.await(t, "p", broken)
	if got := p.Status.TypeChecking.ExpressionWarnings; len(got) != 1 || got[0].FieldRef != "spec.validations[0].expression" {
		t.Errorf("status.typeChecking has %v", got)
	}
	w.change("p", func(p *v1alpha1.ValidatingAdmissionPolicy) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "InForce"})
	})
	w.put("p", 2, "fits")
	p = w.await(t, "p", fitting)
	if p.Status.TypeChecking == nil || len(p.Status.TypeChecking.ExpressionWarnings) != 0 {
		t.Errorf("status.typeChecking is %v, want one without warnings", p.Status.TypeChecking)
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, "Ready") {
		t.Errorf("the conditions of others are lost: %v", p.Status.Conditions)
	}
	w.put("p", 3, "error")
	if p = w.await(t, "p", unlucky); p.Status.TypeChecking != nil {
		t.Errorf("status.typeChecking is %v after a check that failed", p.Status.TypeChecking)
	}
	w.put("p", 4, "wild")
	w.await(t, "p", "True NothingToCheck no rule names a type that is known: wildcards, subresources and what nobody serves are not checked")
	if _, writes := w.count(); writes != 4 || c.count() != 4 {
		t.Errorf("%d checks and %d writes of 4 generations", c.count(), writes)
	}
}

// TestOnce: what is not new is neither checked nor written again.
func TestOnce(t *testing.T) {
	w, c := newWorld(), newChecks()
	w.put("p", 1, "wrong")
	run(t, w, c)
	w.await(t, "p", broken)
	for range 3 { // as when bindings change
		w.tell("p")
	}
	w.put("q", 1, "fits") // the queue has come this far
	w.await(t, "q", fitting)
	if _, writes := w.count(); writes != 2 || c.count() != 2 {
		t.Errorf("%d checks and %d writes of 2 policies", c.count(), writes)
	}
}

// TestRunAgain: a controller that has stopped, as when another server leads, goes on
// where it was. What has changed since it checks, and what is gone it forgets.
func TestRunAgain(t *testing.T) {
	w, c := newWorld(), newChecks()
	controller := New(w, c.check)
	term := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			controller.Run(ctx, w)
		}()
		return func() {
			cancel()
			<-ended
		}
	}
	w.put("p", 1, "wrong")
	w.put("q", 1, "wrong")
	w.put("r", 1, "wrong")
	end := term()
	for _, name := range []string{"p", "q", "r"} {
		w.await(t, name, broken)
	}
	eventually(t, func() string { return "not all is remembered" }, func() bool { return controller.remembers("p", "q", "r") })
	end()
	w.put("q", 2, "fits")
	w.mu.Lock()
	delete(w.byName, "r")
	w.mu.Unlock()
	end = term()
	defer end()
	w.await(t, "q", fitting)
	if _, writes := w.count(); writes != 4 || c.count() != 4 {
		t.Errorf("%d checks and %d writes, want 4", c.count(), writes)
	}
	if controller.remembers("r") {
		t.Error("a policy is remembered that is gone")
	}
}

func (c *Controller) remembers(names ...string) bool {
	c.written.mu.Lock()
	defer c.written.mu.Unlock()
	for _, name := range names {
		if c.written.byName[name].status == 0 {
			return false
		}
	}
	return true
}

// TestOtherWriters: a conflict leads to another write, of what was found before.
func TestOtherWriters(t *testing.T) {
	w, c := newWorld(), newChecks()
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "InForce"}
	c.during = func() {
		w.change("p", func(p *v1alpha1.ValidatingAdmissionPolicy) { meta.SetStatusCondition(&p.Status.Conditions, ready) })
	}
	w.put("p", 1, "wrong")
	run(t, w, c)
	p := w.await(t, "p", broken)
	if tried, writes := w.count(); tried != 2 || writes != 1 || c.count() != 1 {
		t.Errorf("%d checks, %d attempts and %d writes, want 1, 2 and 1", c.count(), tried, writes)
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, "Ready") {
		t.Errorf("the condition of the other writer is lost: %v", p.Status.Conditions)
	}
}

// TestTypesChanged: all policies are checked again, and only new findings written.
func TestTypesChanged(t *testing.T) {
	w, c := newWorld(), newChecks()
	w.put("p", 1, "fits")
	w.put("q", 1, "wrong")
	controller := run(t, w, c)
	w.await(t, "p", fitting)
	w.await(t, "q", broken)
	c.set("fits", wrong("spec.validations[0].expression", "ERROR: bad"))
	controller.TypesChanged()
	w.await(t, "p", broken)
	eventually(t, func() string { return fmt.Sprintf("%d checks, want 4", c.count()) }, func() bool { return c.count() == 4 })
	if _, writes := w.count(); writes != 3 {
		t.Errorf("%d writes, want 3", writes)
	}
}

// TestTypesChangeDuringACheck: what was found before the change does not stay.
func TestTypesChangeDuringACheck(t *testing.T) {
	w, c := newWorld(), newChecks()
	var controller *Controller
	started := make(chan struct{})
	var once sync.Once
	c.during = func() {
		once.Do(func() {
			<-started
			c.set("fits", wrong("spec.validations[0].expression", "ERROR: bad"))
			controller.TypesChanged()
			eventually(t, func() string { return "the change is not noticed" }, func() bool {
				controller.written.mu.Lock()
				defer controller.written.mu.Unlock()
				return controller.written.epoch == 1
			})
		})
	}
	w.put("p", 1, "fits")
	controller = run(t, w, c)
	close(started)
	w.await(t, "p", broken)
}

func TestRefused(t *testing.T) {
	w, c := newWorld(), newChecks()
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: reconcile.ValidatingAdmissionPolicy}, "p", nil)
	w.fail = func(_ int, written *v1alpha1.ValidatingAdmissionPolicy) error {
		if written.Status.TypeChecking != nil || written.Name == "q" {
			return invalid
		}
		return nil
	}
	w.put("p", 1, "wrong")
	run(t, w, c)
	w.await(t, "p", "Unknown NoRoom the warnings cannot be stored: "+invalid.Error())
	w.put("q", 1, "wrong") // nothing is taken
	w.put("r", 1, "error")
	w.await(t, "r", unlucky)
	tried := func() int { n, _ := w.count(); return n }
	eventually(t, func() string { return fmt.Sprintf("%d attempts, want 5", tried()) }, func() bool { return tried() == 5 })
}

func TestOutage(t *testing.T) {
	w, c := newWorld(), newChecks()
	w.fail = func(attempt int, _ *v1alpha1.ValidatingAdmissionPolicy) error {
		if attempt < 4 {
			return errors.New("no etcd")
		}
		return nil
	}
	w.put("p", 1, "fits")
	run(t, w, c)
	w.await(t, "p", fitting)
}

func TestDamagedAndDeleted(t *testing.T) {
	w, c := newWorld(), newChecks()
	w.put("d", 1, "fits")
	w.damaged["d"] = errors.New("not JSON")
	run(t, w, c)
	w.tell("gone")
	w.put("p", 1, "fits")
	w.await(t, "p", fitting)
	if got := said(w.get("d")); got != "" {
		t.Errorf("a damaged policy says %q", got)
	}
}

// TestDue heals a status that others have written, and tries again what has
// failed.
func TestDue(t *testing.T) {
	w, c := newWorld(), newChecks()
	w.put("p", 1, "wrong")
	w.put("q", 1, "fits")
	w.put("r", 1, "error")
	controller := run(t, w, c)
	w.await(t, "p", broken)
	w.await(t, "q", fitting)
	w.await(t, "r", unlucky)
	c.set("error", fits())
	settled := func() bool {
		controller.written.mu.Lock()
		defer controller.written.mu.Unlock()
		return controller.written.byName["p"].status != 0 && controller.written.byName["q"].status != 0 && controller.written.byName["r"].failed
	}
	eventually(t, func() string { return "the policies are not remembered" }, settled)
	if got := w.due(controller); !slices.Equal(got, []string{"r"}) {
		t.Errorf("%q are looked at, want r", got)
	}
	if err := controller.sync(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if got := said(w.get("r")); got != fitting {
		t.Errorf("the second check of r: %s", got)
	}
	w.change("p", func(p *v1alpha1.ValidatingAdmissionPolicy) { p.Status.TypeChecking.ExpressionWarnings = nil })
	if got := w.due(controller); !slices.Equal(got, []string{"p"}) {
		t.Errorf("%q are looked at, want p", got)
	}
	if err := controller.sync(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if got := w.get("p").Status.TypeChecking.ExpressionWarnings; len(got) != 1 {
		t.Errorf("the warnings are %v", got)
	}
}

func TestMessages(t *testing.T) {
	many := &typing.Result{Types: []schema.GroupVersionKind{deploymentKind()}, Unresolved: true}
	for i := range 300 {
		found := wrong(fmt.Sprintf("spec.validations[%d].expression", i), "ERROR: "+strings.Repeat("x", 100))
		many.Findings = append(many.Findings, found.Findings...)
	}
	condition := checked(many).condition
	if len(condition.Message) > message.MaxBytes || len(condition.Message) < message.MaxBytes-400 {
		t.Errorf("the message has %d bytes", len(condition.Message))
	}
	if got, want := condition.Message[:40], "the rules name more than 10000 resources"; got != want {
		t.Errorf("it begins with %q, want %q", got, want)
	}
	shown := strings.Count(condition.Message, "ERROR")
	if want := fmt.Sprintf("; and %d more", 300-shown); !strings.HasSuffix(condition.Message, want) {
		t.Errorf("it ends with %q, want %q", condition.Message[len(condition.Message)-40:], want)
	}
	if got, want := checked(&typing.Result{Types: fits().Types, Unresolved: true}).condition, "Unknown Incomplete"; string(got.Status)+" "+got.Reason != want {
		t.Errorf("a check that left out types: %v, want %s", got, want)
	}
	kinds := make([]schema.GroupVersionKind, 12)
	if got, want := named(kinds), "; and 2 more types"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want the end %q", got, want)
	}
	if got := failed(errors.New(strings.Repeat("ü", message.MaxBytes))).condition.Message; len(got) > message.MaxBytes {
		t.Errorf("an error has %d bytes", len(got))
	}
}
