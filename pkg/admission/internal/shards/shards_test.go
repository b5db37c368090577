// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/internal/shards"
)

func collide(maphash.Seed, int) uint64 { return 7 }

// TestDraft edits a map at random beside an ordinary one, and holds on to all
// that it was.
func TestDraft(t *testing.T) {
	for name, hash := range map[string]func(maphash.Seed, int) uint64{"default": nil, "all in one shard": collide} {
		t.Run(name, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(1, 2)).IntN
			var current *shards.Map[int, string]
			was := map[*shards.Map[int, string]]map[int]string{current: {}}
			want := map[int]string{}
			for range 200 {
				draft := shards.NewDraft(current, hash)
				for range draw(10) {
					k, value := draw(1000), string(rune('a'+draw(26)))
					if draw(3) == 0 {
						draft.Delete(k)
						delete(want, k)
						continue
					}
					draft.Set(k, value)
					want[k] = value
					if got, ok := draft.Get(k); !ok || got != value {
						t.Fatalf("the draft has %q, %v of %d, want %q", got, ok, k, value)
					}
				}
				current = draft.Map()
				was[current] = maps.Clone(want)
			}
			for m, want := range was {
				check(t, m, want)
			}
		})
	}
}

func check(t *testing.T, m *shards.Map[int, string], want map[int]string) {
	t.Helper()
	if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
		t.Errorf("got %v of length %d, want %v", got, m.Len(), want)
	}
	for k := range 1000 {
		value, ok := m.Get(k)
		if wanted, there := want[k]; value != wanted || ok != there {
			t.Errorf("Get(%d) returns %q, %v, want %q, %v", k, value, ok, wanted, there)
		}
	}
}

func TestAllStops(t *testing.T) {
	draft := shards.NewDraft[int, string](nil, nil)
	draft.Set(1, "a")
	draft.Set(2, "b")
	seen := 0
	for range draft.Map().All() {
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("the iteration went on: %d", seen)
	}
}

func BenchmarkOneInto10000(b *testing.B) {
	draft := shards.NewDraft[int, string](nil, nil)
	for i := range 10_000 {
		draft.Set(i, "a")
	}
	m := draft.Map()
	b.ReportAllocs()
	for b.Loop() {
		draft := shards.NewDraft(m, nil)
		draft.Set(5, "b")
		draft.Map()
	}
}
