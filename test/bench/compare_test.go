// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

const rounds = 7

// TestCompare measures both sides in turn, prints what they cost and fails when
// a ratio is above its limit. Machines differ and neighbours disturb, so it only
// runs on demand: PORTCULLIS_COMPARE=1, or make bench-compare.
func TestCompare(t *testing.T) {
	if os.Getenv("PORTCULLIS_COMPARE") == "" {
		t.Skip("set PORTCULLIS_COMPARE=1 to measure beside upstream; that takes minutes and 5 GiB of memory")
	}
	ten, thousand, tenThousand, bindings := workloads()
	inUse := tenThousand
	inUse.Name, inUse.InUse = "10 of 10,000 in use", true
	ours, theirs := map[workload]*worker{}, map[workload]*worker{}
	var all []*worker // in such an order that those come together that are compared most closely
	for _, w := range []workload{ten, tenThousand, thousand, inUse, bindings} {
		ours[w] = startWorker(t, order{Name: "portcullis", Workload: w})
		all = append(all, ours[w])
	}
	for _, w := range []workload{ten, tenThousand, thousand, bindings} {
		theirs[w] = startWorker(t, order{Name: "upstream", Workload: w, Upstream: true})
		all = append(all, theirs[w])
	}
	turns := slices.Clone(all)
	for range rounds {
		for _, worker := range turns {
			worker.measure(t)
		}
		slices.Reverse(turns) // nobody always comes first
	}
	t.Logf("%s, GOMAXPROCS %d, medians of %d rounds in turn; CPU is that of the process, garbage collection included", runtime.Version(), runtime.GOMAXPROCS(0), rounds)
	for _, worker := range all {
		t.Logf("%-22s %-10s %s", worker.Workload.Name, worker.Name, worker.median())
	}
	t.Logf("a request takes %v longer for each policy that is at rest", ours[ten].installed.Waking.Round(time.Microsecond))

	limit := func(name string, got, most float64, text string) {
		met := "met"
		if got > most {
			met = "MISSED"
			t.Errorf("%s: %s", name, text)
		}
		t.Logf("%-34s %s: %s", name, text, met)
	}
	ratio := func(w workload, most float64) {
		of := times(theirs[w], ours[w])
		limit("CPU, "+w.Name, 1/of, 1/most, fmt.Sprintf("1/%.1f of upstream, at most 1/%.0f", of, most))
	}
	ratio(tenThousand, 50)
	ratio(thousand, 5)
	ratio(ten, 2)
	ratio(bindings, 10)
	growth := times(ours[tenThousand], ours[ten])
	limit("CPU, growth from 10 to 10,000", growth, 1.2, fmt.Sprintf("%.2f times, at most 1.2 (all in use %.2f, upstream %.1f)", growth,
		times(ours[inUse], ours[ten]), times(theirs[tenThousand], theirs[ten])))
	kib := func(w *worker) float64 { return w.installed.Heap / 1024 }
	limit("heap a policy in use", kib(ours[inUse]), 64, fmt.Sprintf("%.1f KiB, at most 64 (at rest %.1f, upstream %.1f)",
		kib(ours[inUse]), kib(ours[tenThousand]), kib(theirs[tenThousand])))
	compiling := ours[tenThousand].installed.Compiling
	limit("compiling a policy", compiling.Seconds(), 0.7e-3, fmt.Sprintf("%v of CPU, at most 700µs (upstream %v)",
		compiling.Round(time.Microsecond), theirs[tenThousand].installed.Compiling.Round(time.Microsecond)))
}

// times returns how many times the CPU time of b it is that a needs: the median of the
// rounds, in each of which both have had their turn.
func times(a, b *worker) float64 {
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = float64(a.rounds[i].CPU) / float64(b.rounds[i].CPU)
	}
	slices.Sort(ratios)
	return ratios[rounds/2]
}

func (w *worker) median() cost {
	sorted := slices.Clone(w.rounds)
	slices.SortFunc(sorted, func(a, b cost) int { return int(a.CPU - b.CPU) })
	return sorted[rounds/2]
}
