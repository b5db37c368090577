// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// observed are the durations that were observed, in seconds.
type observed []float64

func (o *observed) Observe(value float64) { *o = append(*o, value) }

// propagationTest has a clock that stands still, policies that are in force as the
// test says, and what was observed.
type propagationTest struct {
	*propagation
	stored   storedPolicies
	complete bool
	clock    *clocktesting.FakePassiveClock
	observed *observed
}

func newPropagationTest() *propagationTest {
	p := &propagationTest{stored: storedPolicies{}, complete: true, clock: clocktesting.NewFakePassiveClock(time.Unix(1_900_000_000, 0)), observed: &observed{}}
	p.propagation = newPropagation(Sources{Report: p.stored.report, Complete: func() bool { return p.complete }, Clock: p.clock}, p.observed)
	return p
}

func (p *propagationTest) pass(d time.Duration) { p.clock.SetTime(p.clock.Now().Add(d)) }

// enforce puts the policy p in force; without a generation it deletes it.
func (p *propagationTest) enforce(uid types.UID, generation int64) {
	p.stored[policyID("p")] = catalog.Report{UID: uid, Generation: generation}
	if generation == 0 {
		delete(p.stored, policyID("p"))
	}
	p.changed(policyID("p"))
}

func (p *propagationTest) write(uid types.UID, generation int64) {
	p.acknowledged(policyKindName, writtenPolicy(uid, generation), false)
}

func (p *propagationTest) delete(uid types.UID, generation int64) {
	p.acknowledged(policyKindName, writtenPolicy(uid, generation), true)
}

func writtenPolicy(uid types.UID, generation int64) *policyapi.ValidatingAdmissionPolicy {
	return &policyapi.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: uid, Generation: generation}}
}

func TestPropagation(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name string
		run  func(*propagationTest)
		want string
		left int
	}{
		{"a creation", func(p *propagationTest) {
			p.write("1", 1)
			p.pass(second)
			p.changed(policyID("q"))
			p.pass(second)
			p.enforce("1", 1)
			p.pass(second)
			p.changed(policyID("p"))
		}, "[2]", 0},
		{"not yet", func(p *propagationTest) { p.write("1", 1); p.pass(second); p.changed(policyID("p")) }, "[]", 1},
		{"in force before it is noted", func(p *propagationTest) { p.enforce("1", 1); p.write("1", 1) }, "[0]", 0},
		{"an update", func(p *propagationTest) {
			p.enforce("1", 1)
			p.write("1", 2)
			p.pass(second)
			p.enforce("1", 2)
		}, "[1]", 0},
		{"two updates at once", func(p *propagationTest) {
			p.enforce("1", 1)
			p.write("1", 2)
			p.pass(second)
			p.write("1", 3)
			p.pass(second)
			p.enforce("1", 3)
		}, "[2 1]", 0},
		{"two updates, one in force", func(p *propagationTest) {
			p.enforce("1", 1)
			p.write("1", 2)
			p.write("1", 3)
			p.pass(second)
			p.enforce("1", 2)
		}, "[1]", 1},
		{"a deletion", func(p *propagationTest) {
			p.enforce("1", 1)
			p.delete("1", 1)
			p.pass(second)
			p.changed(policyID("p"))
			p.enforce("1", 0)
		}, "[1]", 0},
		{"deleted and created anew at once", func(p *propagationTest) {
			p.enforce("1", 1)
			p.delete("1", 1)
			p.pass(second)
			p.write("2", 1)
			p.pass(second)
			p.enforce("2", 1)
		}, "[1]", 0}, // when the old one went is not known
		{"deleted, then created anew", func(p *propagationTest) {
			p.enforce("1", 1)
			p.delete("1", 1)
			p.write("2", 1)
			p.pass(second)
			p.enforce("1", 0)
			p.pass(second)
			p.enforce("2", 1)
		}, "[1 2]", 0},
		{"created, and deleted before it is in force", func(p *propagationTest) {
			p.write("1", 1)
			p.pass(second)
			p.delete("1", 1)
		}, "[1 0]", 0},
		{"nothing is in force", func(p *propagationTest) {
			p.complete = false
			p.delete("1", 1)
			p.pass(second)
			p.changed(policyID("p"))
		}, "[]", 1},
		{"a damaged object", func(p *propagationTest) { p.delete("", 0) }, "[]", 0},
		{"a clock that was set back", func(p *propagationTest) { p.write("1", 1); p.pass(-second); p.enforce("1", 1) }, "[0]", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPropagationTest()
			test.run(p)
			if got := fmt.Sprint([]float64(*p.observed)); got != test.want {
				t.Errorf("observed %s, want %s", got, test.want)
			}
			if p.count != test.left {
				t.Errorf("%d writes wait, want %d", p.count, test.left)
			}
		})
	}
}

