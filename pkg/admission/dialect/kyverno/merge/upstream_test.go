// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
)

// TestAsUpstream compares with kyaml on random pairs of an object and a patch. Pairs of
// which kyaml makes something that nobody wants are not generated: TestBetterThanUpstream
// has those. MERGE_PAIRS says how many pairs, MERGE_SEED which.
func TestAsUpstream(t *testing.T) {
	t.Parallel()
	pairs := number(t, "MERGE_PAIRS", 1000)
	seed := uint64(number(t, "MERGE_SEED", 1))
	var faults, unchanged int
	for i := range pairs {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		object := g.object()
		patch := g.patch(object, "")
		want, wantErr := upstream(object, patch)
		got, err := Merge(copied(t, object), copied(t, patch))
		describe := func() string { return fmt.Sprintf("pair %d: %s\nwith %s", i, encoded(object), encoded(patch)) }
		if wantErr != nil {
			faults++
			if err == nil {
				t.Fatalf("%s\ngave no error, but with kyaml %v", describe(), wantErr)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s\n%v", describe(), err)
		}
		if diff := cmp.Diff(want, copied(t, got)); diff != "" {
			t.Fatalf("%s\n(-kyaml +ours)\n%s", describe(), diff)
		}
		if cmp.Equal(object, want) {
			unchanged++
		}
	}
	t.Logf("%d pairs, %d do not fit, %d change nothing", pairs, faults, unchanged)
	if faults+unchanged > pairs/2 {
		t.Error("too few pairs prove something")
	}
}

func number(t *testing.T, variable string, fallback int) int {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return fallback
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// upstream merges as Kyverno does, with kyaml.
func upstream(object map[string]any, patch any) (map[string]any, error) {
	to, err := yaml.Parse(encoded(object))
	if err != nil {
		return nil, err
	}
	from, err := yaml.Parse(encoded(patch))
	if err != nil {
		return nil, err
	}
	merged, err := merge2.Merge(from, to, yaml.MergeOptions{ListIncreaseDirection: yaml.MergeOptionsListPrepend})
	if err != nil {
		return nil, err
	}
	if merged == nil {
		return nil, fmt.Errorf("the object is gone")
	}
	text, err := merged.String()
	if err != nil {
		return nil, err
	}
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		return nil, err
	}
	var result map[string]any
	return result, kjson.UnmarshalCaseSensitivePreserveInts([]byte(encoded(decoded)), &result)
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func copied[T any](t testing.TB, value T) T {
	t.Helper()
	var result T
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(encoded(value)), &result); err != nil {
		t.Fatal(err)
	}
	return result
}
