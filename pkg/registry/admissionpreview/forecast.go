// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	// maxForecasts bounds the writes that look at existing objects at the same time.
	maxForecasts = 2
	// forecastBudget bounds the time that a write waits for that.
	forecastBudget = 2 * time.Second
	// maxForecastTargets and maxForecastObjects bound what one write looks at.
	maxForecastTargets = 5
	maxForecastObjects = 500
	// maxForecastBytes bounds what is read of these objects, with those with which it is
	// passed.
	maxForecastBytes = 64 << 20
	// maxForecastText bounds the lines of a forecast together, in characters. With
	// the warnings on types it stays below what
	// k8s.io/apiserver/pkg/endpoints/filters/warning.go would cut.
	maxForecastText = 1024
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

// Forecast tells writers of policies and bindings what these would make of the
// objects that exist, as far as the writer may list them. It is for dry runs: what
// it says is nobody's fault, and it takes time. It is safe for concurrent use.
type Forecast struct {
	judge    Judge
	view     func() cluster.View
	compiler Compiler
	access   Access
	room     *semaphore.Weighted // of maxForecasts
}

// NewForecast returns a forecast of what judge judges before the cluster that view
// returns, with the policies and bindings that access knows as stored.
func NewForecast(judge Judge, view func() cluster.View, compiler Compiler, access Access) *Forecast {
	return &Forecast{judge: judge, view: view, compiler: compiler, access: access, room: semaphore.NewWeighted(maxForecasts)}
}

// Policy returns what the writer of a valid policy should know: with the stored
// bindings that name it, or as if one bound it to everything.
func (f *Forecast) Policy(ctx context.Context, written *policyapi.ValidatingAdmissionPolicy) []string {
	unit, errs := f.compiler.Compile(ctx, policyKind, written)
	if unit == nil {
		return notLooked("the policy cannot be compiled: %v", errs.ToAggregate())
	}
	stored := f.access.stored()
	if stored == nil {
		return notLooked("%v", chain.ErrNotReady)
	}
	trial := chain.Trial{Candidates: []*policy.Unit{unit}}
	bindings := bindingsOf(stored, unit.ID)
	if len(bindings) > 0 {
		return f.lines(ctx, written.Spec.MatchConstraints, trial, (&policy.Set{}).Edit(nil, bindings), "")
	}
	if written.Spec.ParamKind != nil {
		return notLooked("no stored binding names the policy, which takes its params from one")
	}
	everything, errs := f.compiler.Compile(ctx, bindingKind, &policyapi.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: written.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
	if everything == nil {
		return notLooked("a binding cannot be compiled: %v", errs.ToAggregate())
	}
	trial.Candidates = append(trial.Candidates, everything)
	return f.lines(ctx, written.Spec.MatchConstraints, trial, &policy.Set{}, "no stored binding names the policy: existing objects are judged as if one did, everywhere, with the action Deny")
}

// Binding returns what the writer of a valid binding should know, with the policy
// that it names. Stored returns that, or an error when it cannot be told.
func (f *Forecast) Binding(ctx context.Context, written *policyapi.ValidatingAdmissionPolicyBinding,
	stored func(ctx context.Context, name string) (*policyapi.ValidatingAdmissionPolicy, error),
) []string {
	bound, err := stored(ctx, written.Spec.PolicyName)
	if apierrors.IsNotFound(err) {
		return notLooked("the policy %q is not stored", written.Spec.PolicyName)
	}
	if err != nil {
		return notLooked("the policy %q cannot be read: %v", written.Spec.PolicyName, err)
	}
	unit, errs := f.compiler.Compile(ctx, bindingKind, written)
	if unit == nil {
		return notLooked("the binding cannot be compiled: %v", errs.ToAggregate())
	}
	policyUnit, errs := f.compiler.Compile(ctx, policyKind, bound)
	if policyUnit == nil {
		return notLooked("the policy %q cannot be compiled: %v", bound.Name, errs.ToAggregate())
	}
	trial := chain.Trial{Candidates: []*policy.Unit{unit}}
	return f.lines(ctx, bound.Spec.MatchConstraints, trial, (&policy.Set{}).Edit(nil, []*policy.Unit{policyUnit}), "")
}

// lines returns what the candidates of a trial make, with those that are stored, of
// the existing objects that the constraints name, after the given remark.
func (f *Forecast) lines(ctx context.Context, constraints *admissionregistrationv1.MatchResources, trial chain.Trial, stored *policy.Set, remark string) []string {
	if !f.room.TryAcquire(1) {
		return notLooked("too many dry runs are being answered, try again later")
	}
	defer f.room.Release(1)
	ctx, cancel := withBudget(ctx, forecastBudget)
	defer cancel()

	asker := f.access.caller(ctx)
	trial.View, trial.Stored = f.view(), stored
	mapper := trial.View.Mapper()
	reading := paramRights{caller: asker, mapper: mapper}
	if err := reading.check(ctx, trial.Candidates, stored); err != nil {
		return notLooked("%v", err)
	}
	trial.CandidateView = newCandidateView(trial.View, asker, asker.User)
	s := sweep{judge: f.judge, trial: trial, asker: asker, failures: 1}

	targets, others := targetsOf(ctx, mapper, constraints)
	looked, passedOver := f.look(ctx, &s, targets)
	lines := looked
	if remark != "" && len(looked) > 0 {
		lines = append([]string{remark}, looked...)
	}
	if others = append(passedOver, others...); len(others) > 0 {
		lines = append(lines, notLookedAt+strings.Join(others, ", "))
	}
	return fit(lines)
}

// look judges the objects of each target with its share of what is left of the
// objects, of the bytes and of the time. It returns a line for each that has any, and what else
// it has not looked at.
func (f *Forecast) look(ctx context.Context, s *sweep, targets []target) (lines, passedOver []string) {
	objects, bytes := maxForecastObjects, maxForecastBytes
	for i := range targets {
		left := len(targets) - i
		what := selection{
			mapping: targets[i].mapping, operation: targets[i].operation,
			selector: labels.Everything(), limit: objects / left, bytes: max(0, bytes/left),
		}
		t, err := s.within(ctx, what, left)
		switch {
		case apierrors.IsForbidden(err):
			passedOver = append(passedOver, what.resource()+" (you may not list them)")
		case err != nil:
			passedOver = append(passedOver, what.resource()+" ("+err.Error()+")")
		default:
			objects -= t.judged()
			bytes -= t.read
			if line := t.line(what); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines, passedOver
}

// within is run with one of so many shares of the time.
func (s *sweep) within(ctx context.Context, what selection, shares int) (*tally, error) {
	ctx, cancel := within(ctx, func(left time.Duration) time.Duration { return left / time.Duration(shares) })
	defer cancel()
	return s.run(ctx, what)
}

// bindingsOf returns the bindings that name a policy, in force or not.
func bindingsOf(stored *policy.Set, id policy.ID) []*policy.Unit {
	for _, bound := range stored.All() {
		if bound.ID == id {
			return bound.Bindings
		}
	}
	return nil
}

const notLookedAt = "existing objects not looked at: "

func notLooked(why string, args ...any) []string {
	return fit([]string{"existing objects are not looked at: " + fmt.Sprintf(why, args...)})
}
