// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"context"
	"fmt"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/condition"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
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
	generated     bool   // made of another one, for the controllers of Pods
	madeOf        string // the name of that
	replaced      bool   // by those that are made
	selection     *selection.Selection
	entries       []*scope.Entry
	preconditions *condition.Conditions
	mutation      mutation
	broken        error // why it cannot be applied
}

// Selects implements policy.Selective.
func (p *program) Selects(req *request.Request) bool {
	if letsGo(req) {
		return false
	}
	if p.broken != nil || p.conditions != nil {
		return true
	}
	at := selection.GlanceAt(req)
	for _, rule := range p.rules {
		if !rule.replaced && rule.selection.MayMatch(at) {
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
	if letsGo(in.Request) {
		return []verdict.Finding{{Kind: verdict.NotMatched, Message: "no rule is applied where nothing but finalizers is taken away"}}
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
		if rule.generated && !rule.selection.MayTakeKind(e.subject) || rule.replaced && in.Explain == nil {
			continue // nobody has written the one, and nobody asks about the other
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
