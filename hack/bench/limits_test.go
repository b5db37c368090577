// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	targets := []*target{{name: "no-op"}, {name: "portcullis+10"}, {name: "portcullis+1000"}}
	r := &rounds{}
	for range 3 {
		samples := make([]*sample, len(targets))
		for i, micros := range []int{100, 150, 180} {
			samples[i] = &sample{requests: 1, cpu: time.Duration(micros) * time.Microsecond}
		}
		r.samples = append(r.samples, samples)
	}
	tests := []struct {
		name                string
		beside              numbers
		maxRatio, maxGrowth float64
		want, fault         string
	}{
		{name: "no limits", beside: numbers{10, 1000}},
		{
			name: "one server does not grow", maxRatio: 1.5, maxGrowth: 0.1,
			want: "\nportcullis+10 needs 1.50 (1.50 to 1.50) times the CPU time of no-op, at most 1.50: met\n",
		},
		{
			name: "met", beside: numbers{10, 1000}, maxGrowth: 1.2,
			want: "\nportcullis+1000 needs 1.20 (1.20 to 1.20) times the CPU time of portcullis+10, at most 1.20: met\n",
		},
		{
			name: "missed", beside: numbers{10, 1000}, maxRatio: 1.6, maxGrowth: 1.1,
			want: "\nportcullis+10 needs 1.50 (1.50 to 1.50) times the CPU time of no-op, at most 1.60: met\n" +
				"portcullis+1000 needs 1.80 (1.80 to 1.80) times the CPU time of no-op, at most 1.60: MISSED\n" +
				"portcullis+1000 needs 1.20 (1.20 to 1.20) times the CPU time of portcullis+10, at most 1.10: MISSED\n",
			fault: "portcullis+1000 needs 1.80 times the CPU time of no-op, want at most 1.60\n" +
				"portcullis+1000 needs 1.20 times the CPU time of portcullis+10, want at most 1.10",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			err := r.check(&out, limitsOf(&options{unmatched: test.beside, maxRatio: test.maxRatio, maxGrowth: test.maxGrowth}, targets))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.fault || out.String() != test.want {
				t.Errorf("got error %q and\n%s\nwant %q and\n%s", got, &out, test.fault, test.want)
			}
		})
	}
}
