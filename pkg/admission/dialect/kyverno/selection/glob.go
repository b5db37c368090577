// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// glob is a text with wildcards that has been looked at once.
type glob struct {
	text string
	kind globKind
}

type globKind uint8

const (
	literal globKind = iota
	everything
	pattern
)

func newGlob(text string) glob {
	switch {
	case text == "*":
		return glob{text, everything}
	case wildcard.Contains(text):
		return glob{text, pattern}
	}
	return glob{text, literal}
}

func newGlobs(texts []string) []glob {
	globs := make([]glob, len(texts))
	for i, text := range texts {
		globs[i] = newGlob(text)
	}
	return globs
}

func (g *glob) match(text string) bool {
	switch g.kind {
	case literal:
		return g.text == text
	case everything:
		return true
	case pattern:
		return wildcard.Match(g.text, text)
	}
	return false
}

func matchAny(globs []glob, text string) bool {
	return slices.ContainsFunc(globs, func(g glob) bool { return g.match(text) })
}

func texts(globs []glob) []string {
	texts := make([]string, len(globs))
	for i := range globs {
		texts[i] = globs[i].text
	}
	return texts
}
