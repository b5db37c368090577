// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// concealedBy says what a policy has read of the cluster that the asker may not, and may
// have put into the object that it changes: from then on the object tells it. What it
// conceals of a Secret that the request carries stays concealed by itself.
func concealedBy(p *policy.Policy, findings []verdict.Finding) string {
	if len(p.Reads) == 0 {
		return ""
	}
	for i := range findings {
		if trace := findings[i].Trace; findings[i].Kind == verdict.Mutated && trace != nil && trace.Concealed != "" {
			return trace.Concealed
		}
	}
	return ""
}

// record records what a policy has found. What the asker may not read and stands in the
// object by now is not told.
func (r *run) record(origin *verdict.Origin, took time.Duration, findings []verdict.Finding) error {
	if r.concealed != "" {
		findings = slices.Clone(findings) // they are shared
		for i := range findings {
			findings[i].Trace = &verdict.Trace{Concealed: r.concealed}
		}
	}
	return r.recorder.Add(origin, took, findings...)
}

// brought says whether the policy, or a binding of it, is a candidate.
func (r *run) brought(bound *policy.Bound) bool {
	return r.candidates[bound.ID] || slices.ContainsFunc(bound.Bindings, func(b *policy.Unit) bool { return r.candidates[b.ID] })
}

// unheard records that a candidate is not asked: whoever brings it chooses its questions,
// and each answer would tell a bit of what stands in the object.
func (r *run) unheard(origin *verdict.Origin) error {
	return r.recorder.Add(origin, 0, verdict.Finding{
		Kind: verdict.Misconfigured, Message: "it is a candidate, and a stored policy has changed the object by what it read of " + r.concealed,
	})
}
