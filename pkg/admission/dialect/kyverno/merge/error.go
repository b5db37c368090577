// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is a mistake in a patch, or a patch that does not fit the object.
type Error struct {
	// Path leads to the place in the patch, such as spec.containers[0].env.
	Path   string
	Detail string
}

// Error returns the path and what is wrong there.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

func errorf(format string, args ...any) *Error {
	return &Error{Detail: fmt.Sprintf(format, args...)}
}

// in returns the error as seen from the map that has the key.
func (e *Error) in(key string) *Error {
	if strings.ContainsAny(key, "./[]") {
		key = "[" + key + "]"
	}
	if e.Path != "" && e.Path[0] != '[' {
		key += "."
	}
	e.Path = key + e.Path
	return e
}

// at returns the error as seen from the list that has the element.
func (e *Error) at(index int) *Error {
	place := "[" + strconv.Itoa(index) + "]"
	if e.Path != "" && e.Path[0] != '[' {
		place += "."
	}
	e.Path = place + e.Path
	return e
}
