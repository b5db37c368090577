// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// What an explanation shows of the variables of a rule.
const (
	maxShown      = 200  // variables
	maxShownBytes = 4096 // of the JSON of each
)

// resolved collects what the variables of a rule were, for an explanation.
type resolved struct{ values map[string]json.RawMessage }

// explain has the variables collected where someone asks for them.
func (e *evaluation) explain() {
	if e.in.Explain == nil {
		return
	}
	e.resolved = &resolved{values: map[string]json.RawMessage{}}
	e.run.Resolved = e.resolved.add
}

// add keeps the first value that an expression had. In a loop there are more.
func (r *resolved) add(expression string, value any, err error) {
	if _, known := r.values[expression]; known || len(r.values) >= maxShown || len(expression) > maxShownBytes {
		return
	}
	if err != nil {
		r.values[expression] = shown(map[string]any{"error": err.Error()})
		return
	}
	r.values[expression] = shown(value)
}

// shown returns the JSON of a value, or a text instead of one that is too large. It does
// not walk more of that than would be shown.
func shown(value any) json.RawMessage {
	if _, fits := patch.Size(value, maxShownBytes, maxShownBytes); fits {
		if raw, err := json.Marshal(value); err == nil {
			return raw
		}
	}
	raw, err := json.Marshal(fmt.Sprintf("(more than %d bytes of JSON)", maxShownBytes))
	if err != nil { // unreachable: it is a text
		return nil
	}
	return raw
}

// tell adds to a finding what the variables were, as far as whoever asks may know it.
func (e *evaluation) tell(ctx context.Context, finding *verdict.Finding) {
	if e.resolved == nil {
		return
	}
	trace := &verdict.Trace{Values: e.resolved.values, Concealed: e.concealed(ctx)}
	if trace.Concealed != "" {
		trace.Values = nil
	}
	finding.Trace = trace
	e.resolved.values = map[string]json.RawMessage{}
}

// concealed says which object the variables of the policy come from that whoever asks
// may not get.
func (e *evaluation) concealed(ctx context.Context) string {
	if ref, ok := e.secret(); ok && !e.mayRead(ctx, ref) {
		return "the data of the Secret, which you may not get"
	}
	for _, ref := range e.variables.Read() {
		if !e.mayRead(ctx, ref) {
			return fmt.Sprintf("%s %s/%s, which you may not get", ref.Kind, ref.Namespace, ref.Name)
		}
	}
	return ""
}

func (e *evaluation) mayRead(ctx context.Context, ref verdict.ParamRef) bool {
	return e.in.Explain.MayRead != nil && e.in.Explain.MayRead(ctx, ref)
}

// secret returns the reference of the object of the request if that is a Secret.
func (e *evaluation) secret() (verdict.ParamRef, bool) {
	req := e.in.Request
	if req.Kind.Group != "" || req.Kind.Kind != "Secret" {
		return verdict.ParamRef{}, false
	}
	return verdict.ParamRef{APIVersion: req.Kind.Version, Kind: req.Kind.Kind, Namespace: req.Namespace, Name: req.Name}, true
}

// whyNot says why a rule is not about the request, where someone asks.
func (e *evaluation) whyNot(ctx context.Context, r *rule) string {
	if e.in.Explain == nil {
		return ""
	}
	return r.selection.WhyNot(ctx, e.subject)
}
