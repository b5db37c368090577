// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package dialecttest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Stamp is a whole dialect that mutates. Its policies are Unstructured objects of one
// kind, Stamp when Kind is empty, that set the label "label" to "value" where the object
// has the label "when", or always without one; with "more" the value is appended. The
// value "panic" panics, and "error" is a run-time error.
type Stamp struct{ Kind string }

var _ policy.Dialect = Stamp{}

// Name implements policy.Dialect.
func (s Stamp) Name() string { return "stamp" + s.Kind }

// Kinds implements policy.Dialect.
func (s Stamp) Kinds() []string { return []string{s.kind()} }

func (s Stamp) kind() string {
	if s.Kind == "" {
		return "Stamp"
	}
	return s.Kind
}

// Compile implements policy.Dialect.
func (s Stamp) Compile(_ context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	stored, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, field.ErrorList{field.InternalError(nil, fmt.Errorf("%T is not a %s", obj, s.kind()))}
	}
	var program stamp
	program.label, _ = stored.Object["label"].(string)
	program.value, _ = stored.Object["value"].(string)
	program.when, _ = stored.Object["when"].(string)
	program.more, _ = stored.Object["more"].(bool)
	var errs field.ErrorList
	if program.label == "" {
		errs = append(errs, field.Required(field.NewPath("label"), "the key of a label"))
	}
	return &policy.Unit{
		ID:     policy.ID{Kind: s.kind(), Name: stored.GetName()},
		Policy: &policy.Policy{Criteria: match.Compile(nil), Program: &program, Mutates: true},
	}, errs
}

type stamp struct {
	label, value, when string
	more               bool
}

// Evaluate implements policy.Program.
func (s *stamp) Evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	finding := verdict.Finding{Rule: "stamp"}
	labels := in.Request.Object.GetLabels()
	_, applies := labels[s.when]
	value := s.value
	if s.more {
		value = labels[s.label] + value
	}
	switch {
	case ctx.Err() != nil:
		finding.Kind, finding.Message = verdict.Error, ctx.Err().Error()
	case s.value == "panic":
		panic("the stamp panics")
	case s.label == "" || s.value == "error":
		finding.Kind, finding.Message = verdict.Error, "no stamp"
	case s.when != "" && !applies:
		finding.Kind, finding.Message = verdict.Skip, "no label "+s.when
	case labels[s.label] == value:
		finding.Kind, finding.Message = verdict.Skip, "nothing to change"
	default:
		object := in.Request.Object.DeepCopy()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[s.label] = value
		object.SetLabels(labels)
		finding.Kind, finding.Object = verdict.Mutated, object
	}
	return []verdict.Finding{finding}
}
