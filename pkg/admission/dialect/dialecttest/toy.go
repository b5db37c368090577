// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package dialecttest

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Toy is a whole dialect. Its policies are Unstructured objects of the kind
// Toy whose field "forbid" is a word that no object may have in its name; the
// word "panic" panics, "read" reads a Namespace that does not exist, "exhaust" takes too
// long, and no word at all is a run-time error.
type Toy struct{}

var _ policy.Dialect = Toy{}

// Name implements policy.Dialect.
func (Toy) Name() string { return "toy" }

// Kinds implements policy.Dialect.
func (Toy) Kinds() []string { return []string{"Toy"} }

// Compile implements policy.Dialect.
func (Toy) Compile(_ context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	stored, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, field.ErrorList{field.InternalError(nil, fmt.Errorf("%T is not a Toy", obj))}
	}
	var errs field.ErrorList
	forbid, ok := stored.Object["forbid"].(string)
	if !ok {
		errs = append(errs, field.Required(field.NewPath("forbid"), "a word"))
	}
	return &policy.Unit{
		ID:     policy.ID{Kind: "Toy", Name: stored.GetName()},
		Policy: &policy.Policy{Criteria: match.Compile(nil), Program: forbidden(forbid)},
	}, errs
}

// forbidden is a program: the word that no name may contain.
type forbidden string

// Evaluate implements policy.Program.
func (f forbidden) Evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	finding := verdict.Finding{Kind: verdict.Pass, Rule: "forbid", Expression: string(f)}
	switch {
	case ctx.Err() != nil:
		finding.Kind, finding.Message = verdict.Error, ctx.Err().Error()
	case f == "panic":
		panic("the toy panics")
	case f == "read":
		if _, err := in.View.Namespace(ctx, "absent"); err != nil {
			finding.Kind, finding.Message = verdict.Error, err.Error()
		}
	case f == "exhaust":
		finding.Kind, finding.Message = verdict.Error, "the budget is spent"
	case f == "":
		finding.Kind, finding.Message = verdict.Error, "no word is forbidden"
	case strings.Contains(in.Request.Name, string(f)):
		finding.Kind, finding.Message = verdict.Fail, fmt.Sprintf("the name contains %q", string(f))
	}
	return []verdict.Finding{finding}
}
