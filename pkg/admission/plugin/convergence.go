// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

const (
	// maxLooks is how many requests that a policy has changed are looked at again. Most
	// policies that do not converge do so with none.
	maxLooks = 3
	// maxWaiting bounds the requests that wait to be looked at; others are let go.
	maxWaiting = 16
	// lookTimeout bounds the time for one of them.
	lookTimeout = 5 * time.Second
	// maxKnown bounds the policies of which it is known how often they have been looked
	// at. Those that are deleted stay among them.
	maxKnown = 10_000
	// maxShownPaths bounds the fields that are named of what a rule would change again.
	maxShownPaths = 3
)

// Convergence looks again at the first requests that each policy changes, when they
// have been answered, and tells of policies that would change their own result. It
// costs requests nothing. It is safe for concurrent use.
type Convergence struct {
	registered *Registered
	report     func(unit *policy.Unit, text string)
	waiting    chan look

	mu     sync.Mutex
	looked map[policy.ID]looks
}

// looks are those at one version of a policy, which they do not keep in memory.
type looks struct {
	unit  weak.Pointer[policy.Unit]
	times int
}

// look is a request that policies have changed.
type look struct {
	question *chain.Question
	request  *request.Request
	view     cluster.View
	object   *unstructured.Unstructured // as it has left them
}

// NewConvergence has what registered mutates for real looked at again by Run. Report
// hears of a policy that does not converge, and why; unit is the one that was asked. It
// must be called before registered is used.
func NewConvergence(registered *Registered, report func(unit *policy.Unit, text string)) *Convergence {
	c := &Convergence{registered: registered, report: report, waiting: make(chan look, maxWaiting), looked: map[policy.ID]looks{}}
	registered.convergence = c
	return c
}

// offer takes a request that is of interest, if there is room for it.
func (c *Convergence) offer(question *chain.Question, req *request.Request, view cluster.View, answer *verdict.Verdict) {
	if c == nil || answer.Object == nil || !answer.Allowed || len(c.waiting) == cap(c.waiting) || !c.interesting(question, answer) {
		return
	}
	select {
	case c.waiting <- look{question: question, request: req, view: view, object: answer.Object}:
	default:
	}
}

// interesting says whether a policy that has changed the object has not been looked at
// often enough, and counts that it is.
func (c *Convergence) interesting(question *chain.Question, answer *verdict.Verdict) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := false
	for i := range answer.Evaluations {
		step := &answer.Evaluations[i]
		if step.Outcome != verdict.Changed {
			continue
		}
		unit, known := weak.Make(question.Unit(step.Policy)), c.looked[step.Policy]
		if known.unit != unit {
			known = looks{unit: unit}
		}
		if known.times < maxLooks {
			if known.times == 0 && len(c.looked) >= maxKnown {
				clear(c.looked)
			}
			known.times++
			c.looked[step.Policy], found = known, true
		}
	}
	return found
}

// Run looks at what has been mutated until ctx ends.
func (c *Convergence) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-c.waiting:
			c.look(ctx, &next)
		}
	}
}

func (c *Convergence) look(ctx context.Context, l *look) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	// The policies that have made the object are asked, whatever is stored by now.
	trial := chain.Trial{Request: l.request, View: l.view, Stored: l.question.Policies()}
	found, err := c.registered.diverging(ctx, trial, l.object)
	if err != nil {
		return // nothing is known then
	}
	for i := range found {
		if unit := l.question.Unit(found[i].Policy); unit != nil {
			c.report(unit, text(&found[i]))
		}
	}
}

// text names the rule and the fields, and no values of the object.
func text(found *verdict.Divergence) string {
	var paths []string
	for _, operation := range patch.Diff(found.Before.Object, found.After.Object) {
		if len(paths) == maxShownPaths {
			paths = append(paths, "...")
			break
		}
		paths = append(paths, operation.Op+" "+operation.Path)
	}
	return fmt.Sprintf("rule %q changes an object again that all rules have been applied to: %s", found.Rule, strings.Join(paths, ", "))
}
