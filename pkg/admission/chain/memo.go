// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// memo is what one request has learned of one policy, for its other bindings:
// what a program finds follows from the request, the kind under which the policy
// matches, the view and the param, of which only the param differs. A nil memo
// keeps nothing. What panics is not kept either, and tried again.
type memo struct {
	byParam map[*unstructured.Unstructured][]verdict.Finding
	params  map[*policy.Params]selection // equal ones are the same: see policy.Interner
	kept    int                          // params in both maps
}

// maxKept bounds the params in a memo. What is found beyond that is found again.
const maxKept = 10_000

// selection is what params select, or why they cannot.
type selection struct {
	params []param
	err    error
}

// memo returns nil where it would not be asked, and where someone asks for
// explanations: each finding has its own.
func (r *run) memo(bound *policy.Bound) *memo {
	if r.explain != nil || len(bound.Bindings) < 2 {
		return nil
	}
	return &memo{byParam: map[*unstructured.Unstructured][]verdict.Finding{}, params: map[*policy.Params]selection{}}
}

// findings returns what has been found with a param, and whether that is known.
func (m *memo) findings(param *unstructured.Unstructured) ([]verdict.Finding, bool) {
	if m == nil {
		return nil, false
	}
	found, ok := m.byParam[param]
	return found, ok
}

func (m *memo) found(param *unstructured.Unstructured, findings []verdict.Finding) {
	if m != nil && m.keep(1) {
		m.byParam[param] = findings
	}
}

// selection returns what params select, by asking for it the first time.
func (m *memo) selection(of *policy.Params, ask func() ([]param, error)) ([]param, error) {
	if m == nil {
		return ask()
	}
	known, ok := m.params[of]
	if !ok {
		known.params, known.err = ask()
		if m.keep(1 + len(known.params)) {
			m.params[of] = known
		}
	}
	return known.params, known.err
}

// keep says whether there is room for so many params more, and takes it.
func (m *memo) keep(params int) bool {
	if m.kept+params > maxKept {
		return false
	}
	m.kept += params
	return true
}
