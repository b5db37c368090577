// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package headroom_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/portcullis-dev/portcullis/cmd/portcullis-apiserver/headroom"
)

// heapGoal returns at which size of the heap garbage is collected.
func heapGoal() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestHold(t *testing.T) {
	t.Setenv("GOGC", "")
	release := headroom.Hold()
	if got := heapGoal(); got < 2*headroom.Bytes {
		t.Errorf("garbage is collected at %d bytes, want at more than %d", got, 2*headroom.Bytes)
	}
	release()
	if got := heapGoal(); got >= 2*headroom.Bytes {
		t.Errorf("after its release, garbage is collected at %d bytes", got)
	}
}

// TestHoldYields pins that the environment comes first.
func TestHoldYields(t *testing.T) {
	const nothing, little, enough = math.MaxInt64, 100 << 20, 1 << 30
	tests := []struct {
		name, gogc string
		limit      int64 // what Go makes of GOMEMLIMIT when a process begins
		yields     bool
	}{
		{"GOGC", "100", nothing, true},
		{"a low GOMEMLIMIT", "", little, true},
		{"a high GOMEMLIMIT", "", enough, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			before := debug.SetMemoryLimit(test.limit)
			defer debug.SetMemoryLimit(before)
			release := headroom.Hold()
			defer release()
			if got := heapGoal(); (got < 2*headroom.Bytes) != test.yields {
				t.Errorf("garbage is collected at %d bytes; want at less than %d: %v", got, 2*headroom.Bytes, test.yields)
			}
		})
	}
}
