// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"strings"
)

// errTooLong says that a text is longer than any text may become.
var errTooLong = errors.New("the text would be longer than 2 MiB")

// errRounds says that values hold variables without end.
var errRounds = errors.New("variables stand in values of variables more than 32 levels deep")

// errDepth says that a value is nested too deeply to be looked at.
var errDepth = errors.New("the value is nested too deeply")

// Error says which part of a value could not be made.
type Error struct {
	// Path leads from the value that was rendered to the part.
	Path []string
	// Expression is the text of the variable, if one is to blame.
	Expression string
	Err        error
}

// Error implements error.
func (e *Error) Error() string {
	var text strings.Builder
	if path := dotted(e.Path); path != "" {
		text.WriteString(path)
		text.WriteString(": ")
	}
	if e.Expression != "" {
		text.WriteString("variable {{ ")
		text.WriteString(excerpt(e.Expression))
		text.WriteString(" }}: ")
	}
	text.WriteString(e.Err.Error())
	return text.String()
}

// Unwrap returns what went wrong, a *jmespath.NotFoundError for one.
func (e *Error) Unwrap() error { return e.Err }

// dotted writes a path as Kubernetes does: spec.containers[0].image.
func dotted(path []string) string {
	var text strings.Builder
	for _, part := range path {
		switch {
		case !plain(part):
			text.WriteByte('[')
			text.WriteString(excerpt(part))
			text.WriteByte(']')
		case text.Len() > 0:
			text.WriteByte('.')
			text.WriteString(part)
		default:
			text.WriteString(part)
		}
	}
	return text.String()
}

// excerpt cuts what is too long for a message.
func excerpt(text string) string {
	const most = 256
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
