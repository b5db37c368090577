// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
)

// addTyped counts a value of a Go type as SchemalessTypedToVal of
// k8s.io/apiserver/pkg/cel/common shows it to expressions: as its JSON.
func (t *tally) addTyped(value reflect.Value, depth int) bool {
	if depth == 0 {
		return false
	}
	if !value.IsValid() {
		t.values++
		return true
	}
	if marshaler, ok := marshalerOf(value); ok {
		return t.addJSON(marshaler, depth)
	}
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return t.addTyped(value.Elem(), depth-1)
	case reflect.Struct:
		t.values++
		return t.addStruct(value, depth-1)
	case reflect.Map:
		return t.addMap(value, depth-1)
	case reflect.Slice, reflect.Array:
		return t.addSlice(value, depth-1)
	case reflect.String:
		t.values++
		t.addText(value.String())
		return true
	default:
		t.values++
		return isScalar(value.Kind())
	}
}

// marshalerOf returns value, or a pointer to a copy of it, if it marshals itself.
func marshalerOf(value reflect.Value) (json.Marshaler, bool) {
	if !value.CanInterface() || isNil(value) {
		return nil, false
	}
	if marshaler, ok := value.Interface().(json.Marshaler); ok {
		return marshaler, true
	}
	if !reflect.PointerTo(value.Type()).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil, false
	}
	pointer := reflect.New(value.Type())
	pointer.Elem().Set(value)
	marshaler, ok := pointer.Interface().(json.Marshaler)
	return marshaler, ok
}

// addJSON counts what a type makes of itself.
func (t *tally) addJSON(marshaler json.Marshaler, depth int) bool {
	text, err := json.Marshal(marshaler)
	if err != nil {
		return false
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return false
	}
	return t.add(decoded, depth)
}

// addStruct counts a struct as a map of its fields, those of embedded structs included.
func (t *tally) addStruct(object reflect.Value, depth int) bool {
	before := t.length
	t.length = 0
	fields := 0
	for i := range object.NumField() {
		field := object.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "omitempty") && isEmpty(object.Field(i)) {
			continue
		}
		if field.Anonymous && name == "" && !t.embed(object.Field(i), &fields, depth) {
			return false
		}
		if field.Anonymous && name == "" {
			continue
		}
		fields++
		t.addText(field.Name + name)
		if !t.addTyped(object.Field(i), depth) {
			return false
		}
	}
	t.values += fields
	t.length = max(t.length, before, fields)
	return true
}

// embed counts the fields of an embedded struct as those of the struct around it.
func (t *tally) embed(embedded reflect.Value, fields *int, depth int) bool {
	inner := tally{}
	if !inner.addTyped(embedded, depth-1) {
		return false
	}
	t.text = max(t.text, inner.text)
	t.length = max(t.length, inner.length)
	t.values += inner.values
	t.bytes += inner.bytes
	*fields += inner.length
	return true
}

func (t *tally) addMap(object reflect.Value, depth int) bool {
	t.values += 1 + object.Len()
	t.length = max(t.length, object.Len())
	if object.Type().Key().Kind() != reflect.String {
		return object.Len() == 0
	}
	for fields := object.MapRange(); fields.Next(); {
		t.addText(fields.Key().String())
		if !t.addTyped(fields.Value(), depth) {
			return false
		}
	}
	return true
}

func (t *tally) addSlice(list reflect.Value, depth int) bool {
	t.values++
	if list.Type().Elem().Kind() == reflect.Uint8 {
		size := base64.StdEncoding.EncodedLen(list.Len())
		t.text = max(t.text, size)
		t.bytes += size
		return true
	}
	t.length = max(t.length, list.Len())
	for i := range list.Len() {
		if !t.addTyped(list.Index(i), depth) {
			return false
		}
	}
	return true
}

func isScalar(kind reflect.Kind) bool {
	switch kind {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return true
	default:
		return false
	}
}

func isNil(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return value.IsNil()
	default:
		return false
	}
}

// isEmpty tells what omitempty leaves out.
func isEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return value.Len() == 0
	case reflect.Struct:
		return false
	default:
		return value.IsZero()
	}
}
