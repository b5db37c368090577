// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
)

const (
	// seedVariable sets the seed of the first scenario; each further one has the
	// next. Without it, every run has others.
	seedVariable = "PORTCULLIS_DIFFERENTIAL_SEED"
	// pairsVariable sets the number of pairs.
	pairsVariable = "PORTCULLIS_DIFFERENTIAL_PAIRS"

	// questions are asked of each scenario: compiling it takes the most time.
	questions = 25
	// maxDifferences ends a run.
	maxDifferences = 3
)

func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// TestAsUpstream asks both sides, and wants the same answers: allowed or not,
// code, reason, message, warnings and audit annotations.
func TestAsUpstream(t *testing.T) {
	pairs := uint64(20_000)
	if raceDetector || testing.Short() {
		pairs = 1_500
	}
	pairs = fromEnvironment(t, pairsVariable, pairs)
	seed := fromEnvironment(t, seedVariable, rand.Uint64()>>16)
	t.Logf("%s=%d, %s=%d", seedVariable, seed, pairsVariable, pairs)
	r := &run{last: seed + (pairs+questions-1)/questions}
	r.next.Store(seed)
	w, dialects := newWorld(t), dialect.All()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		c, err := newComparison(w, dialects)
		if err != nil {
			t.Fatal(err)
		}
		workers.Go(func() { r.work(t, c) })
	}
	workers.Wait()
	if t.Failed() {
		t.Logf("one scenario again: %s=<its seed> %s=%d go test ./test/differential", seedVariable, pairsVariable, questions)
		return
	}
	r.tally.check(t)
}

// run hands out scenarios to workers.
type run struct {
	next        atomic.Uint64
	last        uint64
	differences atomic.Int32

	mu    sync.Mutex
	tally tally
}

func (r *run) work(t *testing.T, c *comparison) {
	for {
		seed := r.next.Add(1) - 1
		if seed >= r.last || r.differences.Load() >= maxDifferences {
			return
		}
		tally, err := c.scenario(t.Context(), fromSeed(seed), questions)
		if err != nil {
			r.differences.Add(1)
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		r.mu.Lock()
		r.tally.merge(tally)
		r.mu.Unlock()
	}
}

// scenario asks n questions about one scenario.
func (c *comparison) scenario(ctx context.Context, g *generator, n int) (*tally, error) {
	s := g.scenario()
	if err := c.enforce(ctx, s); err != nil {
		return nil, err
	}
	counted := &tally{}
	for i := range n {
		q := g.question()
		ways := more{explained: i%12 == 3, embedded: i%6 == 5, twice: i%8 == 6, rested: i%16 == 10}
		result, err := c.compare(ctx, q, ways)
		if err != nil {
			return nil, fmt.Errorf("question %d: %w", i, err)
		}
		if result.diff != "" {
			return nil, fmt.Errorf("question %d: %s", i, c.report(ctx, s, q, ways, result.diff))
		}
		counted.add(q, &result)
	}
	return counted, nil
}

// FuzzAsUpstream has the generator of TestAsUpstream draw from the fuzzer.
func FuzzAsUpstream(f *testing.F) {
	for seed := range uint64(8) {
		g := fromSeed(seed)
		data := make([]byte, 2000)
		for i := range data {
			data[i] = byte(g.draw(256))
		}
		f.Add(data)
	}
	c, err := newComparison(newWorld(f), dialect.All())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := c.scenario(t.Context(), fromBytes(data), 4); err != nil {
			t.Fatal(err)
		}
	})
}
