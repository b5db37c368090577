// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gomodules "gomodules.xyz/jsonpatch/v2"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// requireLeads applies the operations as a strict reader of RFC 6902 does.
func requireLeads(t testing.TB, from, to any, operations []patch.Operation) {
	t.Helper()
	text := encode(t, operations)
	if operations == nil && !patch.Equal(from, to) {
		t.Fatalf("no operations lead from %s to %s", encode(t, from), encode(t, to))
	}
	decoded, err := jsonpatch.DecodePatch([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	got, err := decoded.ApplyWithOptions([]byte(encode(t, from)), options)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", text, encode(t, from), err)
	}
	if !patch.Equal(to, decode(t, string(got))) {
		t.Fatalf("%s leads from %s to %s, want %s", text, encode(t, from), got, encode(t, to))
	}
}

func TestDiffOfRandomValues(t *testing.T) {
	for seed := range int64(20_000) {
		r := rand.New(rand.NewSource(seed))
		from := map[string]any{"o": value(r, 4)}
		to := map[string]any{"o": value(r, 4)}
		if seed%4 > 0 { // something that resembles it
			to = edited(r, from, 5).(map[string]any)
		}
		before := encode(t, []any{from, to})
		operations := patch.Diff(from, to)
		requireLeads(t, from, to, operations)
		if after := encode(t, []any{from, to}); after != before {
			t.Fatalf("what was compared was modified: it was %s and is %s", before, after)
		}
		if got, again := encode(t, operations), encode(t, patch.Diff(copied(t, from), copied(t, to))); got != again {
			t.Fatalf("not deterministic: %s and %s", got, again)
		}
	}
}

func TestDiffOfLongLists(t *testing.T) {
	for seed := range int64(200) {
		r := rand.New(rand.NewSource(seed))
		var list []any
		for i := range 300 {
			list = append(list, map[string]any{"id": fmt.Sprint("element-", i), "value": int64(i), "text": "some text to make it long"})
		}
		from := map[string]any{"list": list}
		edits := slices.Clone(list)
		for range 4 {
			switch i := r.Intn(len(edits)); r.Intn(3) {
			case 0:
				edits = slices.Delete(edits, i, i+1)
			case 1:
				edits = slices.Insert(edits, i, any(map[string]any{"id": "new"}))
			default:
				edits[i] = map[string]any{"id": "changed"}
			}
		}
		to := map[string]any{"list": edits}
		operations := patch.Diff(from, to)
		requireLeads(t, from, to, operations)
		if len(operations) > 12 {
			t.Fatalf("%d operations for 4 edits", len(operations))
		}
	}
}

// The patch is compared with that of the library which Kyverno and many webhooks use.
func TestDiffIsShort(t *testing.T) {
	const edits = 3000
	longer, ours, theirs := 0, 0, 0
	for seed := range int64(edits) {
		r := rand.New(rand.NewSource(seed))
		from := pod(t)
		to := from
		for range r.Intn(3) + 1 {
			to = edited(r, to, 5)
		}
		operations := patch.Diff(from, to)
		requireLeads(t, from, to, operations)
		if operations == nil {
			continue
		}
		got := len(encode(t, operations))
		other, err := gomodules.CreatePatch([]byte(encode(t, from)), []byte(encode(t, to)))
		if err != nil {
			t.Fatal(err)
		}
		want := len(encode(t, other))
		ours, theirs = ours+got, theirs+want
		if got > want {
			longer++
			if testing.Verbose() {
				t.Logf("%d > %d\n%s\n%s", got, want, encode(t, operations), encode(t, other))
			}
		}
	}
	t.Logf("%d of %d patches are longer; %d bytes in all, and %d", longer, edits, ours, theirs)
	if longer > edits/100 || ours > theirs {
		t.Error("the patches are too long")
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":null}]}`), []byte(`{"a":[2,{"b":1}],"~/":1.5}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var from, to map[string]any
		if json.Unmarshal(a, new(map[string]any)) != nil || kjson.UnmarshalCaseSensitivePreserveInts(a, &from) != nil || from == nil {
			return
		}
		if json.Unmarshal(b, new(map[string]any)) != nil || kjson.UnmarshalCaseSensitivePreserveInts(b, &to) != nil || to == nil {
			return
		}
		operations := patch.Diff(from, to)
		if hasEmptyKey(from) || hasEmptyKey(to) {
			return // the library that applies cannot find those
		}
		requireLeads(t, from, to, operations)
	})
}

