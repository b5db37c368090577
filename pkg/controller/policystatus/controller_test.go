// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/message"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

// reports are told by the test.
type reports struct {
	mu     sync.Mutex
	byName map[string]catalog.Report
	notify []func(policy.ID)
}

func (r *reports) Report(id policy.ID) (catalog.Report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, ok := r.byName[id.Name]
	return report, ok
}

func (r *reports) Watch(notify func(policy.ID)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify = append(r.notify, notify)
	for name := range r.byName {
		notify(policy.ID{Kind: reconcile.ValidatingAdmissionPolicy, Name: name})
	}
	last := len(r.notify) - 1
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notify[last] = func(policy.ID) {}
	}
}

func (r *reports) set(name string, report catalog.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]catalog.Report{}
	}
	r.byName[name] = report
	for _, notify := range r.notify {
		notify(policy.ID{Kind: reconcile.ValidatingAdmissionPolicy, Name: name})
		notify(policy.ID{Kind: "ValidatingAdmissionPolicyBinding", Name: name}) // not ours
	}
}

// store is an API that counts writes and fails as it is told.
type store struct {
	mu     sync.Mutex
	byName map[string]*v1alpha1.ValidatingAdmissionPolicy
	writes int
	fail   func(attempt int) error
	tried  int
}

func (s *store) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.byName[name]; ok {
		return p.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (s *store) List(context.Context, metav1.ListOptions) (*v1alpha1.ValidatingAdmissionPolicyList, error) {
	return nil, errors.New("not now")
}

func (s *store) UpdateStatus(_ context.Context, p *v1alpha1.ValidatingAdmissionPolicy, _ metav1.UpdateOptions) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if s.fail != nil {
		if err := s.fail(s.tried); err != nil {
			return nil, err
		}
	}
	s.writes++
	s.byName[p.Name] = p.DeepCopy()
	return p, nil
}

func (s *store) put(p *v1alpha1.ValidatingAdmissionPolicy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*v1alpha1.ValidatingAdmissionPolicy{}
	}
	s.byName[p.Name] = p
}

func (s *store) count() (tried, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried, s.writes
}

func kindsOf(api *store) []Kind { return []Kind{ValidatingAdmissionPolicies(api)} }

func idOf(name string) policy.ID {
	return policy.ID{Kind: reconcile.ValidatingAdmissionPolicy, Name: name}
}

func said(report catalog.Report, failurePolicy string) []metav1.Condition {
	words := celWords()
	return words.conditions(report, failurePolicy)
}

func stored(name string, generation int64) *v1alpha1.ValidatingAdmissionPolicy {
	p := &v1alpha1.ValidatingAdmissionPolicy{}
	p.Name, p.UID, p.Generation = name, types.UID("uid-of-"+name), generation
	return p
}

func reported(name string, generation int64, bindings int, faults ...*field.Error) catalog.Report {
	return catalog.Report{UID: types.UID("uid-of-" + name), Generation: generation, Bindings: bindings, Faults: faults}
}

func fault(detail string) *field.Error {
	return field.Invalid(field.NewPath("spec", "validations").Index(0).Child("expression"), "object.", detail)
}

