// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"math/rand"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// TestDiffAppliedAsByAPIServer applies patches with the library, and the call of it, with
// which kube-apiserver applies those of webhooks.
func TestDiffAppliedAsByAPIServer(t *testing.T) {
	t.Parallel()
	const pairs = 20_000
	object, unchanged := pod(t), 0
	for seed := range int64(pairs) {
		from, to := objects(rand.New(rand.NewSource(seed)), object)
		operations := patch.Diff(from, to)
		if operations == nil {
			unchanged++
			if !patch.Equal(from, to) {
				t.Fatalf("seed %d: no operations lead from %s to %s", seed, encode(t, from), encode(t, to))
			}
			continue
		}
		decoded, err := jsonpatch.DecodePatch([]byte(encode(t, operations)))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, encode(t, operations), err)
		}
		got, err := decoded.Apply([]byte(encode(t, from)))
		if err != nil {
			t.Fatalf("seed %d: apply %s to %s: %v", seed, encode(t, operations), encode(t, from), err)
		}
		if !patch.Equal(to, decode(t, string(got))) {
			t.Fatalf("seed %d: %s leads from %s to %s, want %s", seed, encode(t, operations), encode(t, from), got, encode(t, to))
		}
	}
	if unchanged > pairs/10 {
		t.Errorf("%d of %d pairs prove nothing: they are equal", unchanged, pairs)
	}
}

// objects returns a pair of objects: a Pod and what edits make of it, two objects that
// resemble each other, or two that do not.
func objects(r *rand.Rand, pod any) (from, to any) {
	kind := r.Intn(4)
	if kind < 2 {
		from = pod
	} else {
		from = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "o": value(r, 4)}
	}
	if kind == 3 {
		return from, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "o": value(r, 4)}
	}
	to = from
	for range r.Intn(6) + 1 {
		to = edited(r, to, 5)
	}
	return from, to
}
