// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// TestFound: an index finds a policy for every object for which it may have something to
// say, and for few others.
func TestFound(t *testing.T) {
	const (
		named      = "rules: [{name: r, match: {any: [{resources: {kinds: [Pod], names: ['api-*'], namespaces: [shop]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]"
		labelled   = "rules: [{name: r, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {tier: front}}}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]"
		conditions = "webhookConfiguration: {matchConditions: [{name: c, expression: \"object.metadata.nothing == 'x'\"}]}\n"
	)
	tests := []struct {
		name, policy string
		found        bool
	}{
		{"another name", named, false},
		{"its name", strings.Replace(named, "api-*", "we?", 1), true},
		{"another namespace", strings.Replace(strings.Replace(named, "api-*", "web", 1), "shop", "bank", 1), false},
		{"other labels", labelled, false},
		{"its labels", strings.Replace(labelled, "tier: front", "app: web", 1), true},
		{"conditions that fail, whatever the name is", conditions + named, true},
		{"conditions that fail, whatever the labels are", conditions + labelled, true},
		{"a match that does not compile", strings.Replace(named, "kinds: [Pod]", "kinds: [Pod, a/b/c/d/e]", 1), true},
		{"a rule with faults about another kind", "rules: [{name: r, match: {any: [{resources: {kinds: [Secret], name: a, names: [b]}}]}, mutate: {patchStrategicMerge: {a: b}}}]", false},
		{"no rules", "background: false", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			unit, _ := kyverno.New().Compile(t.Context(), clusterPolicy(t, test.policy))
			set := (&policy.Set{}).Edit(nil, []*policy.Unit{unit})
			found := set.Candidates(match.NewSubject(create(object(t, pod)), offlineView(t)), nil)
			if (len(found) == 1) != test.found {
				t.Errorf("%d policies are found, want any: %t", len(found), test.found)
			}
		})
	}
}
