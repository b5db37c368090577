// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestFirstMatched(t *testing.T) {
	const metrics = `portcullis_policy_evaluations_total{dialect="kyverno",kind="ClusterPolicy",outcome="notmatched",policy="unmatched-0000"} 3
portcullis_policy_evaluations_total{dialect="kyverno",kind="ClusterPolicy",outcome="mutated",policy="unmatched-0000"} 0
portcullis_policy_evaluations_total{dialect="kyverno",kind="ClusterPolicy",outcome="mutated",policy="busy"} 7
portcullis_policy_evaluations_total{dialect="kyverno",kind="Policy",outcome="mutated",policy="other-0001/unmatched-0001"} 0
`
	const skipped = `portcullis_policy_evaluations_total{dialect="kyverno",kind="ClusterPolicy",outcome="skipped",policy="unmatched-0002"} 10
`
	tests := []struct {
		name, metrics string
		installed     int
		want          string
	}{
		{name: "none"},
		{name: "all", metrics: metrics, installed: 2},
		{name: "one is missing", metrics: metrics, installed: 3, want: "2 of 3 that do not match are in force"},
		{name: "one matches", metrics: metrics + skipped, installed: 3, want: "unmatched-0002 matches"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := firstMatched([]byte(test.metrics), test.installed); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
