// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chain runs the policies that match a request and folds what they
// find into a verdict. It does not know policy languages, stored kinds, HTTP,
// or where the set of policies comes from.
package chain

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// ErrNotReady says that the set of policies is not complete yet, so that no
// request can be judged.
var ErrNotReady = errors.New("not yet ready to handle request")

// ErrNoTimeLeft says that the time of the request ended before all policies had
// judged it. What the others would have said is unknown, so the request as a
// whole must not be admitted, whatever their failure policies are.
var ErrNoTimeLeft = errors.New("the time for judging the request has ended")

// ErrTooManyEvaluations says that policies, bindings and params multiply to more
// evaluations, or to longer texts, than a request may have.
var ErrTooManyEvaluations = fmt.Errorf("the request would need more than %d evaluations or %d MiB of messages: bind fewer params", maxSteps, maxTextBytes>>20)

// What one request may keep in memory.
const (
	maxSteps     = 50_000
	maxTextBytes = 32 << 20 // of messages and expressions, which a preview repeats in its answer
)

// Chain judges requests. It is safe for concurrent use.
type Chain struct{ current func() *policy.Set }

// New returns a chain that asks current for the set of policies once per run.
// current returns nil as long as the set is not complete.
func New(current func() *policy.Set) *Chain { return &Chain{current: current} }

// Run judges req with the stored policies, in their order. A policy that cannot
// be matched or judged, or that panics, is an error of that policy alone. Exempt
// requests are admitted even before the policies are complete: a cluster must
// always be able to authenticate.
//
// It fails with ErrNotReady, ErrNoTimeLeft or ErrTooManyEvaluations; a caller
// must then not admit the request.
func (c *Chain) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	if match.Exempt(req) {
		return verdict.Allow(), nil
	}
	set := c.current()
	if set == nil {
		return verdict.Verdict{}, ErrNotReady
	}
	return judgeWith(ctx, set, req, view)
}

// RunWith judges req with candidates laid over the stored policies, which a
// candidate of the same ID shadows, or with the candidates alone. It fails as
// Run does.
func (c *Chain) RunWith(ctx context.Context, candidates []*policy.Unit, stored bool, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	if match.Exempt(req) {
		return verdict.Allow(), nil
	}
	set := &policy.Set{}
	if stored {
		if set = c.current(); set == nil {
			return verdict.Verdict{}, ErrNotReady
		}
	}
	if len(candidates) > 0 {
		set = set.Edit(nil, candidates)
	}
	return judgeWith(ctx, set, req, view)
}

func judgeWith(ctx context.Context, set *policy.Set, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	var room [16]*policy.Bound
	candidates := set.Candidates(req, view, room[:0])
	if len(candidates) == 0 {
		return verdict.Allow(), nil
	}
	r := run{req: req, view: view}
	for _, bound := range candidates {
		if err := r.judge(ctx, bound); err != nil {
			return verdict.Verdict{}, err
		}
	}
	if ctx.Err() != nil { // the last policy may have been cut short
		return verdict.Verdict{}, ErrNoTimeLeft
	}
	return verdict.Fold(r.steps), nil
}

// run collects the steps of one request.
type run struct {
	req   *request.Request
	view  cluster.View
	steps []verdict.Step
	bytes int // of the texts of steps
	// panicked says that a panic of this request has been logged.
	panicked bool
}

// judge runs one policy through all its bindings. An error ends the request.
func (r *run) judge(ctx context.Context, bound *policy.Bound) error {
	unit := bound.Policy
	step := verdict.Step{Policy: unit.ID, OnError: unit.Policy.OnError}
	matched, ok, err := r.matches(ctx, step, unit.Policy)
	if err != nil {
		return r.misconfigured(step, fmt.Errorf("failed to configure policy: %w", err))
	}
	if !ok {
		return nil
	}
	in := policy.Input{Request: r.req, Matched: matched, View: r.view}
	if !unit.Policy.NeedsBinding {
		return r.evaluate(ctx, step, unit.Policy.Program, in)
	}
	for _, binding := range bound.Bindings {
		step.Binding, step.Actions = binding.ID.Name, binding.Binding.Actions
		if err := r.through(ctx, step, unit.Policy, binding.Binding, in); err != nil {
			return err
		}
	}
	return nil
}

