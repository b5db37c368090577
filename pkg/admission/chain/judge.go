// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Judge lets the policies of the given kinds judge the request, in their order,
// and records what they find; no kinds means all. Those that mutate are left out. A policy that cannot be
// matched or judged, or that panics, is an error of that policy alone.
//
// It fails with ErrNoTimeLeft or verdict.ErrTooManyEvaluations; a caller must
// then not admit the request.
func (q *Question) Judge(ctx context.Context, kinds []string, recorder *verdict.Recorder) error {
	r := run{Question: q, recorder: recorder}
	return r.all(ctx, kinds)
}

// all runs the policies of the given kinds that have a part in the phase.
func (r *run) all(ctx context.Context, kinds []string) error {
	q := r.Question
	if q.exempt && q.explain == nil {
		return nil
	}
	r.subject = r.subjectOf(q.request)
	var room [16]*policy.Bound
	candidates := room[:0]
	switch {
	case q.exempt:
	case !r.mutating:
		candidates = q.set.Candidates(&r.subject, candidates)
	default:
		if q.found.request != q.request {
			q.found = found{q.request, q.set.Candidates(&r.subject, nil)}
		}
		candidates = q.found.bounds
	}
	judge, bounds := r.bound, candidates
	if q.explain != nil {
		judge, bounds = r.explained(candidates), q.set.All()
	}
	judged := false
	for len(bounds) > 0 {
		bound := bounds[0]
		bounds = bounds[1:]
		if len(kinds) > 0 && !slices.Contains(kinds, bound.ID.Kind) || mutates(bound) != r.mutating {
			continue
		}
		judged = true
		if err := judge(ctx, bound); err != nil {
			return err
		}
		if r.moved { // others may be about what the object has become
			r.moved = false
			bounds = policy.After(bound.ID, q.set.Candidates(&r.subject, nil))
		}
	}
	if judged && ctx.Err() != nil { // the last policy may have been cut short
		return ErrNoTimeLeft
	}
	return nil
}

// subjectOf returns the subject of a request. Where someone asks why, all policies are
// asked that are about its kind.
func (r *run) subjectOf(req *request.Request) match.Subject {
	subject := match.NewSubject(req, r.view)
	if r.explain != nil {
		subject.ByKindAlone()
	}
	return *subject
}

// mutates says in which phase a policy has a part: what only bindings name is a policy
// that judges.
func mutates(bound *policy.Bound) bool {
	return bound.Policy != nil && bound.Policy.Policy.Mutates
}

// run is the judgement of one question.
type run struct {
	*Question
	mutating bool
	subject  match.Subject
	// moved says that the index finds other policies for the object than before.
	moved    bool
	recorder *verdict.Recorder
	none     [1]param // what a policy is judged with that takes no params
	// panicked says that a panic of this request has been logged.
	panicked bool
}

// bound judges one policy through all its bindings. An error ends the request.
func (r *run) bound(ctx context.Context, bound *policy.Bound) error {
	unit, origins := bound.Policy, bound.Origins()
	unbound := &origins[0]
	if r.concealed != "" && r.brought(bound) {
		return r.unheard(unbound)
	}
	matched, ok, err := r.matches(ctx, unbound, unit.Policy)
	if err != nil {
		return r.misconfigured(unbound, 0, fmt.Errorf("failed to configure policy: %w", err))
	}
	if !ok {
		return r.whyNot(ctx, unbound, unit.Policy.Criteria)
	}
	p := &applied{
		Policy: unit.Policy,
		in:     policy.Input{Request: r.request, Matched: matched, View: r.viewOf(unit.ID), Explain: r.explain},
		known:  r.memo(bound),
	}
	if !p.NeedsBinding {
		return r.evaluate(ctx, unbound, p, param{})
	}
	for i, binding := range bound.Bindings {
		if err := r.through(ctx, &origins[i+1], p, binding.Binding); err != nil {
			return err
		}
	}
	return nil
}

// applied is a policy that is about the request.
type applied struct {
	*policy.Policy
	in    policy.Input // without a param
	known *memo
}

