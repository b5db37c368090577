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

// Chain judges requests. It is safe for concurrent use.
type Chain struct{ current func() *policy.Set }

// New returns a chain that asks current for the set of policies once per run.
// current returns nil as long as the set is not complete.
func New(current func() *policy.Set) *Chain { return &Chain{current: current} }

// Run judges req with the stored policies. It fails only with ErrNotReady; a
// caller must then not admit the request.
func (c *Chain) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	set := c.current()
	if set == nil {
		return verdict.Verdict{}, ErrNotReady
	}
	return RunSet(ctx, set, req, view), nil
}

// RunWith judges req with candidates laid over the stored policies, which a
// candidate of the same ID shadows, or with the candidates alone. It fails as
// Run does.
func (c *Chain) RunWith(ctx context.Context, candidates []*policy.Unit, stored bool, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	set := &policy.Set{}
	if stored {
		if set = c.current(); set == nil {
			return verdict.Verdict{}, ErrNotReady
		}
	}
	if len(candidates) > 0 {
		set = set.Edit(nil, candidates)
	}
	return RunSet(ctx, set, req, view), nil
}

// RunSet judges req with the policies of set, in their order. A policy that
// cannot be matched or judged, that panics, or for which no time is left is an
// error of that policy alone.
func RunSet(ctx context.Context, set *policy.Set, req *request.Request, view cluster.View) verdict.Verdict {
	if match.Exempt(req) {
		return verdict.Allow()
	}
	var room [16]*policy.Bound
	candidates := set.Candidates(req, view, room[:0])
	if len(candidates) == 0 {
		return verdict.Allow()
	}
	r := run{req: req, view: view}
	for _, bound := range candidates {
		r.judge(ctx, bound)
	}
	return verdict.Fold(r.steps)
}

// run collects the steps of one request.
type run struct {
	req   *request.Request
	view  cluster.View
	steps []verdict.Step
}

// judge runs one policy through all its bindings.
func (r *run) judge(ctx context.Context, bound *policy.Bound) {
	unit := bound.Policy
	step := verdict.Step{Policy: unit.ID, OnError: unit.Policy.OnError}
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Error(nil, "Policy panicked", "kind", unit.ID.Kind, "namespace", unit.ID.Namespace, "policy", unit.ID.Name, "stack", string(debug.Stack()))
			r.misconfigured(step, errors.New("the policy panicked"))
		}
	}()

	matched, ok, err := unit.Policy.Criteria.Matches(ctx, r.req, r.view)
	if err == nil && ok {
		err = r.usable(ctx, unit.Policy)
	}
	if err != nil {
		r.misconfigured(step, fmt.Errorf("failed to configure policy: %w", err))
		return
	}
	if !ok {
		return
	}
	in := policy.Input{Request: r.req, Matched: matched, View: r.view}
	if !unit.Policy.NeedsBinding {
		r.evaluate(ctx, step, unit.Policy.Program, in)
		return
	}
	for _, binding := range bound.Bindings {
		step.Binding, step.Actions = binding.ID.Name, binding.Binding.Actions
		r.through(ctx, step, unit.Policy, binding.Binding, in)
	}
}

// usable reports what keeps the whole policy from judging: no time left, or a
// paramKind that the cluster does not have.
func (r *run) usable(ctx context.Context, p *policy.Policy) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.ParamKind == nil {
		return nil
	}
	if _, err := r.view.Mapper().RESTMapping(p.ParamKind.GroupKind(), p.ParamKind.Version); err != nil {
		return fmt.Errorf("failed to find resource referenced by paramKind: '%v'", *p.ParamKind)
	}
	return nil
}

// through judges the request through one binding, once for each param.
func (r *run) through(ctx context.Context, step verdict.Step, p *policy.Policy, binding *policy.Binding, in policy.Input) {
	_, ok, err := binding.Criteria.Matches(ctx, r.req, r.view)
	if err == nil && !ok {
		return
	}
	if err == nil {
		err = r.withParams(ctx, step, p, binding, in)
	}
	if err != nil {
		r.misconfigured(step, fmt.Errorf("failed to configure binding: %w", err))
	}
}

func (r *run) withParams(ctx context.Context, step verdict.Step, p *policy.Policy, binding *policy.Binding, in policy.Input) error {
	if p.ParamKind == nil || binding.Params == nil {
		r.evaluate(ctx, step, p.Program, in)
		return nil
	}
	params, err := selectParams(ctx, r.view, *p.ParamKind, binding.Params, r.req.Namespace)
	if err != nil {
		return err
	}
	for _, param := range params {
		in.Param = param
		step.Param = &verdict.ParamRef{
			APIVersion: param.GetAPIVersion(), Kind: param.GetKind(),
			Namespace: param.GetNamespace(), Name: param.GetName(),
		}
		r.evaluate(ctx, step, p.Program, in)
	}
	return nil
}

func (r *run) evaluate(ctx context.Context, step verdict.Step, program policy.Program, in policy.Input) {
	for _, finding := range program.Evaluate(ctx, in) {
		step.Finding = finding
		r.steps = append(r.steps, step)
	}
}

func (r *run) misconfigured(step verdict.Step, err error) {
	step.Finding = verdict.Finding{Kind: verdict.Misconfigured, Message: err.Error()}
	r.steps = append(r.steps, step)
}
