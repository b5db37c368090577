// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"strconv"
	"strings"
)

// why says what is wrong with a condition.
type why uint8

const (
	// met says that nothing is.
	met why = iota
	// absent says that the key of the condition is not there.
	absent
	// different says that its value is another one.
	different
	// noElement says that there is no element of a list that meets it.
	noElement
	// noElements says that the list has no elements at all.
	noElements
)

// unmet is a condition that an object does not meet. The zero unmet is none.
type unmet struct {
	// condition is nil where no condition was looked at.
	condition *condition
	// path is that of the element for which no element was found.
	path []string
	why  why
}

// keep notes the first condition of an element that was not met by an element of the
// object.
func (u *unmet) keep(inner unmet) {
	if u.condition == nil {
		u.condition = inner.condition
	}
}

// ofElement says that the condition is one that keeps an element from being patched, and
// nothing around it.
func (c *condition) ofElement() bool { return c != nil && !c.global }

// String says which condition is not met, and why. It tells no value.
func (u unmet) String() string {
	if u.why == met {
		return ""
	}
	place := u.path
	if u.condition != nil {
		place = u.condition.path[:len(u.condition.path)-1]
	}
	if u.why >= noElement && len(place) == len(u.path) && len(place) > 0 {
		place = place[:len(place)-1] // What is asked of an element is said of the list.
	}
	at := dotted(place)
	if u.condition != nil && at != "" {
		at = " at " + at
	}
	if u.condition != nil {
		at = u.condition.String() + at
	}
	return at + ": " + u.why.String()
}

func (w why) String() string {
	switch w {
	case met:
		return ""
	case absent:
		return "there is no such field"
	case different:
		return "the value does not match"
	case noElement:
		return "no element matches"
	case noElements:
		return "the object has no elements there"
	}
	return ""
}

// String returns the condition as it is written in the overlay, without its value.
func (c *condition) String() string {
	if c.global {
		return "global condition <(" + excerpt(c.key) + ")"
	}
	return "condition (" + excerpt(c.key) + ")"
}

// dotted writes a path of an overlay as Kubernetes does: spec.containers[0].image.
func dotted(path []string) string {
	var text strings.Builder
	for _, part := range path {
		_, err := strconv.ParseUint(part, 10, 64)
		switch {
		case err == nil:
			text.WriteString("[" + part + "]")
		case strings.ContainsAny(part, "./[] "):
			text.WriteString("[" + excerpt(part) + "]")
		case text.Len() > 0:
			text.WriteString("." + excerpt(part))
		default:
			text.WriteString(excerpt(part))
		}
		if text.Len() > maxPlace {
			return text.String() + "..."
		}
	}
	return text.String()
}

const (
	// maxPlace is about how long a path in a message may be.
	maxPlace = 256
	// maxExcerpt is how long a key in a message may be.
	maxExcerpt = 64
)

// excerpt cuts what is too long for a message.
func excerpt(text string) string {
	if len(text) <= maxExcerpt {
		return text
	}
	return strings.ToValidUTF8(text[:maxExcerpt], "") + "..."
}
