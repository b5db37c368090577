// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOneElement compares what is done for a patch with one element with what is done for
// all others, on lists in which several elements have the same key, or none.
func TestOneElement(t *testing.T) {
	t.Parallel()
	s := schemaOf("v1", "Pod").field("spec").field("containers")
	if len(s.keys) != 1 {
		t.Fatalf("got the keys %v, want one", s.keys)
	}
	done := 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		element := func(patch bool) any {
			m := map[string]any{"image": []any{"a", "b"}[r.IntN(2)]}
			if r.IntN(10) > 0 {
				m["name"] = []any{"x", "y", "z", int64(1), "1"}[r.IntN(5)]
			}
			if patch && r.IntN(4) == 0 {
				m[directiveKey] = []any{"delete", "replace", "merge", "?"}[r.IntN(4)]
			}
			if patch && r.IntN(6) == 0 {
				m["image"] = nil
			}
			return m
		}
		var old []any
		for range 1 + r.IntN(5) {
			old = append(old, element(false))
		}
		patch := []any{element(true)}
		got, ok, gotFault := mergeOne(old, patch, s, 0)
		if !ok {
			continue
		}
		done++
		l := newList(old, patch, s.keys)
		var want outcome
		_, wantFault := l.mergeAll(patch, s.elementSchema(), 0)
		if wantFault == nil {
			want = l.result()
		}
		if (gotFault == nil) != (wantFault == nil) || gotFault != nil && gotFault.Error() != wantFault.Error() {
			t.Fatalf("seed %d: got error %v, want %v", seed, gotFault, wantFault)
		}
		if gotFault != nil {
			continue
		}
		if diff := cmp.Diff(want.value, got.value); diff != "" || want.gone != got.gone {
			t.Fatalf("seed %d: %v with %v:\n%s", seed, old, patch, diff)
		}
		if !got.changed && !cmp.Equal(old, got.value) {
			t.Fatalf("seed %d: it says that nothing has changed: %v with %v is %v", seed, old, patch, got.value)
		}
	}
	if done < 10_000 {
		t.Errorf("only %d were done", done)
	}
}
