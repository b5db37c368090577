// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"strings"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// What follows says which veil keeps something from being shown, as the text of
// the veil; an empty text lets it be shown. A variable of the policy may be shown
// when everything may that it is computed from.

func (e *explanation) overSources(ctx context.Context, sources []string) string {
	if len(e.veils) == 0 {
		return ""
	}
	for _, source := range sources {
		if text := e.overSource(ctx, source); text != "" {
			return text
		}
	}
	return ""
}

func (e *explanation) overSource(ctx context.Context, source string) string {
	if reads, ok := e.readsOf(ctx, source); ok {
		return e.over(ctx, reads)
	}
	return e.overText(source)
}

// readsOf returns false when an expression cannot be looked into: its policy has
// faults or is too large, or the request has no room for it.
func (e *explanation) readsOf(ctx context.Context, source string) ([]path, bool) {
	if e.tracer == nil || ctx.Err() != nil {
		return nil, false
	}
	expression := e.tracer.expressions[source]
	if expression == nil || !expression.compile() {
		return nil, false
	}
	return expression.reads, true
}

func (e *explanation) over(ctx context.Context, reads []path) string {
	if len(e.veils) == 0 {
		return ""
	}
	for _, read := range reads {
		if read.root == plugincel.VariableVarName {
			if text := e.overVariable(ctx, read.steps); text != "" {
				return text
			}
			continue
		}
		for i := range e.veils {
			if veil := &e.veils[i]; veil.variable == read.root && !veil.bare(read.steps) {
				return veil.text
			}
		}
	}
	return ""
}

func (e *explanation) overVariable(ctx context.Context, steps []string) string {
	if len(steps) == 0 { // any of them
		return e.veils.first()
	}
	name := steps[0]
	if text, known := e.computed[name]; known {
		return text
	}
	// As long as it is looked at, and when there is none of that name.
	text := e.veils.first()
	e.computed[name] = text
	for i := range e.spec.Variables {
		if e.spec.Variables[i].Name == name {
			text = e.overSource(ctx, e.spec.Variables[i].Expression)
		}
	}
	e.computed[name] = text
	return text
}

// overText knows only that an expression cannot read what it does not name.
func (e *explanation) overText(source string) string {
	for i := range e.veils {
		if strings.Contains(source, e.veils[i].variable) {
			return e.veils[i].text
		}
	}
	if !strings.Contains(source, plugincel.VariableVarName) {
		return ""
	}
	if e.anyVariable == nil {
		var text string
		for i := range e.spec.Variables {
			for j := range e.veils {
				if text == "" && strings.Contains(e.spec.Variables[i].Expression, e.veils[j].variable) {
					text = e.veils[j].text
				}
			}
		}
		e.anyVariable = &text
	}
	return *e.anyVariable
}
