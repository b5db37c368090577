// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
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
	CPU, Wall time.Duration
	Allocs    float64
	Bytes     float64
}

// String implements fmt.Stringer.
func (c cost) String() string {
	return fmt.Sprintf("%10.1f µs CPU %10.1f µs wall %9.0f allocs %10.1f KiB", float64(c.CPU.Nanoseconds())/1e3, float64(c.Wall.Nanoseconds())/1e3, c.Allocs, c.Bytes/1024)
}

const (
	warmUp = 300 * time.Millisecond
	round  = 700 * time.Millisecond
	// A round goes on until collections have run, which otherwise fall into one round
	// and not into another, unless that takes too long.
	collections = 3
	longRound   = 5 * time.Second
)

// measure returns what op costs in one round.
func measure(t testing.TB, op func()) cost {
	t.Helper()
	for end := time.Now().Add(warmUp); time.Now().Before(end); { // what is built once, and what others have driven out of caches
		op()
	}
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
		CPU: spent / time.Duration(n), Wall: took / time.Duration(n),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
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
