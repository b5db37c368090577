// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Judge lets the policies of the given kinds judge the request, in their order,
// and records what they find; no kinds means all. A policy that cannot be
// matched or judged, or that panics, is an error of that policy alone.
//
// It fails with ErrNoTimeLeft or verdict.ErrTooManyEvaluations; a caller must
// then not admit the request.
func (q *Question) Judge(ctx context.Context, kinds []string, recorder *verdict.Recorder) error {
	if q.exempt && q.explain == nil {
		return nil
	}
	var room [16]*policy.Bound
	candidates := room[:0]
	if !q.exempt {
		candidates = q.set.Candidates(q.request, q.view, candidates)
	}
	r := run{Question: q, recorder: recorder}
	judge, bounds := r.bound, candidates
	if q.explain != nil {
		judge, bounds = r.explained(candidates), q.set.All()
	}
	judged := false
	for _, bound := range bounds {
		if len(kinds) > 0 && !slices.Contains(kinds, bound.ID.Kind) {
			continue
		}
		judged = true
		if err := judge(ctx, bound); err != nil {
			return err
		}
	}
	if judged && ctx.Err() != nil { // the last policy may have been cut short
		return ErrNoTimeLeft
	}
	return nil
}

// run is the judgement of one question.
type run struct {
	*Question
	recorder *verdict.Recorder
	// panicked says that a panic of this request has been logged.
	panicked bool
}

// bound judges one policy through all its bindings. An error ends the request.
func (r *run) bound(ctx context.Context, bound *policy.Bound) error {
	unit := bound.Policy
	step := verdict.Step{Policy: unit.ID, OnError: unit.Policy.OnError}
	matched, ok, err := r.matches(ctx, step, unit.Policy)
	if err != nil {
		return r.misconfigured(step, fmt.Errorf("failed to configure policy: %w", err))
	}
	if !ok {
		return r.whyNot(ctx, step, unit.Policy.Criteria)
	}
	in := policy.Input{Request: r.request, Matched: matched, View: r.viewOf(unit.ID), Explain: r.explain}
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
	matched, ok, err = p.Criteria.Matches(ctx, r.request, r.view)
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
		return r.whyNot(ctx, step, binding.Criteria)
	}
	if len(params) == 0 {
		return r.withoutParams(step)
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
	if _, ok, err = binding.Criteria.Matches(ctx, r.request, r.view); err != nil || !ok {
		return nil, false, err
	}
	if p.ParamKind == nil || binding.Params == nil {
		return []*unstructured.Unstructured{nil}, true, nil
	}
	params, err = selectParams(ctx, r.view, *p.ParamKind, binding.Params, r.request.Namespace)
	return params, true, err
}

// evaluate records what the program finds. An error ends the request.
func (r *run) evaluate(ctx context.Context, step verdict.Step, program policy.Program, in policy.Input) error {
	if ctx.Err() != nil {
		return ErrNoTimeLeft
	}
	begin := r.clock.Now()
	findings, err := r.findings(ctx, step, program, in)
	step.Took = r.clock.Since(begin)
	if err != nil {
		return r.misconfigured(step, err)
	}
	for _, finding := range findings {
		step.Finding = finding
		if err := r.recorder.Add(step); err != nil {
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
	step.Finding = verdict.Finding{Kind: verdict.Misconfigured, Message: err.Error()}
	return r.recorder.Add(step)
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
