// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/custom"
)

// TestAsUpstream compares with apiextensions-apiserver, on random schemas and
// objects.
func TestAsUpstream(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	touched := 0
	for range 5_000 {
		s := g.schema(4)
		object := g.fields(4)
		want, got := runtime.DeepCopyJSON(object), runtime.DeepCopyJSON(object)
		pruning.Prune(want, s, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(want, s)
		wantErr := objectmeta.Coerce(nil, want, s, true, false) != nil
		err := custom.Prune(got, s)
		if (err != nil) != wantErr {
			t.Fatalf("got error %v, want one: %t", err, wantErr)
		}
		if err != nil {
			continue
		}
		defaulting.Default(want, s)
		if err := custom.Default(got, s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("of %v (-want +got):\n%s", object, diff)
		}
		if !cmp.Equal(object, got) {
			touched++
		}
	}
	if touched < 1_000 {
		t.Errorf("only %d objects were touched", touched)
	}
}

// generator makes schemas and values that have the same few names of fields.
type generator struct{ *rand.Rand }

func (g generator) name() string {
	names := []string{"a", "b", "c", "metadata", "kind", "apiVersion"}
	return names[g.IntN(len(names))]
}

func (g generator) schema(depth int) *structuralschema.Structural {
	s := &structuralschema.Structural{}
	s.Nullable = g.IntN(3) == 0
	s.XPreserveUnknownFields = g.IntN(5) == 0
	s.XEmbeddedResource = g.IntN(8) == 0
	if g.IntN(3) == 0 {
		s.Default.Object = g.value(depth - 1)
	}
	if depth == 0 {
		return s
	}
	switch g.IntN(5) {
	case 0:
		s.Items = g.schema(depth - 1)
	case 1:
		s.AdditionalProperties = &structuralschema.StructuralOrBool{Bool: true}
		if g.IntN(3) > 0 {
			s.AdditionalProperties.Structural = g.schema(depth - 1)
		}
	default:
		s.Properties = map[string]structuralschema.Structural{}
		for range g.IntN(5) {
			s.Properties[g.name()] = *g.schema(depth - 1)
		}
	}
	return s
}

func (g generator) fields(depth int) map[string]any {
	fields := map[string]any{}
	for range g.IntN(5) {
		fields[g.name()] = g.value(depth - 1)
	}
	return fields
}

func (g generator) value(depth int) any {
	choice := g.IntN(6)
	if depth <= 0 {
		choice = g.IntN(3)
	}
	switch choice {
	case 0:
		return nil
	case 1:
		return "text"
	case 2:
		return int64(g.IntN(3))
	case 3:
		list := []any{}
		for range g.IntN(4) {
			list = append(list, g.value(depth-1))
		}
		return list
	default:
		return g.fields(depth)
	}
}

// TestDefaultIsBounded: no default is copied beyond the limit, in lists, maps or
// defaults of defaults.
func TestDefaultIsBounded(t *testing.T) {
	large := structuralschema.Structural{}
	large.Default.Object = strings.Repeat("a", 1<<20)
	item := structuralschema.Structural{Properties: map[string]structuralschema.Structural{"text": large}}
	nested := structuralschema.Structural{Items: &item}
	nested.Default.Object = []any{map[string]any{}, map[string]any{}}
	deep := structuralschema.Structural{}
	deep.Default.Object = map[string]any{"a": []any{large.Default.Object}}
	items := func(n int) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{}
		}
		return list
	}
	tests := []struct {
		name   string
		schema structuralschema.Structural
		value  any
		fails  bool
	}{
		{"few items", structuralschema.Structural{Items: &item}, items(15), false},
		{"many items", structuralschema.Structural{Items: &item}, items(17), true},
		{"nulls", structuralschema.Structural{Items: &large}, make([]any, 17), true},
		{"deep nulls", structuralschema.Structural{Items: &deep}, make([]any, 17), true},
		{"map", structuralschema.Structural{AdditionalProperties: &structuralschema.StructuralOrBool{Structural: &nested}}, map[string]any{"a": nil, "b": nil, "c": nil}, false},
		{"large map", structuralschema.Structural{AdditionalProperties: &structuralschema.StructuralOrBool{Structural: &nested}}, map[string]any{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil, "f": nil, "g": nil, "h": nil, "i": nil}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := &structuralschema.Structural{Properties: map[string]structuralschema.Structural{"list": test.schema}}
			err := custom.Default(map[string]any{"list": test.value}, root)
			if (err != nil) != test.fails {
				t.Errorf("got error %v, want one: %t", err, test.fails)
			}
		})
	}
}

// TestDefaultEnds: properties without a default have to be looked for too.
func TestDefaultEnds(t *testing.T) {
	item := structuralschema.Structural{Properties: map[string]structuralschema.Structural{}}
	for i := range 2000 {
		item.Properties[strconv.Itoa(i)] = structuralschema.Structural{}
	}
	root := &structuralschema.Structural{Properties: map[string]structuralschema.Structural{"list": {Items: &item}}}
	for count, fails := range map[int]bool{1000: false, 5000: true} {
		list := make([]any, count)
		for i := range list {
			list[i] = map[string]any{}
		}
		err := custom.Default(map[string]any{"list": list}, root)
		if (err != nil) != fails {
			t.Errorf("%d items: got error %v, want one: %t", count, err, fails)
		}
	}
}

// TestPruneErrorsAreShort: they have the path of what is wrong, and no value.
func TestPruneErrorsAreShort(t *testing.T) {
	embedded := structuralschema.Structural{Extensions: structuralschema.Extensions{XEmbeddedResource: true}}
	s := &structuralschema.Structural{AdditionalProperties: &structuralschema.StructuralOrBool{Structural: &embedded}}
	secret := map[string]any{"annotations": map[string]any{"secret": "hunter2", "n": int64(5)}}
	err := custom.Prune(map[string]any{strings.Repeat("é", 1000): map[string]any{"apiVersion": "v1", "kind": "A", "metadata": secret}}, s)
	if err == nil || len(err.Error()) > 512 || !utf8.ValidString(err.Error()) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
