// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

const (
	// unbounded is how many times more than it must something without an upper bound
	// is repeated at most.
	unbounded = 16
	// maxRandom bounds the text that is made, and the work of making it.
	maxRandom = 16 << 10
)

// The characters that stand for any character, if the pattern allows them.
const firstPrintable, lastPrintable = ' ', '~'

// random returns function random, which makes a text that a regular expression in the
// syntax of POSIX describes. Which text that is depends on the pattern and on the seed of
// the request alone: a request that is judged again gets the same text, and so do all
// calls with the same pattern in it.
func random() jmespath.Function {
	return ofTexts("random", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
		pattern := texts[0]
		if pattern == "" {
			return nil, errors.New("the pattern is empty")
		}
		if len(pattern) > maxPattern {
			return nil, errTooLarge
		}
		parsed, err := syntax.Parse(pattern, syntax.POSIX)
		if err != nil {
			return nil, fmt.Errorf("%s is not a regular expression: %w", quoted(pattern), err)
		}
		g := generator{chance: chance(run.Seed, pattern)}
		if err := g.generate(parsed); err != nil {
			return nil, err
		}
		if err := run.Spend(ctx, g.steps, 0); err != nil {
			return nil, err
		}
		return made(ctx, run, g.text.String())
	})
}

// chance returns a source of numbers for a pattern in a request.
func chance(seed, pattern string) *rand.Rand {
	hash := sha256.New()
	// The length keeps the seed and the pattern apart.
	fmt.Fprintf(hash, "%d %s%s", len(seed), seed, pattern)
	return rand.New(rand.NewChaCha8([32]byte(hash.Sum(nil)))) //nolint:gosec // The same request must get the same text.
}

// generator makes one text.
type generator struct {
	chance *rand.Rand
	text   strings.Builder
	steps  int
}

// generate adds a text that an expression describes. Conditions on the place, such as ^,
// are taken for fulfilled, as Kyverno does. The parser bounds the depth.
func (g *generator) generate(expression *syntax.Regexp) error {
	g.steps++
	if g.text.Len() > maxRandom || g.steps > maxRandom {
		return fmt.Errorf("the pattern stands for texts of more than %d characters", maxRandom)
	}
	switch expression.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nil
	case syntax.OpLiteral:
		g.text.WriteString(string(expression.Rune))
		return nil
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		g.character([]rune{firstPrintable, lastPrintable})
		return nil
	case syntax.OpCharClass:
		g.character(expression.Rune)
		return nil
	case syntax.OpCapture, syntax.OpConcat:
		return g.repeat(expression.Sub, 1, 1)
	case syntax.OpAlternate:
		return g.generate(expression.Sub[g.chance.IntN(len(expression.Sub))])
	case syntax.OpQuest:
		return g.repeat(expression.Sub, 0, 1)
	case syntax.OpStar:
		return g.repeat(expression.Sub, 0, -1)
	case syntax.OpPlus:
		return g.repeat(expression.Sub, 1, -1)
	case syntax.OpRepeat:
		return g.repeat(expression.Sub, expression.Min, expression.Max)
	default:
		return errors.New("no text matches the pattern")
	}
}

// repeat adds texts of all expressions, one after the other, some times. There is no
// upper bound when most is negative.
func (g *generator) repeat(expressions []*syntax.Regexp, least, most int) error {
	if most < 0 {
		most = least + unbounded
	}
	for range least + g.chance.IntN(most-least+1) {
		for _, expression := range expressions {
			if err := g.generate(expression); err != nil {
				return err
			}
		}
	}
	return nil
}

// character adds one of the characters in ranges: a printable one of ASCII, if there are
// some.
func (g *generator) character(ranges []rune) {
	printable := make([]rune, 0, len(ranges))
	for i := 0; i+1 < len(ranges); i += 2 {
		first, last := max(ranges[i], firstPrintable), min(ranges[i+1], lastPrintable)
		if first <= last {
			printable = append(printable, first, last)
		}
	}
	if len(printable) > 0 {
		ranges = printable
	}
	total := rune(0)
	for i := 0; i+1 < len(ranges); i += 2 {
		total += ranges[i+1] - ranges[i] + 1
	}
	choice := g.chance.Int32N(total)
	for i := 0; i+1 < len(ranges); i += 2 {
		if size := ranges[i+1] - ranges[i] + 1; choice >= size {
			choice -= size
			continue
		}
		g.text.WriteRune(ranges[i] + choice)
		return
	}
}