// matches says whether the policy is about the request and can be used: a
// paramKind that the cluster does not have keeps it from judging anything.
func (r *run) matches(ctx context.Context, step verdict.Step, p *policy.Policy) (matched cluster.Equivalent, ok bool, err error) {
	defer r.contain(ctx, step, &err)
	matched, ok, err = p.Criteria.Matches(ctx, r.req, r.view)
	if err != nil || !ok || p.ParamKind == nil {
		return matched, ok, err
	}
	if _, err := r.view.Mapper().RESTMapping(p.ParamKind.GroupKind(), p.ParamKind.Version); err != nil {
		return matched, false, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", *p.ParamKind)
	}
	return matched, true, nil
}

// through judges the request through one binding, once for each param. An error
// ends the request.
func (r *run) through(ctx context.Context, step verdict.Step, p *policy.Policy, binding *policy.Binding, in policy.Input) error {
	params, ok, err := r.selected(ctx, step, p, binding)
	if err != nil {
		return r.misconfigured(step, fmt.Errorf("failed to configure binding: %w", err))
	}
	if !ok {
		return nil
	}
	for _, param := range params {
		in.Param, step.Param = param, reference(param)
		if err := r.evaluate(ctx, step, p.Program, in); err != nil {
			return err
		}
	}
	return nil
}

// selected says whether the binding is about the request, and with which params
// the policy judges it: a nil one stands for no params.
func (r *run) selected(ctx context.Context, step verdict.Step, p *policy.Policy, binding *policy.Binding) (params []*unstructured.Unstructured, ok bool, err error) {
	defer r.contain(ctx, step, &err)
	if _, ok, err = binding.Criteria.Matches(ctx, r.req, r.view); err != nil || !ok {
		return nil, false, err
	}
	if p.ParamKind == nil || binding.Params == nil {
		return []*unstructured.Unstructured{nil}, true, nil
	}
	params, err = selectParams(ctx, r.view, *p.ParamKind, binding.Params, r.req.Namespace)
	return params, true, err
}

// evaluate adds what the program finds. An error ends the request.
func (r *run) evaluate(ctx context.Context, step verdict.Step, program policy.Program, in policy.Input) error {
	if ctx.Err() != nil {
		return ErrNoTimeLeft
	}
	findings, err := r.findings(ctx, step, program, in)
	if err != nil {
		return r.misconfigured(step, err)
	}
	for _, finding := range findings {
		if err := r.add(step, finding); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) findings(ctx context.Context, step verdict.Step, program policy.Program, in policy.Input) (found []verdict.Finding, err error) {
	defer r.contain(ctx, step, &err)
	return program.Evaluate(ctx, in), nil
}

// contain turns a panic into an error of the policy, and logs where the first of
// a request was, without the data that it was about.
func (r *run) contain(ctx context.Context, step verdict.Step, err *error) {
	if cause := recover(); cause != nil {
		*err = errors.New("the policy panicked")
		if r.panicked {
			return
		}
		r.panicked = true
		klog.FromContext(ctx).Error(nil, "Policy panicked", "kind", step.Policy.Kind, "namespace", step.Policy.Namespace,
			"policy", step.Policy.Name, "binding", step.Binding, "stack", string(debug.Stack()))
	}
}

func (r *run) misconfigured(step verdict.Step, err error) error {
	return r.add(step, verdict.Finding{Kind: verdict.Misconfigured, Message: err.Error()})
}

func (r *run) add(step verdict.Step, finding verdict.Finding) error {
	r.bytes += len(finding.Message) + len(finding.Expression) + len(finding.Value)
	if len(r.steps) == maxSteps || r.bytes > maxTextBytes {
		return ErrTooManyEvaluations
	}
	step.Finding = finding
	r.steps = append(r.steps, step)
	return nil
}

func reference(param *unstructured.Unstructured) *verdict.ParamRef {
	if param == nil {
		return nil
	}
	return &verdict.ParamRef{
		APIVersion: param.GetAPIVersion(), Kind: param.GetKind(),
		Namespace: param.GetNamespace(), Name: param.GetName(),
	}
}
