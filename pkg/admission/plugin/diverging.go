// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// diverging returns what the policies would change if object, which they have made,
// came as a request: nothing, if the chain converges. Two policies that undo each
// other's work and leave the object as it was converge.
func (r *Registered) diverging(ctx context.Context, trial chain.Trial, object *unstructured.Unstructured) ([]verdict.Divergence, error) {
	trial.Request = another(trial.Request, object)
	again, err := r.run(ctx, trial, r.mutate)
	if err != nil || again.Object == nil {
		return nil, err
	}
	changes := patch.Diff(object.Object, again.Object.Object)
	if len(changes) == 0 {
		return nil, nil
	}
	var found []verdict.Divergence
	before, concealed, changed := object, concealment(again.Evaluations), placesOf(changes)
	for i := range again.Evaluations {
		evaluation := &again.Evaluations[i]
		if evaluation.Outcome != verdict.Changed || evaluation.Finding.Object == nil {
			continue
		}
		after := evaluation.Finding.Object
		if changed.touchedBy(patch.Diff(before.Object, after.Object)) {
			found = append(found, verdict.Divergence{Policy: evaluation.Policy, Rule: evaluation.Finding.Rule, Before: before, After: after, Concealed: concealed})
		}
		before = after
	}
	return found, nil
}

// another returns a request like req for object. What is random, and what stands for the
// request itself, is no longer the same.
func another(req *request.Request, object *unstructured.Unstructured) *request.Request {
	fields := req.Fields
	fields.UID, fields.Object = fields.UID+"-again", object
	return request.New(fields)
}

// concealment says what a rule has put into the object that the asker may not read.
func concealment(evaluations []verdict.Evaluation) string {
	for i := range evaluations {
		if trace := evaluations[i].Finding.Trace; evaluations[i].Outcome == verdict.Changed && trace != nil && trace.Concealed != "" {
			return trace.Concealed
		}
	}
	return ""
}

// places are the fields that a patch changes.
type places struct {
	// changed are their paths, and above those and the paths of all that they are in.
	changed, above map[string]bool
}

func placesOf(operations []patch.Operation) places {
	p := places{changed: make(map[string]bool, len(operations)), above: map[string]bool{}}
	for i := range operations {
		path := operations[i].Path
		p.changed[path] = true
		for !p.above[path] {
			p.above[path] = true
			path = path[:max(0, strings.LastIndexByte(path, '/'))]
		}
	}
	return p
}

// touchedBy says whether another patch changes one of the fields, or one of the two a
// field within a field of the other.
func (p *places) touchedBy(operations []patch.Operation) bool {
	for i := range operations {
		path := operations[i].Path
		if p.above[path] {
			return true
		}
		for path != "" {
			if p.changed[path] {
				return true
			}
			path = path[:max(0, strings.LastIndexByte(path, '/'))]
		}
	}
	return false
}
