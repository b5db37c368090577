// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

func native(v any) ref.Val { return types.DefaultTypeAdapter.NativeToValue(v) }

func TestValueJSON(t *testing.T) {
	quantity := resource.MustParse("1Gi")
	numbers := make([]any, 2000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	deep := any("end")
	for range 20 {
		deep = []any{deep}
	}
	for name, test := range map[string]struct {
		value ref.Val
		want  string // a trailing ~ stands for anything
	}{
		"nothing":           {nil, "null"},
		"null":              {types.NullValue, "null"},
		"a bool":            {types.True, "true"},
		"an int":            {types.Int(math.MinInt64), "-9223372036854775808"},
		"a uint":            {types.Uint(math.MaxUint64), "18446744073709551615"},
		"a double":          {types.Double(1.5), "1.5"},
		"no number":         {types.Double(math.NaN()), `"NaN"`},
		"infinity":          {types.Double(math.Inf(1)), `"+Inf"`},
		"a string":          {types.String("a\"\u2028\xff"), `"a\"\u2028\ufffd"`},
		"a long string":     {types.String(strings.Repeat("ä", 3000)), `"ä~`},
		"bytes":             {types.Bytes("abc"), `"YWJj"`},
		"a timestamp":       {types.Timestamp{Time: time.Unix(0, 1).UTC()}, `"1970-01-01T00:00:00.000000001Z"`},
		"a duration":        {types.Duration{Duration: time.Minute}, `"1m0s"`},
		"a type":            {types.IntType, `"int"`},
		"an error":          {types.NewErr("no such key: %s", "a"), `{"error":"no such key: a"}`},
		"an absent value":   {types.OptionalNone, `{"absent":true}`},
		"an optional value": {types.OptionalOf(types.Int(1)), "1"},
		"a quantity":        {apiservercel.Quantity{Quantity: &quantity}, `"1Gi"`},
		"a list":            {native([]any{int64(1), "a", nil}), `[1,"a",null]`},
		"an object":         {native(map[string]any{"b": true, "a": map[string]any{}}), `{"a":{},"b":true}`},
		"keys of two types": {native(map[any]any{int64(1): "a", "1": "b"}), `{"1":"a","1":"b"}`},
		"a long list":       {native(numbers), `[0,1,2,~`},
		"a deep list":       {native(deep), `[[[[[[[[[{"...":"1 more"}]]]]]]]]]`},
		"a large item first": {
			native(map[string]any{"a": strings.Repeat("x", 5000), "b": int64(1), "c": "kept"}),
			`{"a":"xxx~`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(new(encoder).value(test.value))
			begin, isPrefix := strings.CutSuffix(test.want, "~")
			if got != test.want && (!isPrefix || !strings.HasPrefix(got, begin)) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if !json.Valid([]byte(got)) || len(got) > maxValueBytes {
				t.Errorf("no JSON or too long: %s", got)
			}
		})
	}
	for text, want := range map[string]string{
		string(new(encoder).value(types.String(strings.Repeat("ä", 3000)))):                                            `... (6000 bytes)"`,
		string(new(encoder).value(types.Bytes(strings.Repeat("a", 3000)))):                                             `... (3000 bytes)"`,
		string(new(encoder).value(native(numbers))):                                                                    ` more"}]`,
		string(new(encoder).value(native(map[string]any{"a": strings.Repeat("x", 5000), "b": int64(1), "c": "kept"}))): `... (5000 bytes)","b":1,"c":"kept"}`,
	} {
		if !strings.HasSuffix(text, want) {
			t.Errorf("%s: want %s at the end", text, want)
		}
	}
	large := map[string]any{}
	for i := range maxSortedFields + 1 {
		large[fmt.Sprint(i)] = i
	}
	if got, want := string(new(encoder).value(native(large))), `{"...":"1001 more"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// randomJSON draws a value as JSON decoding makes it.
func randomJSON(r *rand.Rand, depth int) any {
	text := func() string {
		return strings.Repeat([]string{"a", "ä", "\"", "\x01", "<", "\xff"}[r.IntN(6)], []int{0, 1, 3, 30, 300, 3000}[r.IntN(6)])
	}
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.Int64()
	case 2:
		return r.NormFloat64()
	case 3:
		return r.IntN(2) == 0
	case 4:
		return text()
	case 5:
		list := make([]any, r.IntN(20))
		for i := range list {
			list[i] = randomJSON(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for i := range r.IntN(20) {
		object[fmt.Sprint(text(), i)] = randomJSON(r, depth-1)
	}
	return object
}

// TestValueJSONIsBounded: whatever a value is, its text is JSON, short, the same
// each time, and complete when there is room for all.
func TestValueJSONIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var whole, cut int
	for range 5_000 {
		value := randomJSON(r, r.IntN(4))
		full, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got := new(encoder).value(native(value))
		if len(got) > maxValueBytes || !json.Valid(got) {
			t.Fatalf("%d bytes, or no JSON: %s\nof %.2000s", len(got), got, full)
		}
		if again := new(encoder).value(native(value)); string(again) != string(got) {
			t.Fatalf("got %s and then %s", got, again)
		}
		if n := new(encoder).size(native(value), math.MaxInt-1, 0); n < len(full) {
			t.Fatalf("size %d of %d bytes: %s", n, len(full), full)
		}
		var want, is any
		_ = json.Unmarshal(full, &want)
		_ = json.Unmarshal(got, &is)
		switch same := reflect.DeepEqual(want, is); {
		case same:
			whole++
		case len(full) < maxValueBytes/2: // size counts a comma too many for each container
			t.Fatalf("got %s\nwant %s", got, full)
		default:
			cut++
		}
	}
	if whole < 100 || cut < 100 {
		t.Errorf("%d whole and %d cut: the generator proves little", whole, cut)
	}
}

// TestStringJSONIsBounded covers the least room.
func TestStringJSONIsBounded(t *testing.T) {
	for room := leastBytes; room < 200; room++ {
		for _, part := range []string{"a", "ä", "\x01", "\"", "😀"} {
			for _, n := range []int{0, 1, room / 2, room, 10 * room} {
				for name, got := range map[string][]byte{
					"string": stringJSON(strings.Repeat(part, n), room),
					"bytes":  bytesJSON([]byte(strings.Repeat(part, n)), room),
					"mark":   mark("error", strings.Repeat(part, n), room),
				} {
					if len(got) > room || !json.Valid(got) {
						t.Fatalf("%s of %d times %q into %d bytes: %d bytes %s", name, n, part, room, len(got), got)
					}
				}
			}
		}
	}
}