func TestConditions(t *testing.T) {
	ignored := admissionregistrationv1.Ignore
	long := strings.Repeat("x", 3000)
	tests := []struct {
		name          string
		report        catalog.Report
		failurePolicy *admissionregistrationv1.FailurePolicyType
		compiled      string // status, reason and message
		ready         string
	}{
		{"in force", reported("p", 3, 1), nil, "True Compiled every expression compiles", "True InForce it judges the requests that it matches"},
		{
			"with warnings",
			catalog.Report{Generation: 3, Bindings: 1, Warnings: []string{"a is odd", "b is odd"}},
			nil,
			"True Compiled every expression compiles; a is odd; b is odd", "True InForce it judges the requests that it matches",
		},
		{"without a binding", reported("p", 3, 0), nil, "True Compiled every expression compiles", "True InForce no binding names it: it judges nothing, as long as every binding can be read"},
		{
			"a fault", reported("p", 3, 1, fault("bad")), &ignored,
			`False CompileFailed spec.validations[0].expression: Invalid value: "object.": bad`,
			"False NotCompiled it does not compile: each request that it matches and that needs an expression at fault is handled by its failurePolicy Ignore",
		},
		{
			"two faults", reported("p", 3, 1, fault("bad"), fault("worse")), nil,
			`False CompileFailed spec.validations[0].expression: Invalid value: "object.": bad; spec.validations[0].expression: Invalid value: "object.": worse`,
			"False NotCompiled it does not compile: each request that it matches and that needs an expression at fault is handled by its failurePolicy Fail",
		},
		{
			"long faults", reported("p", 3, 1, fault(long), fault(long), fault(long), fault(long)), nil,
			`False CompileFailed spec.validations[0].expression: Invalid value: "object.": ` + long + `; spec.validations[0].expression: Invalid value: "object.": ` + long + "; and 2 more",
			"False NotCompiled it does not compile: each request that it matches and that needs an expression at fault is handled by its failurePolicy Fail",
		},
		{
			"damage",
			catalog.Report{Generation: 3, Damage: errors.New("broken")},
			nil, "False CannotDecode broken",
			"False NotCompiled it cannot be read: each request that it may match is handled by its failurePolicy Fail",
		},
		{
			"in the place of a bootstrap policy",
			catalog.Report{Generation: 3, Displaced: true, Damage: errors.New("broken")},
			nil, "False CannotDecode broken",
			"False Displaced a bootstrap policy of this name judges in its place: delete it",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := said(test.report, stringOf(test.failurePolicy))
			for i, want := range []string{test.compiled, test.ready} {
				if text := fmt.Sprintf("%s %s %s", got[i].Status, got[i].Reason, got[i].Message); text != want {
					t.Errorf("condition %s is\n%s\nwant\n%s", got[i].Type, text, want)
				}
				if got[i].ObservedGeneration != 3 {
					t.Errorf("condition %s is of generation %d", got[i].Type, got[i].ObservedGeneration)
				}
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	huge := strings.Repeat("é", message.MaxBytes)
	for name, report := range map[string]catalog.Report{
		"one fault":   reported("p", 1, 1, fault(huge)),
		"many faults": reported("p", 1, 1, fault("a"), fault(huge), fault(huge)),
		"damage":      {Damage: errors.New(huge)},
	} {
		got := said(report, "Fail")[0].Message
		if len(got) > message.MaxBytes || strings.ToValidUTF8(got, "") != got || got == "" {
			t.Errorf("%s: a message of %d bytes", name, len(got))
		}
	}
}

func TestSync(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	with := func(p *v1alpha1.ValidatingAdmissionPolicy, report catalog.Report) *v1alpha1.ValidatingAdmissionPolicy {
		p.Status.Conditions = said(report, "Fail")
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].LastTransitionTime = then
		}
		return p
	}
	marked := stored("p", 3)
	marked.Status.Conditions = []metav1.Condition{{Type: Compiled, Status: metav1.ConditionFalse, Reason: reasonCannotDecode, Message: "the storage says so"}}
	tests := []struct {
		name   string
		stored *v1alpha1.ValidatingAdmissionPolicy
		report *catalog.Report
		writes bool
		// kept says that the condition Ready has not changed its status.
		kept bool
	}{
		{"new", stored("p", 3), ptr(reported("p", 3, 1)), true, false},
		{"said before", with(stored("p", 3), reported("p", 3, 1)), ptr(reported("p", 3, 1)), false, true},
		{"a new generation", with(stored("p", 3), reported("p", 2, 1)), ptr(reported("p", 3, 1)), true, true},
		{"a binding has gone", with(stored("p", 3), reported("p", 3, 1)), ptr(reported("p", 3, 0)), true, true},
		{"a fault has come", with(stored("p", 3), reported("p", 2, 1)), ptr(reported("p", 3, 1, fault("bad"))), true, false},
		{"the report is of an older generation", stored("p", 3), ptr(reported("p", 2, 1)), false, false},
		{"the report is of another object", stored("p", 3), ptr(reported("q", 3, 1)), false, false},
		{"no report", stored("p", 3), nil, false, false},
		{"deleted", nil, ptr(reported("p", 3, 1)), false, false},
		{"the storage says it", marked, ptr(catalog.Report{UID: "uid-of-p", Generation: 3, Damage: errors.New("broken")}), false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api, told := &store{}, &reports{}
			if test.stored != nil {
				api.put(test.stored.DeepCopy())
			}
			if test.report != nil {
				told.set("p", *test.report)
			}
			if err := New(kindsOf(api), told, nil).sync(t.Context(), idOf("p")); err != nil {
				t.Fatal(err)
			}
			if _, writes := api.count(); writes > 1 || (writes == 1) != test.writes {
				t.Fatalf("%d writes, want any: %t", writes, test.writes)
			}
			if !test.writes {
				return
			}
			ready := meta.FindStatusCondition(api.byName["p"].Status.Conditions, Ready)
			if kept := ready.LastTransitionTime.Equal(&then); kept != test.kept {
				t.Errorf("the time of the transition is kept: %t, want %t", kept, test.kept)
			}
		})
	}
}

