// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	library "github.com/evanphx/json-patch/v5"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// applyWithLibrary applies a patch as Kyverno does. It says whether the library came to
// an end: it panics on some tests.
func applyWithLibrary(object, text []byte) (result []byte, ended bool, err error) {
	defer func() { ended = recover() == nil }()
	decoded, err := library.DecodePatch(text)
	if err != nil {
		return nil, true, err
	}
	result, err = decoded.ApplyWithOptions(object, &library.ApplyOptions{
		SupportNegativeIndices:   true,
		AllowMissingPathOnRemove: true,
		EnsurePathExistsOnAdd:    true,
	})
	return result, true, err
}

// compare applies a patch with the library and with ours.
func compare(t testing.TB, object, text []byte) (difference string) {
	t.Helper()
	decoded := decode(t, string(object))
	var got map[string]any
	operations, err := jsonpatch.Parse(string(text))
	if err == nil {
		got, err = jsonpatch.Apply(decoded, operations, maxBytes)
	}
	want, ended, wantErr := applyWithLibrary(object, text)
	if after := encode(t, decoded); after != encode(t, decode(t, string(object))) {
		return "the object was modified: it is " + after
	}
	switch {
	case !ended, err == nil && fillsUp(text) && (errors.Is(wantErr, library.ErrInvalid) || errors.Is(wantErr, library.ErrTestFailed)):
		return ""
	case (err == nil) != (wantErr == nil):
		return fmt.Sprintf("got error %v, want %v", err, wantErr)
	case err == nil && !patch.Equal(got, decode(t, string(want))):
		return fmt.Sprintf("got %s, want %s", encode(t, got), want)
	}
	return ""
}

// fillsUp says whether a patch may fill up lists with nulls. The library takes those for
// something other than those that an object has: a parent that is there and no object,
// and not what null is tested for.
func fillsUp(text []byte) bool { return regexp.MustCompile(`/[1-9]`).Match(text) }

func TestApplyIsThatOfTheLibrary(t *testing.T) {
	applied := 0
	for seed := range int64(20_000) {
		r := rand.New(rand.NewSource(seed))
		g := generator{r: r}
		object := map[string]any{}
		for _, name := range []string{"a", "b", "c"} {
			object[name] = g.value(4)
		}
		operations := make([]map[string]any, 1+r.Intn(4))
		for i := range operations {
			operations[i] = g.operation(object)
		}
		text, encoded := encode(t, operations), encode(t, object)
		if difference := compare(t, []byte(encoded), []byte(text)); difference != "" {
			t.Fatalf("seed %d: %s to %s: %s", seed, text, encoded, difference)
		}
		if _, err := jsonpatch.Apply(object, parse(t, text), maxBytes); err == nil {
			applied++
		}
	}
	t.Logf("%d patches apply", applied)
	if applied < 3_000 {
		t.Errorf("only %d patches apply", applied)
	}
}

// generator makes objects and patches on which the library is in accord with itself: it
// takes nulls that came with a patch for something other than those of the object, does
// not unescape the names of missing parents, and cannot find empty names.
type generator struct{ r *rand.Rand }

func (g *generator) value(depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 4
	}
	switch g.r.Intn(kinds) {
	case 0:
		return g.r.Intn(2) == 0
	case 1:
		return int64(g.r.Intn(3))
	case 2, 3:
		return []string{"", "x", "<y>"}[g.r.Intn(3)]
	case 4:
		list := []any{}
		for range g.r.Intn(4) {
			list = append(list, g.maybeNull(depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range g.r.Intn(4) {
			object[g.name()] = g.maybeNull(depth - 1)
		}
		return object
	}
}

func (g *generator) maybeNull(depth int) any {
	if g.r.Intn(8) == 0 {
		return nil
	}
	return g.value(depth)
}

func (g *generator) name() string {
	return []string{"a", "b", "c", "d", "0", "1", "-", "-1"}[g.r.Intn(8)]
}

func (g *generator) operation(object map[string]any) map[string]any {
	result := map[string]any{"path": g.path(object)}
	switch op := []string{"add", "add", "add", "remove", "replace", "move", "copy", "test"}[g.r.Intn(8)]; op {
	case "add", "replace":
		result["op"], result["value"] = op, g.value(2)
	case "test":
		result["op"], result["value"] = op, g.tested(object, result["path"].(string))
	case "move", "copy":
		result["op"], result["from"] = op, g.path(object)
	default:
		result["op"] = op
	}
	return result
}

// tested returns what stands at a path more often than not.
func (g *generator) tested(object map[string]any, path string) any {
	var node any = object
	for _, token := range strings.Split(path, "/")[1:] {
		switch parent := node.(type) {
		case map[string]any:
			node = parent[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(parent) {
				node = parent[i]
			}
		}
	}
	if g.r.Intn(3) == 0 {
		return g.value(1)
	}
	return node
}

// path follows the object for a while.
func (g *generator) path(object map[string]any) string {
	var path strings.Builder
	var node any = object
	for range 1 + g.r.Intn(4) {
		token := g.name()
		switch parent := node.(type) {
		case map[string]any:
			if names := sortedNames(parent); len(names) > 0 && g.r.Intn(4) > 0 {
				token = names[g.r.Intn(len(names))]
			}
			node = parent[token]
		case []any:
			node = nil
			if g.r.Intn(5) > 0 {
				i := g.r.Intn(2*len(parent)+3) - len(parent) - 1
				token = strconv.Itoa(i)
				if i >= 0 && i < len(parent) {
					node = parent[i]
				}
			}
		default:
			node = nil
		}
		path.WriteString("/" + token)
	}
	return path.String()
}

func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// FuzzApply says that nothing panics, that objects are left alone, and that what the
// library can do without losing anything is done as it does it.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`), []byte(`[{"op":"add","path":"/a/-1/b/c","value":[1]},{"op":"copy","from":"/a","path":"/d"}]`))
	f.Add([]byte(`{}`), []byte("- op: add\n  path: /a/2/b\n  value: {x: 1}\n"))
	f.Fuzz(func(t *testing.T, object, text []byte) {
		var value map[string]any
		if json.Unmarshal(object, &value) != nil || value == nil {
			return
		}
		before := decode(t, string(object))
		operations, err := jsonpatch.Parse(string(text))
		if err != nil {
			return
		}
		got, err := jsonpatch.Apply(before, operations, maxBytes)
		if encode(t, before) != encode(t, decode(t, string(object))) {
			t.Fatal("the object was modified")
		}
		if err != nil {
			return
		}
		again, err := jsonpatch.Apply(before, operations, maxBytes)
		if err != nil || !patch.Equal(got, again) {
			t.Fatalf("another result the second time: %v", err)
		}
	})
}
