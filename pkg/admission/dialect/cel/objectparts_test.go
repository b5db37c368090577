// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
)

// TestObjectParts: a part is made once, up to a bound, and is what the adapter makes.
func TestObjectParts(t *testing.T) {
	items := make([]any, 2*maxParts)
	for i := range items {
		items[i] = map[string]any{"i": int64(i)}
	}
	parts := objectParts{Adapter: types.DefaultTypeAdapter}
	for range 2 {
		for _, native := range []any{items, items[:1], items[:0], items[0], map[string]any{}, "text", int64(1), nil, []string{"a"}} {
			if got, want := parts.NativeToValue(native), types.DefaultTypeAdapter.NativeToValue(native); types.Format(got) != types.Format(want) || got.Type() != want.Type() {
				t.Errorf("got %s of %v, want %s", types.Format(got), native, types.Format(want))
			}
		}
	}
	list, ok := parts.NativeToValue(items).(traits.Lister)
	if !ok || list != parts.NativeToValue(items) || list.Get(types.IntZero) != list.Get(types.IntZero) || list.Get(types.IntZero) != parts.NativeToValue(items[0]) {
		t.Error("a part is made again")
	}
	if len(parts.known) != maxParts {
		t.Errorf("%d parts are kept of many, want %d", len(parts.known), maxParts)
	}
}
