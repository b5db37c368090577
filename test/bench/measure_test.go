// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/cmd/portcullis-apiserver/headroom"
)

// TestMain gives both sides the headroom of the server, and keeps upstream from
// telling each second that it looks for changes.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	release := headroom.Hold()
	code := m.Run()
	release()
	os.Exit(code)
}

// cpu is the time that the process has spent on all its threads, the garbage
// collector among them.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap is what is in use after everything else has been collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what cleanups and pools let go
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// cost is what one operation takes.
type cost struct {
	cpu, wall time.Duration
	allocs    float64
	bytes     float64
}

const (
	rounds = 5
	round  = 700 * time.Millisecond
	// A round goes on until collections have run, which otherwise fall into one round
	// and not into another, unless that takes too long.
	collections = 3
	longRound   = 6 * time.Second
)

// measure returns the median of several rounds.
func measure(t testing.TB, op func()) cost {
	t.Helper()
	op() // what is built once
	costs := make([]cost, rounds)
	for i := range costs {
		costs[i] = measureRound(t, op)
	}
	slices.SortFunc(costs, func(a, b cost) int { return int(a.cpu - b.cpu) })
	return costs[rounds/2]
}

func measureRound(t testing.TB, op func()) cost {
	t.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, beginCPU, n := time.Now(), cpu(t), 0
	for after.NumGC < before.NumGC+collections && time.Since(begin) < longRound {
		for end := time.Now().Add(round); n < 20 || time.Now().Before(end); n++ {
			op()
		}
		runtime.ReadMemStats(&after)
	}
	spent, took := cpu(t)-beginCPU, time.Since(begin)
	return cost{
		cpu: spent / time.Duration(n), wall: took / time.Duration(n),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}
}

// benchmark runs op as a benchmark does, and reports the CPU time beside.
func benchmark(b *testing.B, op func()) {
	b.Helper()
	op()
	b.ReportAllocs()
	begin := cpu(b)
	for b.Loop() {
		op()
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(b.N), "cpu-ns/op")
}
