// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"encoding/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/autogen"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// What there is room for in the status of a policy beside its spec: a stored object has
// 1 MiB at most.
const (
	maxGeneratedBytes = 128 << 10 // of the JSON of rules that are made of others
	maxSpecBytes      = 512 << 10 // of the JSON of a spec beside which any are shown
)

// generatedRules are the rules that are made of those of a policy, the first ones if
// there is no room for all.
func generatedRules(annotations map[string]string, spec *kyvernov1.Spec) v1alpha1.AutogenStatus {
	rules := autogen.Generated(annotations, spec)
	shown := 0
	if raw, err := json.Marshal(spec); err == nil && len(raw) <= maxSpecBytes {
		shown = fitting(rules, maxGeneratedBytes)
	}
	return v1alpha1.AutogenStatus{Rules: rules[:shown:shown], Omitted: int32(min(len(rules)-shown, 1<<30))}
}

// fitting returns how many of the first rules have no more than some bytes of JSON.
func fitting(rules []kyvernov1.Rule, room int) int {
	for i := range rules {
		raw, err := json.Marshal(&rules[i])
		if room -= len(raw); err != nil || room < 0 {
			return i
		}
	}
	return len(rules)
}
