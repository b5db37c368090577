// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// What a policy may take to find out that it takes too much.
const (
	mostMemory = 64 << 20
	mostTime   = 100 * time.Millisecond
	attempts   = 20
)

// TestDoublingFails: variables that double forty times fail within 100 ms and 64 MiB.
// The time is that of the best of some attempts, as others use the machine, too.
func TestDoublingFails(t *testing.T) {
	tests := map[string]string{
		"texts":       doubling(40),
		"expressions": "context:\n- name: v\n  variable:\n    value: [a]\n    jmesPath: \"" + repeated("[@,@]", 40) + "\"\nmutate: {patchStrategicMerge: {metadata: {annotations: {all: \"{{v}}\"}}}}",
		"flattened":   "context:\n- name: v\n  variable:\n    value: [a]\n    jmesPath: \"" + repeated("[@,@][]", 40) + "\"\nmutate: {patchStrategicMerge: {metadata: {annotations: {all: \"{{v}}\"}}}}",
		"itself":      "context:\n- {name: v, variable: {value: \"{{v}}{{v}}\"}}\nmutate: {patchStrategicMerge: {metadata: {annotations: {all: \"{{v}}\"}}}}",
	}
	for name, fields := range tests {
		t.Run(name, func(t *testing.T) {
			unit, view := compiled(t, rule(fields)), offlineView(t)
			req := create(object(t, pod))
			best := time.Hour
			for range attempts {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				begin := time.Now()
				findings := unit.Policy.Program.Evaluate(t.Context(), input(req, view))
				best = min(best, time.Since(begin))
				runtime.ReadMemStats(&after)
				if len(findings) != 1 || findings[0].Kind != verdict.Error {
					t.Fatalf("got %+v, want an error", findings)
				}
				if used := after.TotalAlloc - before.TotalAlloc; used > mostMemory {
					t.Fatalf("it has taken %d MiB", used>>20)
				}
			}
			t.Logf("%v", best)
			if best > mostTime*slowness {
				t.Errorf("it takes %v", best)
			}
		})
	}
}

func repeated(step string, times int) string {
	text := "@"
	for range times {
		text += " | " + step
	}
	return text
}
