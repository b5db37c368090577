// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"maps"
	"reflect"
)

// owned are the objects and lists that a series of applications has made, and may
// therefore change in place. What is in one of them is in no other place.
type owned struct {
	// objects are known by where they are. They are kept, so that no other one can come to
	// be there.
	objects map[uintptr]map[string]any
	// lists are known by their first element.
	lists map[*any]struct{}
}

// object returns an object that may be changed: a copy, unless it is owned.
func (o *owned) object(object map[string]any) map[string]any {
	if _, ok := o.objects[reflect.ValueOf(object).Pointer()]; ok {
		return object
	}
	copied := maps.Clone(object)
	if copied == nil {
		copied = map[string]any{}
	}
	if o.objects == nil {
		o.objects = map[uintptr]map[string]any{}
	}
	o.objects[reflect.ValueOf(copied).Pointer()] = copied
	return copied
}

// list returns a list that may be changed: a copy, unless it is owned.
func (o *owned) list(list []any) []any {
	if len(list) == 0 {
		return []any{}
	}
	if _, ok := o.lists[&list[0]]; ok {
		return list
	}
	return o.keep(append(make([]any, 0, len(list)+1), list...))
}

// keep notes that a list may be changed, which append may have moved.
func (o *owned) keep(list []any) []any {
	if len(list) == 0 {
		return list
	}
	if o.lists == nil {
		o.lists = map[*any]struct{}{}
	}
	o.lists[&list[0]] = struct{}{}
	return list
}

// forget gives up all ownership.
func (o *owned) forget() { *o = owned{} }

// same says whether one value is the other one: the same object or list in memory.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return false
}
