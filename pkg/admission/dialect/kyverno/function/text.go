// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// texts returns the functions that take texts apart and put them together.
func texts() []jmespath.Function {
	return []jmespath.Function{
		ofTexts("compare", 2, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
			return int64(strings.Compare(texts[0], texts[1])), nil
		}),
		ofTexts("equal_fold", 2, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
			return strings.EqualFold(texts[0], texts[1]), nil
		}),
		ofTexts("replace_all", 3, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return replace(ctx, run, texts, -1)
		}),
		{
			Name:   "replace",
			Params: params(jmespath.String, jmespath.String, jmespath.String, jmespath.Number),
			Call:   replaceSome,
		},
		ofTexts("to_upper", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return made(ctx, run, strings.ToUpper(texts[0]))
		}),
		ofTexts("to_lower", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return made(ctx, run, strings.ToLower(texts[0]))
		}),
		ofTexts("trim", 2, trim),
		ofTexts("trim_prefix", 2, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
			return strings.TrimPrefix(texts[0], texts[1]), nil
		}),
		ofTexts("split", 2, split),
		{Name: "truncate", Params: params(jmespath.String, jmespath.Number), Call: truncate},
		ofTexts("to_boolean", 1, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
			return toBoolean(texts[0])
		}),
		ofTexts("path_canonicalize", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			if texts[0] == "" {
				return "", nil
			}
			return made(ctx, run, path.Clean(texts[0]))
		}),
	}
}

// replaceSome replaces as many times as the last argument says: all, if that is
// negative. A fraction of it does not count.
func replaceSome(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	texts := make([]string, 3)
	for i := range texts {
		var err error
		if texts[i], err = argument[string](args, i); err != nil {
			return nil, err
		}
	}
	limit, err := count(args, 3)
	if err != nil {
		return nil, err
	}
	if err := read(ctx, run, texts...); err != nil {
		return nil, err
	}
	return replace(ctx, run, texts, limit)
}

// replace replaces the second of texts by the third in the first. It pays for the
// result before it makes it.
func replace(ctx context.Context, run *jmespath.Run, texts []string, limit int) (any, error) {
	text, old, replacement := texts[0], texts[1], texts[2]
	times := strings.Count(text, old)
	if limit >= 0 {
		times = min(times, limit)
	}
	size := len(text) + times*(len(replacement)-len(old))
	if err := run.Spend(ctx, size/charactersPerStep, size); err != nil {
		return nil, err
	}
	return strings.Replace(text, old, replacement, limit), nil
}

func trim(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
	// Each character at the ends is looked for in the whole set.
	if err := run.Spend(ctx, len(texts[0])*len(texts[1])/charactersPerStep, 0); err != nil {
		return nil, err
	}
	return strings.Trim(texts[0], texts[1]), nil
}

func split(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
	parts := strings.Count(texts[0], texts[1]) + 1
	if err := run.Spend(ctx, parts, parts*bytesPerItem); err != nil {
		return nil, err
	}
	list := make([]any, 0, parts)
	for _, part := range strings.Split(texts[0], texts[1]) {
		list = append(list, part)
	}
	return list, nil
}

// truncate returns the first characters of a text, none for a negative length.
func truncate(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	text, err := argument[string](args, 0)
	if err != nil {
		return nil, err
	}
	length, err := count(args, 1)
	if err != nil {
		return nil, err
	}
	if err := read(ctx, run, text); err != nil {
		return nil, err
	}
	characters := 0
	for at := range text {
		if characters >= length {
			return text[:at], nil
		}
		characters++
	}
	return text, nil
}

func toBoolean(text string) (any, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return nil, fmt.Errorf("%s is neither true nor false", quoted(text))
	}
}

// quoted returns a text for a message, and only the beginning of a long one.
func quoted(text string) string {
	const most = 100
	if len(text) > most {
		return fmt.Sprintf("%.*q...", most, text)
	}
	return fmt.Sprintf("%q", text)
}
