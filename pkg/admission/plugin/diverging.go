// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// diverging returns what the policies would change if object, which they have made,
// came as a request: nothing, if the chain converges. Two policies that undo each
// other's work and leave the object as it was converge.
func (r *Registered) diverging(ctx context.Context, trial chain.Trial, object *unstructured.Unstructured) ([]verdict.Divergence, error) {
	trial.Request, trial.Explain = trial.Request.WithObject(object), nil
	again, err := r.run(ctx, trial, r.mutate)
	if err != nil || again.Object == nil {
		return nil, err
	}
	changes := patch.Diff(object.Object, again.Object.Object)
	if len(changes) == 0 {
		return nil, nil
	}
	var found []verdict.Divergence
	before := object
	for i := range again.Evaluations {
		evaluation := &again.Evaluations[i]
		if evaluation.Outcome != verdict.Changed || evaluation.Finding.Object == nil {
			continue
		}
		after := evaluation.Finding.Object
		if touches(patch.Diff(before.Object, after.Object), changes) {
			found = append(found, verdict.Divergence{Policy: evaluation.Policy, Rule: evaluation.Finding.Rule, Before: before, After: after})
		}
		before = after
	}
	return found, nil
}

// touches says whether two patches change the same field, or one of them a field
// within a field of the other.
func touches(a, b []patch.Operation) bool {
	for i := range a {
		for j := range b {
			if within(a[i].Path, b[j].Path) || within(b[j].Path, a[i].Path) {
				return true
			}
		}
	}
	return false
}

func within(path, outer string) bool {
	return path == outer || strings.HasPrefix(path, outer+"/")
}