// matches says whether the policy is about the request and can be used: a
// paramKind that the cluster does not have keeps it from judging anything.
func (r *run) matches(ctx context.Context, origin *verdict.Origin, p *policy.Policy) (matched cluster.Equivalent, ok bool, err error) {
	defer r.contain(ctx, origin, &err)
	matched, ok, err = p.Criteria.Matches(ctx, &r.subject)
	if err != nil || !ok {
		return matched, ok, err
	}
	if selective, may := p.Program.(policy.Selective); may && r.explain == nil && !selective.Selects(r.request) {
		return matched, false, nil
	}
	if p.ParamKind == nil {
		return matched, true, nil
	}
	if _, err := r.view.Mapper().RESTMapping(p.ParamKind.GroupKind(), p.ParamKind.Version); err != nil {
		return matched, false, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", *p.ParamKind)
	}
	return matched, true, nil
}

// through judges the request through one binding, once for each param. An error
// ends the request.
func (r *run) through(ctx context.Context, origin *verdict.Origin, p *applied, binding *policy.Binding) error {
	params, ok, err := r.selected(ctx, origin, p, binding)
	if err != nil {
		return r.misconfigured(origin, 0, fmt.Errorf("failed to configure binding: %w", err))
	}
	if !ok {
		return r.whyNot(ctx, origin, binding.Criteria)
	}
	if len(params) == 0 {
		return r.withoutParams(origin)
	}
	for _, param := range params {
		through := origin
		if param.reference != nil {
			own := *origin
			own.Param, through = param.reference, &own
		}
		if err := r.evaluate(ctx, through, p, param); err != nil {
			return err
		}
	}
	return nil
}

// selected says whether the binding is about the request, and with which params
// the policy judges it.
func (r *run) selected(ctx context.Context, origin *verdict.Origin, p *applied, binding *policy.Binding) (params []param, ok bool, err error) {
	defer r.contain(ctx, origin, &err)
	if _, ok, err = binding.Criteria.Matches(ctx, &r.subject); err != nil || !ok {
		return nil, false, err
	}
	if p.ParamKind == nil || binding.Params == nil {
		return r.none[:], true, nil
	}
	params, err = p.known.selection(binding.Params, func() ([]param, error) {
		return selectParams(ctx, r.view, *p.ParamKind, binding.Params, r.request.Namespace)
	})
	return params, true, err
}

// evaluate records what the program finds with a param. An error ends the request.
func (r *run) evaluate(ctx context.Context, origin *verdict.Origin, p *applied, with param) error {
	if ctx.Err() != nil {
		return ErrNoTimeLeft
	}
	if findings, ok := p.known.findings(with.object); ok {
		return r.record(origin, 0, findings)
	}
	begin := r.clock.Now()
	findings, err := r.findings(ctx, origin, p, with)
	took := r.clock.Since(begin)
	if err != nil {
		return r.misconfigured(origin, took, err)
	}
	if r.mutating {
		return r.changed(origin, p, took, findings)
	}
	p.known.found(with.object, findings)
	return r.record(origin, took, findings)
}

func (r *run) findings(ctx context.Context, origin *verdict.Origin, p *applied, with param) (found []verdict.Finding, err error) {
	defer r.contain(ctx, origin, &err)
	in := p.in
	in.Request, in.Param = r.request, with.object // a policy that mutates sees what it has changed before
	return p.Program.Evaluate(ctx, in), nil
}

// contain turns a panic into an error of the policy, and logs where the first of
// a request was, without the data that it was about.
func (r *run) contain(ctx context.Context, origin *verdict.Origin, err *error) {
	if cause := recover(); cause != nil {
		*err = errors.New("the policy panicked")
		if r.panicked {
			return
		}
		r.panicked = true
		klog.FromContext(ctx).Error(nil, "Policy panicked", "kind", origin.Policy.Kind, "namespace", origin.Policy.Namespace,
			"policy", origin.Policy.Name, "binding", origin.Binding, "stack", string(debug.Stack()))
	}
}

func (r *run) misconfigured(origin *verdict.Origin, took time.Duration, err error) error {
	return r.record(origin, took, []verdict.Finding{{Kind: verdict.Misconfigured, Message: err.Error()}})
}
