// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chain runs the policies that match a request and records what they
// find. It does not know policy languages, stored kinds, HTTP, or where the set
// of policies comes from.
package chain

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

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

// Chain judges requests. It is safe for concurrent use.
type Chain struct {
	current func() *policy.Set
	clock   clock.PassiveClock
}

// New returns a chain that asks current for the set of policies once per
// question. current returns nil as long as the set is not complete. clock only
// measures how long policies take.
func New(current func() *policy.Set, clock clock.PassiveClock) *Chain {
	return &Chain{current: current, clock: clock}
}

// Trial is a request together with what it is to be judged with instead of the
// stored policies alone.
type Trial struct {
	Request *request.Request
	View    cluster.View
	// Candidates are laid over the stored policies: a candidate shadows what is
	// stored with the same ID.
	Candidates []*policy.Unit
	// CandidateView is what candidate policies see instead of View, unless it is
	// nil: nobody has granted them anything.
	CandidateView cluster.View
	// Stored is the set that judges as the stored policies; the current one when
	// it is nil.
	Stored *policy.Set
	// Alone leaves the stored policies out.
	Alone bool
	// Explain makes every policy say what it found, and why it has no part in
	// the request.
	Explain *policy.Explain
}

// Question is one request with the policies that were in force when it was
// asked. Judge is safe for concurrent use; Mutate, which changes the request that is
// asked about, is not.
type Question struct {
	request  *request.Request
	incoming *unstructured.Unstructured // the object that the request came with
	// left is the object as the policies of some kinds have left it, by the first of the kinds.
	left    map[string]*unstructured.Unstructured
	again   bool // the policies are asked once more
	written int  // bytes, by policies into the object
	found   found
	view    cluster.View
	set     *policy.Set // nil when the request is exempt and nobody asks why
	exempt  bool
	explain *policy.Explain
	clock   clock.PassiveClock
	// concealed says what a policy has put into the object although the asker may not
	// read it. It is empty where nobody asks why.
	concealed string

	candidates    map[policy.ID]bool
	candidateView cluster.View
}

// found is what an index has found for a request, which Mutate asks for once for each
// phase of the same object.
type found struct {
	request *request.Request
	bounds  []*policy.Bound
}

// Try returns the question of a trial. It fails with ErrNotReady; the request
// must then not be admitted. Exempt requests can be asked about even before the
// policies are complete: a cluster must always be able to authenticate.
func (c *Chain) Try(trial Trial) (*Question, error) {
	q := &Question{
		request: trial.Request, view: trial.View, explain: trial.Explain,
		exempt: match.Exempt(trial.Request), clock: c.clock, incoming: trial.Request.Object,
	}
	if q.exempt && q.explain == nil {
		return q, nil
	}
	switch {
	case trial.Alone:
		q.set = &policy.Set{}
	case trial.Stored != nil:
		q.set = trial.Stored
	default:
		if q.set = c.current(); q.set == nil {
			return nil, ErrNotReady
		}
	}
	if len(trial.Candidates) > 0 {
		q.set = q.set.Edit(nil, trial.Candidates)
		q.see(trial)
	}
	return q, nil
}

// see notes what the candidates of a trial may see.
func (q *Question) see(trial Trial) {
	if trial.CandidateView == nil {
		return
	}
	q.candidateView = trial.CandidateView
	q.candidates = make(map[policy.ID]bool, len(trial.Candidates))
	for _, unit := range trial.Candidates {
		q.candidates[unit.ID] = true
	}
}

// viewOf returns what a policy sees of the cluster.
func (q *Question) viewOf(id policy.ID) cluster.View {
	if q.candidates[id] {
		return q.candidateView
	}
	return q.view
}

// Run judges a trial with the policies of the given kinds, or of all, and
// returns the verdict; policies that mutate have no part in it. It fails as Try and
// Question.Judge do; a caller must then not admit the request.
func (c *Chain) Run(ctx context.Context, trial Trial, kinds ...string) (verdict.Verdict, error) {
	q, err := c.Try(trial)
	if err != nil {
		return verdict.Verdict{}, err
	}
	recorder := &verdict.Recorder{}
	if err := q.Judge(ctx, kinds, recorder); err != nil {
		return verdict.Verdict{}, err
	}
	return recorder.Fold(), nil
}
