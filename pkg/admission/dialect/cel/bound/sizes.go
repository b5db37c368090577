// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math/bits"
	"reflect"
)

const (
	// maxDepth bounds how deep the data of a request may be nested to be measured.
	maxDepth = 128
	// metadataField is the field of an object that is measured apart.
	metadataField = "metadata"
)

// Sizes bounds the data that an expression reads. Sizes can be compared and are
// quantized to powers of two, so that few different ones occur. The zero value knows
// nothing: no expression that depends on data has a bound under it.
type Sizes struct {
	// The metadata of objects is apart: the configuration that kubectl keeps in an
	// annotation and the managed fields are often larger than all of the rest.
	metadata, rest extent
}

// extent bounds a part of the data. Each number is one more than the binary
// logarithm of an amount, rounded up; 0: unknown.
type extent struct {
	// text is the longest text, length the most entries of a list or map.
	text, length uint8
	// values and bytes count all values, keys included, and their text.
	values, bytes uint8
}

// Measure returns Sizes that hold for each of values: objects as JSON decodes
// them, nil, and values of Go types that expressions see as JSON, which take longer.
// Anything else, and data that is nested too deep, gives the zero Sizes.
func Measure(values ...any) Sizes {
	s := Sizes{metadata: tally{}.extent(), rest: tally{}.extent()}
	for _, value := range values {
		s = s.Max(measure(value))
	}
	return s
}

func measure(value any) Sizes {
	if u, ok := value.(interface{ UnstructuredContent() map[string]any }); ok {
		value = u.UnstructuredContent()
	}
	metadata, rest := tally{}, tally{}
	if object, isMap := value.(map[string]any); isMap {
		rest.values++
		if !metadata.add(object[metadataField], maxDepth-1) || !rest.addFields(object, metadataField, maxDepth-1) {
			return Sizes{}
		}
		return Sizes{metadata: metadata.extent(), rest: rest.extent()}
	}
	if !rest.add(value, maxDepth) {
		return Sizes{}
	}
	return Sizes{metadata: rest.extent(), rest: rest.extent()}
}

// Max returns Sizes that hold for the data of s and for the data of other.
func (s Sizes) Max(other Sizes) Sizes {
	if s == (Sizes{}) || other == (Sizes{}) {
		return Sizes{}
	}
	return Sizes{metadata: s.metadata.max(other.metadata), rest: s.rest.max(other.rest)}
}

func (e extent) max(other extent) extent {
	return extent{
		text:   max(e.text, other.text),
		length: max(e.length, other.length),
		values: max(e.values, other.values),
		bytes:  max(e.bytes, other.bytes),
	}
}

// value bounds every value in the part of the data.
func (e extent) value() value {
	if e == (extent{}) {
		return anything()
	}
	return value{
		text: amount(e.text), length: amount(e.length),
		innerText: amount(e.text), innerLength: amount(e.length),
		values: amount(e.values), bytes: amount(e.bytes),
	}
}

// quantize encodes the least power of two that is not below n.
func quantize(n int) uint8 {
	if n <= 1 {
		return 1
	}
	return uint8(bits.Len(uint(n-1))) + 1 //nolint:gosec // At most 64.
}

func amount(quantized uint8) uint64 {
	return 1 << (quantized - 1)
}

// tally sums up one part of the data.
type tally struct {
	text, length, values, bytes int
}

func (t tally) extent() extent {
	return extent{
		text: quantize(t.text), length: quantize(t.length),
		values: quantize(t.values), bytes: quantize(t.bytes),
	}
}

// add counts value and tells whether it could.
func (t *tally) add(value any, depth int) bool {
	if depth == 0 {
		return false
	}
	t.values++
	switch v := value.(type) {
	case map[string]any:
		return t.addFields(v, "", depth-1)
	case []any:
		t.length = max(t.length, len(v))
		for _, element := range v {
			if !t.add(element, depth-1) {
				return false
			}
		}
	case string:
		t.addText(v)
	case nil, bool, int64, float64, int, int32, uint64, uint32, float32:
	case map[string]string:
		t.length = max(t.length, len(v))
		t.values += 2 * len(v)
		for key, field := range v {
			t.addText(key)
			t.addText(field)
		}
	case []string:
		t.addTexts(v)
	case error:
		// A caller has it instead of the data.
		return false
	default:
		t.values--
		return t.addTyped(reflect.ValueOf(value), depth)
	}
	return true
}

// addFields counts the keys of object, and its fields but the one called apart.
func (t *tally) addFields(object map[string]any, apart string, depth int) bool {
	t.length = max(t.length, len(object))
	t.values += len(object)
	for key, field := range object {
		t.addText(key)
		if key == apart && apart != "" {
			continue
		}
		if !t.add(field, depth) {
			return false
		}
	}
	return true
}

// addTexts counts what is in a list.
func (t *tally) addTexts(list []string) {
	t.length = max(t.length, len(list))
	t.values += len(list)
	for _, element := range list {
		t.addText(element)
	}
}

func (t *tally) addText(s string) {
	t.text = max(t.text, len(s))
	t.bytes += len(s)
}
