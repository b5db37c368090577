// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// selection says which existing objects are judged, and how.
type selection struct {
	mapping   *meta.RESTMapping
	namespace string // empty: all
	selector  labels.Selector
	limit     int // of objects
	bytes     int // that are read, with the object with which they are passed
	operation admission.Operation
}

// sweep judges existing objects, each as if its caller sent it again. Previews and
// forecasts share it.
type sweep struct {
	judge Judge
	// trial is what all objects are judged with. The request is that of each object.
	trial chain.Trial
	// asker must have the right to list the objects, and is the user of the requests.
	asker caller
	// failures is how many objects that do not pass are kept and explained.
	failures int
}

// run judges the objects that are selected, as long as ctx lasts and in the order in
// which the view shows them: it never has all of them. The error is 403
// when the asker may not list them, and 503 when they cannot be listed or nothing
// can be judged yet.
func (s *sweep) run(ctx context.Context, what selection) (*tally, error) {
	if err := s.mayList(ctx, what); err != nil {
		return nil, err
	}
	t := &tally{room: s.failures}
	if err := s.judgeAll(ctx, what, t); err != nil {
		return nil, err
	}
	s.explain(ctx, what, t)
	return t, nil
}

// mayList demands the right to list the objects of the server's authorizer, before
// anything is read: what a policy says of an object tells what is in it.
func (s *sweep) mayList(ctx context.Context, what selection) error {
	resource := what.mapping.Resource
	return s.asker.Need(ctx, authorizer.AttributesRecord{
		Verb: "list", APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource, Namespace: what.namespace,
	}, "needed to have the existing objects judged")
}

// explainShare is the part of the time that is kept for the explanations.
const explainShare = 5

// judgeAll judges the objects in their order until its time ends, or too much has been
// read; the others remain.
func (s *sweep) judgeAll(ctx context.Context, what selection, t *tally) error {
	ctx, cancel := within(ctx, func(left time.Duration) time.Duration { return left - left/explainShare })
	defer cancel()
	var last cluster.Visited
	var refused error
	err := s.trial.View.Walk(ctx, cluster.Selection{
		Kind: what.mapping.GroupVersionKind, Namespace: what.namespace, Selector: what.selector,
	}, func(one cluster.Visited) (more bool, err error) {
		last = cluster.Visited{Left: one.Left, More: one.More}
		more, refused = s.visit(ctx, what, one, t)
		return more, refused
	})
	switch {
	case refused != nil:
		return refused
	case err != nil && ctx.Err() != nil && t.judged() > 0: // while more of them were read
		t.leave(what.limit, max(1, last.Left), last.More)
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the existing %s cannot be listed: %v", what.resource(), err))
	}
	return nil
}

// visit judges the next object and says whether there is room for more. The error is
// 503, when nothing can be judged yet.
func (s *sweep) visit(ctx context.Context, what selection, one cluster.Visited, t *tally) (more bool, err error) {
	remain := func() (bool, error) {
		t.leave(what.limit, 1+one.Left, one.More)
		return false, nil
	}
	switch {
	case t.judged() >= what.limit, ctx.Err() != nil:
		return remain()
	case t.read > what.bytes:
		t.heavy = true
		return remain()
	}
	trial := s.trial
	trial.Request = s.request(what, one.Object)
	answer, err := s.judge.Try(ctx, trial)
	switch {
	case errors.Is(err, chain.ErrNotReady):
		return false, apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, chain.ErrNoTimeLeft):
		return remain()
	}
	t.add(one.Object, one.Bytes, &answer, err)
	return true, nil
}

// explain judges the objects that are kept once more, this time asking why. What
// is not explained in time, or too large to be kept, stays as it is.
func (s *sweep) explain(ctx context.Context, what selection, t *tally) {
	for _, kept := range t.kept() {
		if kept.err != nil || kept.object == nil || ctx.Err() != nil {
			continue
		}
		trial := s.trial
		trial.Request = s.request(what, kept.object)
		trial.Explain = &policy.Explain{MayRead: newReader(s.asker, trial.View.Mapper()).MayRead}
		answer, err := s.judge.Try(ctx, trial)
		if err == nil && gradeOf(&answer) == kept.grade { // the cluster may have changed meanwhile
			kept.describe(&answer)
		}
	}
}

// request is the request with which the asker would send the object again.
func (s *sweep) request(what selection, object *unstructured.Unstructured) *request.Request {
	fields := request.Fields{
		Kind:      what.mapping.GroupVersionKind,
		Resource:  what.mapping.Resource,
		Name:      object.GetName(),
		Namespace: object.GetNamespace(),
		Operation: what.operation,
		User:      s.asker.User,
	}
	if fields.Kind == corev1.SchemeGroupVersion.WithKind("Namespace") {
		fields.Namespace = fields.Name
	}
	if what.operation != admission.Delete {
		fields.Object = object
	}
	if what.operation != admission.Create {
		fields.OldObject = object
	}
	return request.New(fields)
}

func (s selection) resource() string { return s.mapping.Resource.GroupResource().String() }

// within returns a context that ends when the share of its time is over that share
// returns. Without a deadline there is no share.
func within(ctx context.Context, share func(left time.Duration) time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, share(time.Until(deadline)))
}

// answerMargin is left of the time of a request for the answer, at most a fifth of it.
const answerMargin = 500 * time.Millisecond

// withBudget returns a context that ends after most, and in time for an answer.
func withBudget(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); !ok {
		return context.WithTimeout(ctx, most)
	}
	return within(ctx, func(left time.Duration) time.Duration { return min(left-min(answerMargin, left/5), most) })
}

// grade is what becomes of an object. The zero value is an error.
type grade uint8

const (
	gradeError   grade = iota // denied only because of what cannot be judged
	gradeDenied               // by a rule that fails
	gradeWarned               // allowed, with a warning
	gradeAudited              // allowed, and the audit log hears of it
	gradeIgnored              // allowed, because errors are ignored
	gradePassed
)

func gradeOf(answer *verdict.Verdict) grade {
	found := gradePassed
	for i := range answer.Evaluations {
		step := &answer.Evaluations[i]
		switch step.Outcome {
		case verdict.Denied:
			if step.Finding.Kind == verdict.Fail {
				return gradeDenied
			}
		case verdict.Warned:
			found = min(found, gradeWarned)
		case verdict.Audited:
			found = min(found, gradeAudited)
		case verdict.Failed:
			found = min(found, gradeIgnored)
		case verdict.Passed, verdict.Skipped, verdict.Unmatched, verdict.Changed:
		}
	}
	if !answer.Allowed {
		return gradeError
	}
	return found
}
