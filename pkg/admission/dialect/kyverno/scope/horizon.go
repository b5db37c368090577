// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"strconv"
	"strings"
)

// The variables that no entry declares.
const (
	variableRequest          = "request"
	variableImages           = "images"
	variableAccount          = "serviceAccountName"
	variableAccountNamespace = "serviceAccountNamespace"
	variableElement          = "element"
	variableIndex            = "elementIndex"
)

// mapEntrySize is about what an entry of a map takes.
const mapEntrySize = 48

// horizon is as much of the variables as can be seen from a place: an entry sees the
// entries before it, and the elements of the loops around it.
type horizon struct {
	v *Variables
	// declared and elements are how many of them can be seen.
	declared, elements int
}

// Field implements jmespath.Scope.
func (h horizon) Field(ctx context.Context, name string) (any, bool, error) {
	if value, ok, err := h.given(ctx, name); ok || err != nil {
		return value, ok, err
	}
	return h.v.lookup(ctx, name, h.declared)
}

// Object implements jmespath.Scope.
func (h horizon) Object(ctx context.Context) (map[string]any, error) {
	if err := h.v.run.Spend(ctx, h.declared+h.elements, (h.declared+h.elements+8)*mapEntrySize); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for _, name := range []string{variableRequest, variableImages, variableAccount, variableAccountNamespace} {
		value, ok, err := h.given(ctx, name)
		if err != nil {
			return nil, err
		}
		if ok {
			object[name] = value
		}
	}
	for level, current := range h.v.elements[:h.elements] {
		number := strconv.Itoa(level)
		object[variableElement], object[variableElement+number] = current.value, current.value
		object[variableIndex], object[variableIndex+number] = current.index, current.index
	}
	for i := range h.declared {
		if d := &h.v.declared[i]; d.asked && d.err == nil {
			object[d.entry.name] = d.value
		}
	}
	return object, nil
}

// given returns a variable that no entry declares.
func (h horizon) given(ctx context.Context, name string) (value any, ok bool, err error) {
	switch name {
	case variableRequest:
		value, err = h.v.requestValue(ctx)
		return value, err == nil, err
	case variableImages:
		return h.v.imagesValue(ctx)
	case variableAccount:
		_, account := serviceAccount(h.v.in.Request.User)
		return account, true, nil
	case variableAccountNamespace:
		namespace, _ := serviceAccount(h.v.in.Request.User)
		return namespace, true, nil
	}
	if number, found := strings.CutPrefix(name, variableIndex); found {
		if current := h.elementAt(number); current != nil {
			return current.index, true, nil
		}
	} else if number, found := strings.CutPrefix(name, variableElement); found {
		if current := h.elementAt(number); current != nil {
			return current.value, true, nil
		}
	}
	return nil, false, nil
}

// elementAt returns the element of a level, or the innermost when number is empty. It is
// nil when there is none.
func (h horizon) elementAt(number string) *element {
	level := h.elements - 1
	if number != "" {
		parsed, err := strconv.Atoi(number)
		if err != nil || strconv.Itoa(parsed) != number {
			return nil
		}
		level = parsed
	}
	if level < 0 || level >= h.elements {
		return nil
	}
	return &h.v.elements[level]
}
