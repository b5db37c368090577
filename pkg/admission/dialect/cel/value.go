// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Values are JSON. What is no value is an object with one key:
//
//	{"error": "no such key: spec"}      it cannot be evaluated
//	{"absent": true}                    an optional without a value
//	{"concealed": "data of Secret ..."} the asker may not read it
//	{"...": "12 more"}                  what did not fit, at the end of a list
//	{"type": "kubernetes.URL"}          nothing that JSON can show
//
// In an object, "...": "12 more" stands beside the fields that did fit. A string
// that did not fit ends with the length of the whole: "abc... (5000 bytes)".
const (
	maxValueBytes = 1 << 10
	maxValueDepth = 8
	// leastBytes is the room that any value needs, marks included.
	leastBytes = 48
	// workBytes of a text are as much work as another value.
	workBytes = 64
)

// encoder shows values as JSON and counts the work: what must be looked at to find
// out what fits can be much more than what is shown.
type encoder struct{ work uint64 }

// value returns v as JSON of at most maxValueBytes. Equal values have equal texts.
func (e *encoder) value(v ref.Val) json.RawMessage { return e.encode(v, maxValueBytes, 0) }

// mark returns an object with one key whose text is bounded.
func mark(key, text string, room int) []byte {
	return slices.Concat([]byte(`{"`+key+`":`), stringJSON(text, room-len(key)-len(`{"":}`)), []byte("}"))
}

// encode returns v as JSON of at most room bytes, which must be leastBytes or
// more.
func (e *encoder) encode(v ref.Val, room, depth int) []byte {
	e.work++
	switch v := v.(type) {
	case nil, types.Null:
		return []byte("null")
	case types.Bool:
		return strconv.AppendBool(nil, bool(v))
	case types.Int:
		return strconv.AppendInt(nil, int64(v), 10)
	case types.Uint:
		return strconv.AppendUint(nil, uint64(v), 10)
	case types.Double:
		return doubleJSON(float64(v))
	case types.String:
		return stringJSON(string(v), room)
	case types.Bytes:
		return bytesJSON(v, room)
	case types.Timestamp:
		return stringJSON(v.Format(time.RFC3339Nano), room)
	case types.Duration:
		return stringJSON(v.Duration.String(), room)
	case *types.Err:
		return mark("error", v.Error(), room)
	case *types.Optional:
		if !v.HasValue() {
			return []byte(`{"absent":true}`)
		}
		return e.encode(v.GetValue(), room, depth)
	case traits.Lister:
		return e.elementsOf(v).encode(room, depth)
	case traits.Mapper:
		return e.fieldsOf(v).encode(room, depth)
	}
	return otherJSON(v, room)
}

// size returns the length of the whole of v as JSON, or something above limit if
// that is longer.
func (e *encoder) size(v ref.Val, limit, depth int) int {
	e.work++
	switch v := v.(type) {
	case types.String:
		if len(v) > limit {
			return limit + 1
		}
		e.work += uint64(len(v)) / workBytes
		return len(stringJSON(string(v), math.MaxInt))
	case types.Bytes:
		return base64.StdEncoding.EncodedLen(len(v)) + len(`""`)
	case *types.Optional:
		if v.HasValue() {
			return e.size(v.GetValue(), limit, depth)
		}
	case traits.Lister:
		return e.elementsOf(v).size(limit, depth)
	case traits.Mapper:
		return e.fieldsOf(v).size(limit, depth)
	}
	return len(e.encode(v, math.MaxInt, depth))
}

// doubleJSON shows what JSON has no number for as a string.
func doubleJSON(number float64) []byte {
	text, err := json.Marshal(number)
	if err != nil {
		return strconv.AppendQuote(nil, fmt.Sprint(number))
	}
	return text
}

// otherJSON shows the types of the libraries, such as quantities, by their text.
func otherJSON(v ref.Val, room int) []byte {
	if t, ok := v.(ref.Type); ok {
		return stringJSON(t.TypeName(), room)
	}
	if text, ok := v.Value().(fmt.Stringer); ok {
		return stringJSON(text.String(), room)
	}
	return mark("type", v.Type().TypeName(), room)
}

// bytesJSON returns the base64 form, as encoding/json does.
func bytesJSON(data []byte, room int) []byte {
	if base64.StdEncoding.EncodedLen(len(data))+len(`""`) <= room {
		return stringJSON(base64.StdEncoding.EncodeToString(data), room)
	}
	shown := data[:min(len(data), max(0, room-leastBytes)/4*3)]
	return stringJSON(base64.StdEncoding.EncodeToString(shown)+fmt.Sprintf("... (%d bytes)", len(data)), room)
}

// stringJSON returns text as JSON of at most room bytes; what is cut ends with
// the length of the whole.
func stringJSON(text string, room int) []byte {
	if len(text) <= room {
		if whole, err := json.Marshal(text); err == nil && len(whole) <= room {
			return whole
		}
	}
	tail := fmt.Sprintf("... (%d bytes)", len(text))
	for keep := min(room-len(tail)-len(`""`), len(text)); keep > 0; keep -= max(keep/8, 1) {
		for keep > 0 && keep < len(text) && !utf8.RuneStart(text[keep]) {
			keep--
		}
		if short, err := json.Marshal(text[:keep] + tail); err == nil && len(short) <= room {
			return short
		}
	}
	return strconv.AppendQuote(nil, tail)
}
