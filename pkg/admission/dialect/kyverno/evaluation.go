// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

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
	// controlled says that the object is a ReplicaSet with a controller.
	controlled bool
}

func newEvaluation(in policy.Input) *evaluation {
	req := in.Request
	e := &evaluation{
		in: in,
		run: &jmespath.Run{
			Now: req.Time, Seed: string(req.UID), Steps: maxSteps, Bytes: maxBytes,
			Deletes: req.Operation == admission.Delete,
		},
		subject:    selection.NewSubject(req, in.View),
		controlled: controlledReplicaSet(req),
		object:     req.Object,
		shown:      req.Object,
	}
	e.variables = scope.New(in, e.run)
	e.explain()
	return e
}

// apply applies a rule to the object.
func (e *evaluation) apply(ctx context.Context, r *rule) verdict.Finding {
	if r.replaced {
		return verdict.Finding{Kind: verdict.NotMatched, Message: notApplied}
	}
	if r.selection != nil {
		matched, err := r.selection.Matches(ctx, e.subject)
		if err != nil {
			return failed(r, err)
		}
		if !matched {
			return verdict.Finding{Kind: verdict.NotMatched, Message: e.whyNot(ctx, r)}
		}
	}
	if r.generated && e.controlled { // it would change nothing else, whatever is wrong with it
		return verdict.Finding{Kind: verdict.Skip, Message: wouldBeMadeAgain}
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
	case e.controlled && !sameTemplate(e.object.Object, changed):
		return verdict.Finding{Kind: verdict.Skip, Message: wouldBeMadeAgain}
	}
	if err := sameIdentity(e.in.Request, e.object.Object, changed); err != nil {
		return failed(r, err)
	}
	e.become(&unstructured.Unstructured{Object: changed})
	return verdict.Finding{Kind: verdict.Mutated, Object: e.object, Message: refusable(r, changed)}
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
	if r.generated {
		return verdict.Finding{Kind: verdict.Error, Message: fmt.Sprintf("rule %q (made of rule %q for controllers of Pods): %s", r.name, r.madeOf, err)}
	}
	return verdict.Finding{Kind: verdict.Error, Message: fmt.Sprintf("rule %q: %s", r.name, err)}
}
