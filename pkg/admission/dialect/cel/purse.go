// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// What the explanations of one request may cost, in units of the CEL cost model:
// one stands for about 0.2 µs of one core. What is charged depends on the request
// and the policies alone, and not on what is kept ready or how busy the machine
// is, so that the same question shows the same values.
const (
	// maxExplained bounds the evaluations of one request that are explained with
	// values. The others only say how long they took.
	maxExplained = 1_000
	// maxExplanationCost is all that the explanations of one request may cost:
	// about 0.3 s.
	maxExplanationCost = 1_500_000

	// tokenCost is charged for each token of a policy that is compiled to be
	// explained, ready or not; an expression counts for expressionTokens more, and
	// so does the policy.
	tokenCost        = 75
	expressionTokens = 8
	// readingShare is the part of that which each evaluation is charged again for
	// the binding of its values and for learning what it reads.
	readingShare = 200
	bindingCost  = 30
	// ruleCost and variableCost are charged for each rule and for each variable
	// that it could read, besides what upstream's cost model counts.
	ruleCost     = 30
	variableCost = 1
	// checkCost is what that model counts for a question to the authorizer, as if
	// it were a webhook; checkCharge is what one costs here.
	checkCost   = 350_000
	checkCharge = 500
	// valueCost is charged for each value, one unit more for valueBytes of what is
	// shown, and lookCost for each part that was looked at to learn what fits.
	valueCost  = 30
	valueBytes = 4
	lookCost   = 4

	// timeShare is the part of the time left for a request that its explanations
	// may take, whatever they are charged: they must not make it late.
	timeShare = 4
)

// What a policy may have to be explained with values.
const (
	maxExplainedBytes     = 64 << 10
	maxExplainedVariables = 256
)

// purse is what is left for the explanations of one request, with what they
// share. It is safe for concurrent use.
type purse struct {
	mu          sync.Mutex
	evaluations int
	cost        uint64
	accounts    map[*program]account

	begun, timed bool
	time         time.Duration // left, when timed
}

// account is what a request has paid for one policy.
type account struct {
	tracer *tracer // nil when the policy is not explained
	cost   uint64
}

var purseKey = request.NewKey[*purse]("cel explanations")

func newPurse(*request.Request) (*purse, error) {
	return &purse{evaluations: maxExplained, cost: maxExplanationCost, accounts: map[*program]account{}}, nil
}

// evaluation takes what one evaluation of p needs, and returns a tracer, or nil
// when the purse does not have as much or p cannot be explained.
func (w *purse) evaluation(p *program) *tracer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.evaluations == 0 {
		return nil
	}
	opened, known := w.accounts[p]
	if !known {
		opened = w.open(p)
		w.accounts[p] = opened
	}
	if opened.tracer == nil || !w.take(bindingCost+opened.cost/readingShare) {
		return nil
	}
	w.evaluations--
	return opened.tracer
}

// open pays for the tracer of p, also when it is ready.
func (w *purse) open(p *program) account {
	cost, ok := compileCost(p.spec)
	if p.faulty || !ok || !w.take(cost) {
		return account{}
	}
	return account{tracer: p.tracing.tracer(p), cost: cost}
}

func (w *purse) take(cost uint64) bool {
	if cost > w.cost {
		return false
	}
	w.cost -= cost
	return true
}

// left returns what may still be spent.
func (w *purse) left() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cost
}

// spend takes what has been used up, all that is left if that is less.
func (w *purse) spend(cost uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cost -= min(cost, w.cost)
}

// within returns a context that ends when the explanations of the request have had
// their share of its time. Without a deadline there is no share.
func (w *purse) within(ctx context.Context, now clock.PassiveClock) (context.Context, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := now.Now()
	if deadline, ok := ctx.Deadline(); ok && !w.begun {
		w.timed, w.time = true, deadline.Sub(begin)/timeShare
	}
	w.begun = true
	if !w.timed {
		return ctx, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, w.time)
	return ctx, func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.time -= now.Since(begin)
	}
}

// compileCost returns what it costs to compile all expressions of spec. It
// returns false when they are too large.
func compileCost(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (uint64, bool) {
	if len(spec.Variables) > maxExplainedVariables {
		return 0, false
	}
	bytes, counted := 0, uint64(expressionTokens)
	for source := range expressionsOf(spec) {
		if bytes += len(source); bytes > maxExplainedBytes {
			return 0, false
		}
		counted += tokens(source) + expressionTokens
	}
	return counted * tokenCost, true
}

// tokens returns about the number of tokens of an expression. It is cheap, and
// too high only for what stands in strings.
func tokens(source string) uint64 {
	var n uint64
	word := false
	for i := range len(source) {
		c := source[i]
		letter := c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && c > ' ' || letter && !word {
			n++
		}
		word = letter
	}
	return n
}
