// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestManyElements compares long lists, which are indexed, with the same lists cut into
// what is not.
func TestManyElements(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		old, patch := ports(r), ports(r)
		spec := func(ports []any) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"ports": ports}}
		}
		few, fewErr := Merge(spec(old), spec(patch))
		// Others make the lists long. With two keys the order of those that were there stays.
		var fill []any
		for i := range manyElements {
			fill = append(fill, map[string]any{"port": int64(1000 + i)})
		}
		many, manyErr := Merge(spec(append(fill[:len(fill):len(fill)], old...)), spec(patch))
		if fewErr != nil || manyErr != nil {
			t.Fatalf("seed %d: %v, %v", seed, fewErr, manyErr)
		}
		if diff := cmp.Diff(without(few), without(many)); diff != "" {
			t.Fatalf("seed %d: %v with %v\n%s", seed, old, patch, diff)
		}
	}
}

// ports returns ports of which some differ only in their protocols, or are the same.
func ports(r *rand.Rand) []any {
	// A port with protocol keeps them from being told apart by their numbers alone.
	result := []any{map[string]any{"port": int64(1), "protocol": "SCTP"}}
	for range r.IntN(6) {
		port := map[string]any{"port": int64(1 + r.IntN(2)), "name": fmt.Sprint(r.IntN(100))}
		if protocol := r.IntN(3); protocol > 0 {
			port["protocol"] = []string{"", "TCP", "UDP"}[protocol]
		}
		if r.IntN(5) == 0 {
			port[directiveKey] = "delete"
		}
		result = append(result, port)
	}
	return result
}

// without returns the ports of a Service but for those that made the list long.
func without(service map[string]any) []any {
	spec, _ := service["spec"].(map[string]any)
	list, _ := spec["ports"].([]any)
	var result []any
	for _, port := range list {
		if m, _ := port.(map[string]any); m["port"].(int64) < 1000 {
			result = append(result, port)
		}
	}
	return result
}

// TestLongLists shows that the time grows with the lists and not with their square, also
// when all elements have the same keys.
func TestLongLists(t *testing.T) {
	t.Parallel()
	const count = 10_000
	list := func(field func(i int) map[string]any) []any {
		result := make([]any, count)
		for i := range result {
			result[i] = field(i)
		}
		return result
	}
	for name, c := range map[string]struct{ old, patch func(i int) map[string]any }{
		"all match": {
			func(i int) map[string]any {
				return map[string]any{"topologyKey": fmt.Sprint(i), "whenUnsatisfiable": "a"}
			},
			func(i int) map[string]any {
				return map[string]any{"topologyKey": fmt.Sprint(count - i), "maxSkew": int64(1)}
			},
		},
		"all the same": {
			func(int) map[string]any { return map[string]any{"topologyKey": "a"} },
			func(int) map[string]any { return map[string]any{"topologyKey": "a"} },
		},
		"the first key is the same": {
			func(i int) map[string]any {
				return map[string]any{"topologyKey": "a", "whenUnsatisfiable": fmt.Sprint(i)}
			},
			func(int) map[string]any { return map[string]any{"topologyKey": "a", directiveKey: "delete"} },
		},
		"none matches": {
			func(i int) map[string]any {
				return map[string]any{"topologyKey": "a", "whenUnsatisfiable": fmt.Sprint(i)}
			},
			func(i int) map[string]any {
				return map[string]any{"topologyKey": "a", "whenUnsatisfiable": fmt.Sprint(-i)}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := func(constraints []any) map[string]any {
				return map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"topologySpreadConstraints": constraints}}
			}
			start := time.Now()
			if _, err := Merge(spec(list(c.old)), spec(list(c.patch))); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
