// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// patterns returns the functions of regular expressions and wildcards. Where a text is
// wanted they take a number too.
func patterns() []jmespath.Function {
	textual := jmespath.String | jmespath.Number
	shelf := new(shelf)
	return []jmespath.Function{
		{Name: "regex_match", Params: params(jmespath.String, textual), Call: shelf.match},
		{Name: "regex_replace_all", Params: params(jmespath.String, textual, textual), Call: shelf.replaceExpanding},
		{Name: "regex_replace_all_literal", Params: params(jmespath.String, textual, textual), Call: shelf.replaceLiteral},
		{Name: "pattern_match", Params: params(jmespath.String, textual), Call: patternMatch},
	}
}

func patternMatch(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	texts, err := plains(args, 2)
	if err != nil {
		return nil, err
	}
	if err := run.Spend(ctx, wildcard.Steps(texts[0], texts[1])/charactersPerStep+1, 0); err != nil {
		return nil, err
	}
	return wildcard.Match(texts[0], texts[1]), nil
}

func (s *shelf) match(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	texts, err := plains(args, 2)
	if err != nil {
		return nil, err
	}
	expression, err := s.take(ctx, run, texts[0])
	if err != nil {
		return nil, err
	}
	if err := expression.pay(ctx, run, texts[1]); err != nil {
		return nil, err
	}
	return expression.regexp.MatchString(texts[1]), nil
}

func (s *shelf) replaceExpanding(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	return s.replace(ctx, run, args, (*regexp.Regexp).ReplaceAllString, func(replacement string) int {
		return strings.Count(replacement, "$")
	})
}

func (s *shelf) replaceLiteral(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	return s.replace(ctx, run, args, (*regexp.Regexp).ReplaceAllLiteralString, func(string) int { return 0 })
}

// replace replaces what matches. The number of references in the replacement says how
// many times what matches may come again in the result, which is paid for beforehand.
func (s *shelf) replace(
	ctx context.Context, run *jmespath.Run, args []any,
	replace func(expression *regexp.Regexp, text, replacement string) string,
	references func(replacement string) int,
) (any, error) {
	texts, err := plains(args, 3)
	if err != nil {
		return nil, err
	}
	expression, err := s.take(ctx, run, texts[0])
	if err != nil {
		return nil, err
	}
	text, replacement := texts[1], texts[2]
	if err := expression.pay(ctx, run, text); err != nil {
		return nil, err
	}
	size := largest(len(text), len(text)+1, len(text), len(replacement), references(replacement))
	if size > run.Bytes {
		// What matches decides whether it can become that large.
		if err := expression.pay(ctx, run, text); err != nil {
			return nil, err
		}
		matches, matched := 0, 0
		expression.regexp.ReplaceAllStringFunc(text, func(match string) string {
			matches++
			matched += len(match)
			return ""
		})
		size = largest(len(text), matches, matched, len(replacement), references(replacement))
	}
	if size > run.Bytes {
		return nil, run.Spend(ctx, 0, size)
	}
	return made(ctx, run, replace(expression.regexp, text, replacement))
}

// largest returns how large the result of a replacement can be: each match is replaced,
// and each reference stands for the whole match.
func largest(text, matches, matched, replacement, references int) int {
	return text + matches*replacement + matched*references
}

// plains returns arguments that are texts or stand for one.
func plains(args []any, count int) ([]string, error) {
	if len(args) != count {
		return nil, fmt.Errorf("there are %d arguments, not %d", len(args), count)
	}
	texts := make([]string, count)
	for i, arg := range args {
		if _, ok := arg.(bool); ok {
			return nil, fmt.Errorf("argument %d is a boolean, neither a string nor a number", i+1)
		}
		var ok bool
		if texts[i], ok = plain(arg); !ok {
			return nil, fmt.Errorf("argument %d is %s, neither a string nor a number", i+1, typeName(arg))
		}
	}
	return texts, nil
}
