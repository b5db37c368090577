// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/condition"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// What the variables of one policy may take in one request: see jmespath.Run.
const (
	maxSteps = 4_000_000
	maxBytes = 32 << 20
)

var _ policy.Selective = (*program)(nil)

// program is a compiled policy. It is immutable.
type program struct {
	rules      []*rule
	one        bool // no rule after the first that has changed the object
	timeout    time.Duration
	conditions *matchConditions
	// withoutRoles says that no expression asks for the roles of the user.
	withoutRoles bool
	// broken is why nobody knows what the policy is about. Each request is an error then.
	broken error
}

// rule is a compiled rule.
type rule struct {
	name          string
	generated     bool // made of another one, for the controllers of Pods
	selection     *selection.Selection
	entries       []*scope.Entry
	preconditions *condition.Conditions
	mutation      mutation
	broken        error // why it cannot be applied
}

// evaluation is one request before one policy.
type evaluation struct {
	in        policy.Input
	run       *jmespath.Run
	variables *scope.Variables
	subject   *selection.Subject
	object    *unstructured.Unstructured // as the rules have left it
	shown     *unstructured.Unstructured // what variables see of it
	resolved  *resolved                  // nil when nobody asks
	series    jsonpatch.Series           // of the patches of one rule
}

// Selects implements policy.Selective.
func (p *program) Selects(req *request.Request) bool {
	if exempt(req) != "" {
		return false
	}
	if p.broken != nil || p.conditions != nil {
		return true
	}
	at := selection.GlanceAt(req)
	for _, rule := range p.rules {
		if rule.selection.MayMatch(at) {
			return true
		}
	}
	return false
}

// Evaluate implements policy.Program. There is a finding for each rule that has been
// looked at, in their order, but none for rules made for kinds that the request is not
// of; a rule that cannot be applied changes nothing, and the following ones see the
// object without it.
func (p *program) Evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	share := p.share(ctx)
	bounded, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	findings := p.evaluate(bounded, in)
	if err := ctx.Err(); err != nil {
		return []verdict.Finding{{Kind: verdict.Error, Message: err.Error()}}
	}
	if bounded.Err() != nil {
		return []verdict.Finding{{Kind: verdict.Error, Message: fmt.Sprintf("the policy takes longer than the %v that it may", share.Round(time.Millisecond))}}
	}
	return findings
}

// share is the time that the policy may take: not all that is left of the request, so
// that a policy that is slow fails by its own failurePolicy, and the request goes on.
func (p *program) share(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return p.timeout
	}
	return min(p.timeout, time.Until(deadline)*4/5)
}

func (p *program) evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	if why := exempt(in.Request); why != "" {
		return []verdict.Finding{{Kind: verdict.NotMatched, Message: why}}
	}
	if p.broken != nil {
		return []verdict.Finding{{Kind: verdict.Error, Message: p.broken.Error()}}
	}
	if held, err := p.conditions.hold(ctx, in); err != nil {
		return []verdict.Finding{{Kind: verdict.Error, Message: err.Error()}}
	} else if held != "" {
		return []verdict.Finding{{Kind: verdict.Skip, Message: held}}
	}
	e := newEvaluation(in)
	if p.withoutRoles {
		e.variables.WithoutRoles()
	}
	findings := make([]verdict.Finding, 0, len(p.rules))
	for i, rule := range p.rules {
		if rule.generated && !rule.selection.MayTakeKind(e.subject) {
			continue // nobody has written it, and nobody asks why it is not about this
		}
		finding := e.apply(ctx, rule)
		finding.Index, finding.Rule = i, rule.name
		findings = append(findings, finding)
		if p.one && finding.Kind == verdict.Mutated {
			break
		}
	}
	return findings
}

func newEvaluation(in policy.Input) *evaluation {
	req := in.Request
	e := &evaluation{
		in: in,
		run: &jmespath.Run{
			Now: req.Time, Seed: string(req.UID), Steps: maxSteps, Bytes: maxBytes,
			Deletes: req.Operation == admission.Delete,
		},
		subject: selection.NewSubject(req, in.View),
		object:  req.Object,
		shown:   req.Object,
	}
	e.variables = scope.New(in, e.run)
	e.explain()
	return e
}

// apply applies a rule to the object.
func (e *evaluation) apply(ctx context.Context, r *rule) verdict.Finding {
	if r.selection != nil {
		matched, err := r.selection.Matches(ctx, e.subject)
		if err != nil {
			return failed(r, err)
		}
		if !matched {
			return verdict.Finding{Kind: verdict.NotMatched, Message: e.whyNot(ctx, r)}
		}
	}
	if r.broken != nil {
		return failed(r, r.broken)
	}
	if e.object == nil {
		return verdict.Finding{Kind: verdict.Skip, Message: "the request has no object that could be changed"}
	}
	finding := e.change(ctx, r)
	e.tell(ctx, &finding)
	return finding
}

// change applies a rule that is about the request.
func (e *evaluation) change(ctx context.Context, r *rule) verdict.Finding {
	end := e.variables.Begin(r.entries)
	defer end()
	held, why, err := r.preconditions.Holds(ctx, e.run, e.variables)
	switch {
	case err != nil:
		return failed(r, fmt.Errorf("preconditions: %w", err))
	case !held:
		return verdict.Finding{Kind: verdict.Skip, Message: "preconditions not met: " + why}
	}
	if _, loops := r.mutation.(*forEach); !loops {
		// Kyverno replaces the variables of the whole rule before it applies a patch.
		if err := r.preconditions.RenderRest(ctx, e.run, e.variables); err != nil {
			return failed(r, fmt.Errorf("preconditions: %w", err))
		}
	}
	changed, why, err := r.mutation.apply(ctx, e, e.object.Object)
	e.series.Release()
	e.show(e.object) // a loop has shown its work
	switch {
	case err != nil:
		return failed(r, err)
	case patch.Equal(e.object.Object, changed):
		return verdict.Finding{Kind: verdict.Skip, Message: cmp.Or(why, "the object is already as the rule would make it")}
	}
	if err := sameIdentity(e.in.Request, e.object.Object, changed); err != nil {
		return failed(r, err)
	}
	e.become(&unstructured.Unstructured{Object: changed})
	return verdict.Finding{Kind: verdict.Mutated, Object: e.object}
}

// become makes object the one that the following rules see.
func (e *evaluation) become(object *unstructured.Unstructured) {
	e.object = object
	e.show(object)
	e.subject.SetObject(object)
}

// show makes object what variables find as request.object.
func (e *evaluation) show(object *unstructured.Unstructured) {
	if e.shown != object {
		e.shown = object
		e.variables.SetObject(object)
	}
}

func failed(r *rule, err error) verdict.Finding {
	return verdict.Finding{Kind: verdict.Error, Message: fmt.Sprintf("rule %q: %s", r.name, err)}
}
