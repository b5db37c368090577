// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// heapGoal returns at which size of the heap garbage is collected.
func heapGoal() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestHeadroom(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	release := holdHeadroom()
	if got := heapGoal(); got < 2*headroomBytes {
		t.Errorf("garbage is collected at %d bytes, want at more than %d", got, 2*headroomBytes)
	}
	release()
	if got := heapGoal(); got >= 2*headroomBytes {
		t.Errorf("after its release, garbage is collected at %d bytes", got)
	}
}

// TestHeadroomYields pins that the environment comes first.
func TestHeadroomYields(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			release := holdHeadroom()
			defer release()
			if got := heapGoal(); got >= 2*headroomBytes {
				t.Errorf("garbage is collected at %d bytes, want at less than %d", got, 2*headroomBytes)
			}
		})
	}
}