func hasEmptyKey(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == "" || hasEmptyKey(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasEmptyKey)
	}
	return false
}

func copied(t testing.TB, v any) any { return decode(t, encode(t, v)) }

func pod(t testing.TB) any {
	return decode(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-7f8d9","namespace":"shop","labels":{"app":"web","tier":"front","pod-template-hash":"7f8d9"},"annotations":{"prometheus.io/scrape":"true"}},
	"spec":{"serviceAccountName":"default","restartPolicy":"Always","securityContext":{},"nodeSelector":{"disk":"ssd"},
	"volumes":[{"name":"data","emptyDir":{}},{"name":"kube-api-access","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}],
	"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
	"initContainers":[{"name":"init","image":"busybox:1.36","command":["sh","-c","true"]}],
	"containers":[{"name":"web","image":"registry.example.com/web:1.2.3","args":["--listen",":8080","--verbose"],"ports":[{"containerPort":8080,"protocol":"TCP"}],
	"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
	"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"kube-api-access","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}]},
	{"name":"sidecar","image":"registry.example.com/proxy:0.9","env":[{"name":"MODE","value":"quiet"}],"resources":{}}]}}`)
}

// value makes decoded JSON.
func value(r *rand.Rand, depth int) any {
	kinds := 8
	if depth == 0 {
		kinds = 6
	}
	switch r.Intn(kinds) {
	case 0:
		return nil
	case 1:
		return r.Intn(2) == 0
	case 2:
		return int64(r.Intn(5))
	case 3:
		return float64(r.Intn(5)) / 2
	case 4, 5:
		return []string{"", "a", "b", "<&>", "\n\"\\", "some longer text that is here", "\u2028é"}[r.Intn(7)]
	case 6:
		list := []any{}
		for range r.Intn(6) {
			list = append(list, value(r, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range r.Intn(6) {
			object[key(r)] = value(r, depth-1)
		}
		return object
	}
}

func key(r *rand.Rand) string {
	return []string{"name", "a", "b", "c/d", "~1", "e~", "0", "-", "long-key-with-much-text"}[r.Intn(9)]
}

// edited returns a value with one small change, which shares the rest.
func edited(r *rand.Rand, v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		return editedObject(r, v, depth)
	case []any:
		return editedList(r, v, depth)
	}
	return value(r, 1)
}

func editedObject(r *rand.Rand, v map[string]any, depth int) any {
	result := map[string]any{}
	keys := make([]string, 0, len(v))
	for k, inner := range v {
		result[k] = inner
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if len(keys) == 0 || r.Intn(5) == 0 {
		result[key(r)] = value(r, 2)
		return result
	}
	k := keys[r.Intn(len(keys))]
	if r.Intn(5) == 0 || depth == 0 {
		delete(result, k)
		return result
	}
	result[k] = edited(r, v[k], depth-1)
	return result
}

func editedList(r *rand.Rand, v []any, depth int) any {
	result := slices.Clone(v)
	if len(v) == 0 || r.Intn(4) == 0 {
		return slices.Insert(result, r.Intn(len(v)+1), value(r, 2))
	}
	i := r.Intn(len(v))
	switch n := r.Intn(6); {
	case n == 0 || depth == 0:
		return slices.Delete(result, i, i+1)
	case n == 1:
		j := r.Intn(len(v))
		result[i], result[j] = result[j], result[i]
		return result
	}
	result[i] = edited(r, v[i], depth-1)
	return result
}

func BenchmarkDiff(b *testing.B) {
	from := pod(b)
	r := rand.New(rand.NewSource(7))
	to := from
	for range 5 {
		to = edited(r, to, 5)
	}
	b.Run("shared", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			patch.Diff(from, to)
		}
	})
	b.Run("copied", func(b *testing.B) {
		other := copied(b, to)
		b.ReportAllocs()
		for b.Loop() {
			patch.Diff(from, other)
		}
	})
	b.Run("gomodules", func(b *testing.B) {
		before, after := []byte(encode(b, from)), []byte(encode(b, to))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = gomodules.CreatePatch(before, after)
		}
	})
}
