// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

func TestAdded(t *testing.T) {
	text := strings.Repeat("x", 100)
	element := func(name string) any { return map[string]any{"name": name, "text": text} }
	list := []any{element("a"), element("b"), element("c")}
	object := map[string]any{"list": list, "text": text, "n": int64(1)}
	with := func(key string, value any) map[string]any {
		changed := map[string]any{}
		for k, v := range object {
			changed[k] = v
		}
		changed[key] = value
		return changed
	}
	tests := []struct {
		name     string
		to       any
		min, max int
	}{
		{name: "nothing", to: object},
		{name: "a copy of the object alone", to: with("n", 1.0)},
		{name: "a field", to: with("new", text), min: 100, max: 120},
		{name: "another text", to: with("text", text+"y"), min: 100, max: 110},
		{name: "a removal", to: map[string]any{"n": int64(1)}},
		{name: "in front of a list", to: with("list", slices.Insert(slices.Clone(list), 0, any("new"))), min: 5, max: 10},
		{name: "an element less", to: with("list", slices.Delete(slices.Clone(list), 1, 2))},
		{name: "what is shared is there twice", to: with("again", object), min: 500, max: 600},
		{name: "another type", to: with("list", map[string]any{"a": text}), min: 100, max: 110},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := patch.Added(object, test.to, 1<<20, 10)
			if !ok || got < test.min || got > test.max {
				t.Errorf("got %d, %v, want %d to %d", got, ok, test.min, test.max)
			}
			if _, ok := patch.Added(object, test.to, got-1, 10); ok && got > 0 {
				t.Error("one byte less is enough, too")
			}
		})
	}
	if _, ok := patch.Added(object, with("deep", list), 1<<20, 2); ok {
		t.Error("three levels are no more than two")
	}
}

// TestAddedBoundsSizes: no object becomes larger by more than what has been added.
func TestAddedBoundsSizes(t *testing.T) {
	for seed := range int64(20_000) {
		r := rand.New(rand.NewSource(seed))
		from := any(map[string]any{"o": value(r, 4)})
		to := from
		for range r.Intn(4) {
			to = edited(r, to, 5)
		}
		before, _ := patch.Size(from, 1<<20, 100)
		after, _ := patch.Size(to, 1<<20, 100)
		got, ok := patch.Added(from, to, 1<<20, 100)
		if !ok || after-before > got || got > 2*after {
			t.Fatalf("added %d, %v, and the size was %d and is %d:\n%s\n%s", got, ok, before, after, encode(t, from), encode(t, to))
		}
	}
}
