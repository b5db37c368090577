// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// result is what was measured of one side.
type result struct {
	cost      cost
	compiling time.Duration // CPU time a policy
	heap      float64       // bytes a policy
	waking    time.Duration // a policy
}

// TestCompare measures both sides in one run, prints what they cost and fails when
// a ratio is above its limit. Machines differ and neighbours disturb, so it only
// runs on demand: PORTCULLIS_COMPARE=1, or make bench-compare.
func TestCompare(t *testing.T) {
	if os.Getenv("PORTCULLIS_COMPARE") == "" {
		t.Skip("set PORTCULLIS_COMPARE=1 to measure beside upstream; that takes minutes and 4 GiB of memory")
	}
	ten, thousand, tenThousand, bindings := workloads()
	ours, theirs := map[workload]result{}, map[workload]result{}
	for _, w := range []workload{ten, thousand, tenThousand, bindings} { // one after the other: the heap of one is no burden to the next
		t.Run("portcullis "+w.name, func(t *testing.T) { ours[w] = portcullisResult(t, w) })
		t.Run("upstream "+w.name, func(t *testing.T) { theirs[w] = upstreamResult(t, w) })
	}
	inUse := tenThousand
	inUse.inUse = true
	t.Run("portcullis, all in use", func(t *testing.T) { ours[inUse] = portcullisResult(t, inUse) })
	if t.Failed() {
		return
	}
	t.Logf("%s, GOMAXPROCS %d, median of %d rounds; CPU is that of the process, garbage collection included", runtime.Version(), runtime.GOMAXPROCS(0), rounds)
	for _, w := range []workload{ten, thousand, tenThousand, bindings} {
		t.Logf("%-22s portcullis %s", w.name, ours[w].cost)
		t.Logf("%-22s upstream   %s", "", theirs[w].cost)
	}
	t.Logf("%-22s portcullis %s", "all 10,000 in use", ours[inUse].cost)
	t.Logf("a request takes %v longer for each policy that is at rest", ours[ten].waking.Round(time.Microsecond))
	limit := func(name string, got, most float64, text string) {
		met := "met"
		if got > most {
			met = "MISSED"
			t.Errorf("%s: %s", name, text)
		}
		t.Logf("%-34s %s: %s", name, text, met)
	}
	ratio := func(w workload, most float64) {
		of := float64(theirs[w].cost.cpu) / float64(ours[w].cost.cpu)
		limit("CPU, "+w.name, 1/of, 1/most, fmt.Sprintf("1/%.1f of upstream, at most 1/%.0f", of, most))
	}
	ratio(tenThousand, 50)
	ratio(thousand, 5)
	ratio(ten, 2)
	ratio(bindings, 10)
	growth := float64(ours[tenThousand].cost.cpu) / float64(ours[ten].cost.cpu)
	limit("CPU, growth from 10 to 10,000", growth, 1.2, fmt.Sprintf("%.2f times, at most 1.2 (upstream %.1f)", growth,
		float64(theirs[tenThousand].cost.cpu)/float64(theirs[ten].cost.cpu)))
	kib := ours[inUse].heap / 1024
	limit("heap a policy in use", kib, 64, fmt.Sprintf("%.1f KiB, at most 64 (upstream %.1f; at rest %.1f)", kib,
		theirs[tenThousand].heap/1024, ours[tenThousand].heap/1024))
	compiling := ours[tenThousand].compiling
	limit("compiling a policy", compiling.Seconds(), 0.7e-3, fmt.Sprintf("%v of CPU, at most 700µs (upstream %v)",
		compiling.Round(time.Microsecond), theirs[tenThousand].compiling.Round(time.Microsecond)))
}

func portcullisResult(t *testing.T, w workload) result {
	p := startPortcullis(t, w)
	r := result{
		cost:      measure(t, func() { p.judge(t) }),
		compiling: p.compiling / time.Duration(w.policies), heap: float64(p.heap) / float64(w.policies),
		waking: p.waking(t) / time.Duration(w.matching()),
	}
	runtime.KeepAlive(p)
	return r
}

func upstreamResult(t *testing.T, w workload) result {
	u := startUpstream(t, w)
	return result{cost: measure(t, func() { u.judge(t) }), compiling: u.compiling / time.Duration(w.policies), heap: float64(u.heap) / float64(w.policies)}
}

// String implements fmt.Stringer.
func (c cost) String() string {
	return fmt.Sprintf("%10.1f µs CPU %10.1f µs wall %9.0f allocs %10.1f KiB", float64(c.cpu.Nanoseconds())/1e3, float64(c.wall.Nanoseconds())/1e3, c.allocs, c.bytes/1024)
}