// TestPropagationAsksForWhatHasChangedAlone: many writes may wait.
func TestPropagationAsksForWhatHasChangedAlone(t *testing.T) {
	p := newPropagationTest()
	p.complete = false
	p.write("1", 1)
	p.complete = true
	p.stored[policyID("p")] = catalog.Report{UID: "1", Generation: 1}
	p.changed(policyID("q"))
	if p.count != 1 {
		t.Error("a change of another policy settles the write")
	}
	p.changed(policyID("p"))
	if p.count != 0 {
		t.Error("the change does not settle the write")
	}
}

func TestPropagationIsBounded(t *testing.T) {
	p := newPropagationTest()
	for i := range int64(maxWaiting + 1) {
		p.write("1", i+1)
	}
	if got := len(p.waiting[policyID("p")]); got != 1 || p.count != 1 {
		t.Errorf("%d writes wait, of which %d are counted: want the last one alone", got, p.count)
	}
}

// writableStorage is what etcd would hold.
type writableStorage struct {
	storage.Interface
	existing *policyapi.ValidatingAdmissionPolicy
	err      error
}

func (s *writableStorage) Create(_ context.Context, _ string, obj, out runtime.Object, _ uint64) error {
	return s.answer(obj, out)
}

func (s *writableStorage) Delete(_ context.Context, _ string, out runtime.Object, _ *storage.Preconditions,
	_ storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	return s.answer(s.existing, out)
}

func (s *writableStorage) GuaranteedUpdate(_ context.Context, _ string, out runtime.Object, _ bool, _ *storage.Preconditions,
	update storage.UpdateFunc, _ runtime.Object,
) error {
	updated, _, err := update(s.existing, storage.ResponseMeta{})
	if err != nil {
		return err
	}
	return s.answer(updated, out)
}

func (s *writableStorage) answer(obj, out runtime.Object) error {
	if s.err != nil {
		return s.err
	}
	obj.(*policyapi.ValidatingAdmissionPolicy).DeepCopyInto(out.(*policyapi.ValidatingAdmissionPolicy))
	return nil
}

func TestWatchedStorageNotesWritesOfPolicies(t *testing.T) {
	failure := errors.New("refused")
	to := func(generation int64) storage.UpdateFunc {
		return func(existing runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			updated := existing.(*policyapi.ValidatingAdmissionPolicy) // in place, as callers may
			updated.Generation = generation
			return updated, nil, nil
		}
	}
	out := func() runtime.Object { return &policyapi.ValidatingAdmissionPolicy{} }
	tests := []struct {
		name  string
		err   error
		write func(storage.Interface) error
		want  int
	}{
		{"create", nil, func(s storage.Interface) error { return s.Create(t.Context(), "", writtenPolicy("1", 1), out(), 0) }, 1},
		{"create, refused", failure, func(s storage.Interface) error { return s.Create(t.Context(), "", writtenPolicy("1", 1), out(), 0) }, 0},
		{"delete", nil, func(s storage.Interface) error {
			return s.Delete(t.Context(), "", out(), nil, nil, nil, storage.DeleteOptions{})
		}, 1},
		{"delete, refused", failure, func(s storage.Interface) error {
			return s.Delete(t.Context(), "", out(), nil, nil, nil, storage.DeleteOptions{})
		}, 0},
		{"a new generation", nil, func(s storage.Interface) error {
			return s.GuaranteedUpdate(t.Context(), "", out(), false, nil, to(2), nil)
		}, 1},
		{"a new generation, refused", failure, func(s storage.Interface) error {
			return s.GuaranteedUpdate(t.Context(), "", out(), false, nil, to(2), nil)
		}, 0},
		{"the same generation", nil, func(s storage.Interface) error {
			return s.GuaranteedUpdate(t.Context(), "", out(), false, nil, to(1), nil)
		}, 0},
	}
	for _, test := range tests {
		p := newPropagationTest()
		p.complete = false
		err := test.write(&watchedKind{
			Interface: &writableStorage{existing: writtenPolicy("1", 1), err: test.err}, kind: policyKindName, propagation: p.propagation,
		})
		if !errors.Is(err, test.err) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.err)
		}
		if got := len(p.waiting[policyID("p")]); got != test.want {
			t.Errorf("%s: %d writes are noted, want %d", test.name, got, test.want)
		}
	}
}
