// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/condition"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// maxNesting bounds how deeply lists may be gone through within each other.
const maxNesting = 10

// forEach goes through lists, one after the other.
type forEach struct{ loops []*loop }

// loop goes through one list.
type loop struct {
	list          *jmespath.Expression
	text          string
	descending    bool
	entries       []*scope.Entry
	preconditions *condition.Conditions
	body          mutation // a patch, or a forEach
}

// apply implements mutation. Each loop sees as request.object what the former have made
// of it; within a loop request.object stays, while the patches add up. See mutateForEach
// in Kyverno's pkg/engine/handlers/mutation. What variables can see is changed no more.
func (f *forEach) apply(ctx context.Context, e *evaluation, object map[string]any) (map[string]any, string, error) {
	var why string
	last := len(f.loops) - 1
	for i, loop := range f.loops {
		if last > 0 {
			e.series.Release()
		}
		changed, unmet, err := loop.apply(ctx, e, object)
		if err != nil {
			return nil, "", fmt.Errorf("foreach[%d]: %w", i, err)
		}
		why = cmp.Or(why, unmet)
		if i < last && !patch.Equal(object, changed) {
			e.show(&unstructured.Unstructured{Object: changed})
		}
		object = changed
	}
	return object, why, nil
}

// apply returns the changed object, and why the first element changed nothing, if it is
// known.
func (l *loop) apply(ctx context.Context, e *evaluation, object map[string]any) (changed map[string]any, why string, err error) {
	elements, err := l.elements(ctx, e)
	if err != nil {
		return nil, "", err
	}
	seen := e.shown
	for i := range elements {
		index := i
		if l.descending {
			index = len(elements) - 1 - i
		}
		if elements[index] == nil {
			continue
		}
		var unmet string
		if object, unmet, err = l.element(ctx, e, object, elements[index], index); err != nil {
			return nil, "", fmt.Errorf("element %d of %s: %w", index, l.text, err)
		}
		if unmet != "" && why == "" {
			why = fmt.Sprintf("element %d of %s: %s", index, l.text, unmet)
		}
		e.show(seen) // what an inner loop has shown of its work ends with it
	}
	return object, why, nil
}

// elements returns what the list stands for: what is no list is its only element.
func (l *loop) elements(ctx context.Context, e *evaluation) ([]any, error) {
	value, err := l.list.Search(ctx, e.run, e.variables)
	if e.run.Resolved != nil {
		e.run.Resolved(l.text, value, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.text, err)
	}
	if elements, ok := value.([]any); ok {
		return elements, nil
	}
	return []any{value}, nil
}

// element applies the body for one element.
func (l *loop) element(ctx context.Context, e *evaluation, object map[string]any, element any, index int) (map[string]any, string, error) {
	if err := e.run.Spend(ctx, 1, 0); err != nil {
		return nil, "", err
	}
	pop := e.variables.Push(element, index)
	defer pop()
	end := e.variables.Begin(l.entries)
	defer end()
	held, why, err := l.preconditions.Holds(ctx, e.run, e.variables)
	if err != nil {
		return nil, "", fmt.Errorf("preconditions: %w", err)
	}
	if !held {
		return object, "preconditions not met: " + why, nil
	}
	return l.body.apply(ctx, e, object)
}

// forEach compiles the loops of a rule.
func (c *ruleCompiler) forEach(specs []kyvernov1.ForEachMutation, path *field.Path) mutation {
	return c.loops(specs, path, 1)
}

func (c *ruleCompiler) loops(specs []kyvernov1.ForEachMutation, path *field.Path, nesting int) *forEach {
	if nesting > maxNesting {
		c.errs = append(c.errs, field.Forbidden(path, fmt.Sprintf("foreach may be nested %d times at most", maxNesting)))
		return nil
	}
	compiled := &forEach{}
	for i := range specs {
		compiled.loops = append(compiled.loops, c.loop(&specs[i], path.Index(i), nesting))
	}
	return compiled
}

func (c *ruleCompiler) loop(spec *kyvernov1.ForEachMutation, path *field.Path, nesting int) *loop {
	compiled := &loop{text: spec.List, descending: spec.PatchStrategicMerge != nil}
	if spec.Order != nil {
		compiled.descending = *spec.Order == kyvernov1.Descending
	}
	list, err := c.templates.Expressions.Compile(spec.List)
	if err != nil {
		text := err.Error()
		if strings.Contains(spec.List, "{{") {
			text += ": a list is an expression, without braces"
		}
		fault := field.Invalid(path.Child("list"), spec.List, text)
		if list != nil {
			fault = fault.WithOrigin(policy.OriginRequest)
		}
		c.errs = append(c.errs, fault)
	} else if name, ok := list.Needed(); ok {
		c.uses([]template.Use{{Name: name, Leading: true, Expression: spec.List}}, path.Child("list"))
	}
	compiled.list = list
	c.nesting = nesting
	defer func() { c.nesting = nesting - 1 }()
	document, err := decoded(spec)
	if err != nil {
		c.errs = append(c.errs, field.InternalError(path, err))
	}
	at := func(parts ...string) template.Place { return template.Place{Rule: document, Path: parts} }
	compiled.entries = c.entries(spec.Context, at("context"), path.Child("context"))
	compiled.preconditions = c.conditions(spec.Preconditions, at("preconditions"), path.Child("preconditions"))
	compiled.body = c.body(spec, at(), path, nesting)
	if compiled.body == nil && len(c.errs) == 0 {
		c.errs = append(c.errs, field.Required(path, "say what is changed: patchStrategicMerge, patchesJson6902 or foreach"))
	}
	return compiled
}

// body compiles what is done with each element.
func (c *ruleCompiler) body(spec *kyvernov1.ForEachMutation, at template.Place, path *field.Path, nesting int) mutation {
	if spec.ForEach == nil {
		return c.patch(spec.PatchStrategicMerge, spec.PatchesJSON6902, at, path)
	}
	var inner []kyvernov1.ForEachMutation
	strict, err := kjson.UnmarshalStrict(spec.ForEach.Raw, &inner)
	if err != nil {
		strict = append(strict, err)
	}
	if len(strict) > 0 {
		for _, err := range strict {
			c.errs = append(c.errs, field.Invalid(path.Child("foreach"), field.OmitValueType{}, err.Error()))
		}
		return nil
	}
	if loops := c.loops(slices.Clip(inner), path.Child("foreach"), nesting+1); loops != nil {
		return loops
	}
	return nil
}
