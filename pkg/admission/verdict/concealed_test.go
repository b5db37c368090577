// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFoldConceals: what a trace conceals is in no audit annotation, and changes
// nothing of what whoever sends the request is told.
func TestFoldConceals(t *testing.T) {
	const data = "kanarienvogel"
	steps := func(trace *Trace) []Step {
		id := PolicyID{Kind: "P", Name: "p"}
		return []Step{
			{Origin: Origin{Policy: id, Binding: "b", Actions: []Action{Audit}}, Finding: Finding{Kind: Fail, Message: data + " 1", Trace: trace}},
			{Origin: Origin{Policy: id, Binding: "b", Actions: []Action{Warn, Audit}}, Finding: Finding{Kind: Error, Message: data + " 2", Trace: trace}},
			{Origin: Origin{Policy: id, Binding: "b", Actions: []Action{Deny}}, Finding: Finding{Kind: Fail, Message: data + " 3", Trace: trace}},
			{Origin: Origin{Policy: id, OnError: Ignore}, Finding: Finding{Kind: Misconfigured, Message: data + " 4", Trace: trace}},
			{Origin: Origin{Policy: id, Binding: "b"}, Finding: Finding{Kind: Annotation, Key: "k", Value: data, Trace: trace}},
		}
	}
	plain := Fold(steps(nil))
	if got := Fold(steps(&Trace{Cost: 1})); !cmp.Equal(got.AuditAnnotations, plain.AuditAnnotations) || !strings.Contains(plain.AuditAnnotations["p/k"], data) {
		t.Errorf("a trace that conceals nothing: got annotations %v, want %v", got.AuditAnnotations, plain.AuditAnnotations)
	}
	got := Fold(steps(&Trace{Concealed: "Secret ns/x: you may not get it"}))
	want := map[string]string{
		"p/k": "(concealed: Secret ns/x: you may not get it)",
		ValidationFailureKey: `[{"message":"(concealed: Secret ns/x: you may not get it)","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Audit"]},` +
			`{"message":"(concealed: Secret ns/x: you may not get it)","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Warn","Audit"]}]`,
	}
	if diff := cmp.Diff(want, got.AuditAnnotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(plain.Denials) != 1 || len(plain.Warnings) != 1 {
		t.Errorf("got %+v, want a denial and a warning", plain)
	}
	for _, v := range []*Verdict{&plain, &got} {
		v.AuditAnnotations = nil
		for i := range v.Evaluations {
			v.Evaluations[i].Finding.Trace = nil
		}
	}
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("all else (-without +with):\n%s", diff)
	}
}
