// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// The bounds of regular expressions: of their text, of one once it is compiled, and of
// all that are kept.
const (
	maxPattern    = 8 << 10
	maxProgram    = 10_000
	maxShelf      = 100_000
	programInStep = 4
)

var errTooLarge = errors.New("the regular expression is too large")

// expression is a compiled regular expression.
type expression struct {
	regexp *regexp.Regexp
	// size is about how many instructions it has, each of which may have to look at
	// each character.
	size int
}

// pay pays for matching a text.
func (e *expression) pay(ctx context.Context, run *jmespath.Run, text string) error {
	return run.Spend(ctx, 1+e.size*len(text)/programInStep, 0)
}

// shelf keeps the regular expressions that were used last. What an expression costs does
// not depend on whether it was there.
type shelf struct {
	mu sync.Mutex
	// What has not been used while the recent ones came to half of the bound is given up.
	recent, former map[string]*expression
	size           int
}

// take returns the expression of a pattern.
func (s *shelf) take(ctx context.Context, run *jmespath.Run, pattern string) (*expression, error) {
	if len(pattern) > maxPattern {
		return nil, errTooLarge
	}
	if err := read(ctx, run, pattern); err != nil {
		return nil, err
	}
	kept := s.find(pattern)
	if kept == nil {
		// The pattern may be a part of a text that is much larger.
		pattern = strings.Clone(pattern)
		var err error
		if kept, err = compile(pattern); err != nil {
			return nil, err
		}
		s.put(pattern, kept)
	}
	return kept, run.Spend(ctx, kept.size/programInStep, 0)
}

func (s *shelf) find(pattern string) *expression {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.recent[pattern]; ok {
		return kept
	}
	kept, ok := s.former[pattern]
	if ok {
		s.keep(pattern, kept)
	}
	return kept
}

func (s *shelf) put(pattern string, compiled *expression) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(pattern, compiled)
}

// keep puts an expression among the recent ones. The lock is held.
func (s *shelf) keep(pattern string, compiled *expression) {
	if _, ok := s.recent[pattern]; ok {
		return
	}
	cost := compiled.size + len(pattern)
	if s.recent == nil || s.size+cost > maxShelf/2 {
		s.recent, s.former, s.size = make(map[string]*expression), s.recent, 0
	}
	s.recent[pattern] = compiled
	s.size += cost
}

// compile compiles a pattern that is not too large.
func compile(pattern string) (*expression, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%s is not a regular expression: %w", quoted(pattern), err)
	}
	size := programSize(parsed)
	if size > maxProgram {
		return nil, errTooLarge
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s is not a regular expression: %w", quoted(pattern), err)
	}
	return &expression{regexp: compiled, size: size}, nil
}

// programSize returns about how many instructions an expression compiles to, and more
// than maxProgram if these are too many. The parser bounds its depth.
func programSize(parsed *syntax.Regexp) int {
	size := 1 + len(parsed.Rune)
	if parsed.Op == syntax.OpCharClass {
		size = 1 + len(parsed.Rune)/8
	}
	for _, sub := range parsed.Sub {
		size = min(size+programSize(sub), maxProgram+1)
	}
	if parsed.Op == syntax.OpRepeat {
		size *= max(1, parsed.Min, parsed.Max)
	}
	return min(size, maxProgram+1)
}
