// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package headroom_test

import (
	"runtime"
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
	t.Setenv("GOMEMLIMIT", "")
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
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			release := headroom.Hold()
			defer release()
			if got := heapGoal(); got >= 2*headroom.Bytes {
				t.Errorf("garbage is collected at %d bytes, want at less than %d", got, 2*headroom.Bytes)
			}
		})
	}
}