func ptr[T any](value T) *T { return &value }

// TestRunFollowsReports: what is reported is written, whatever fails in between,
// and nothing is written twice.
func TestRunFollowsReports(t *testing.T) {
	api, told := &store{}, &reports{}
	api.fail = func(attempt int) error {
		switch attempt {
		case 1:
			return apierrors.NewConflict(schema.GroupResource{}, "p", errors.New("changed"))
		case 2, 3, 4:
			return apierrors.NewServiceUnavailable("etcd is gone")
		}
		return nil
	}
	api.put(stored("p", 1))
	told.set("p", reported("p", 1, 1))
	run(t, api, told)
	ready := func(name string, generation int64) func() bool {
		return func() bool {
			p, err := api.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			condition := meta.FindStatusCondition(p.Status.Conditions, Ready)
			return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == generation
		}
	}
	eventually(t, "what was there is not reported", ready("p", 1))
	api.put(stored("q", 7))
	told.set("q", reported("q", 7, 1))
	eventually(t, "what came later is not reported", ready("q", 7))
	if tried, writes := api.count(); tried != 6 || writes != 2 {
		t.Errorf("%d writes of %d tries, want 2 of 6", writes, tried)
	}
}

// TestRefusedConditionsAreNotTriedAgain: the next report may be another one.
func TestRefusedConditionsAreNotTriedAgain(t *testing.T) {
	api, told := &store{}, &reports{}
	api.fail = func(int) error { return apierrors.NewInvalid(schema.GroupKind{}, "p", nil) }
	api.put(stored("p", 1))
	told.set("p", reported("p", 1, 1))
	if err := New(kindsOf(api), told, nil).sync(t.Context(), idOf("p")); err != nil {
		t.Errorf("tries on: %v", err)
	}
}

func TestRunWritesTheConditionsOfManyPolicies(t *testing.T) {
	const policies = 1000
	api, told := &store{}, &reports{}
	for i := range policies {
		name := fmt.Sprintf("p%d", i)
		api.put(stored(name, 1))
		told.set(name, reported(name, 1, 1))
	}
	run(t, api, told)
	eventually(t, "conditions are missing", func() bool {
		_, writes := api.count()
		return writes == policies
	})
}

func run(t *testing.T, api *store, told *reports) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		New(kindsOf(api), told, nil).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func eventually(t *testing.T, complaint string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(complaint)
	}
}
