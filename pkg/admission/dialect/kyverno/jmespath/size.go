// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"fmt"
)

// textSteps is what reading a text costs.
func textSteps(length int) int { return length / 64 }

func textBytes(length int) int { return 16 + length }

func listBytes(items int) int { return 24 + 16*items }

func objectBytes(fields int) int { return 48 + 48*fields }

func errNested() error {
	return fmt.Errorf("%w: a value is nested deeper than %d", ErrBudget, maxDepth)
}

// weigh takes from the budget what a value would be if it shared nothing: a list that
// holds the same value twice, forty times over, takes little memory but as much as the
// universe once it is written.
func weigh(ctx context.Context, run *Run, value any, depth int) error {
	if depth > maxDepth {
		return errNested()
	}
	switch v := value.(type) {
	case string:
		return run.take(ctx, 1, textBytes(len(v)))
	case []any:
		if err := run.take(ctx, 1, listBytes(len(v))); err != nil {
			return err
		}
		for _, item := range v {
			if err := weigh(ctx, run, item, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := run.take(ctx, 1, objectBytes(len(v))); err != nil {
			return err
		}
		for key, item := range v {
			if err := run.take(ctx, 0, len(key)); err != nil {
				return err
			}
			if err := weigh(ctx, run, item, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := finite(value); err != nil {
		return err
	}
	return run.take(ctx, 1, 8)
}

// equal compares two values, numbers by their values whatever their types.
func equal(ctx context.Context, run *Run, left, right any, depth int) (bool, error) {
	if depth > maxDepth {
		return false, errNested()
	}
	if err := run.take(ctx, 1, 0); err != nil {
		return false, err
	}
	switch l := left.(type) {
	case nil:
		return right == nil, nil
	case bool:
		r, ok := right.(bool)
		return ok && l == r, nil
	case string:
		r, ok := right.(string)
		if !ok || len(l) != len(r) {
			return false, nil
		}
		return l == r, run.take(ctx, textSteps(len(l)), 0)
	case []any:
		r, ok := right.([]any)
		if !ok {
			return false, nil
		}
		return equalLists(ctx, run, l, r, depth)
	case map[string]any:
		r, ok := right.(map[string]any)
		if !ok {
			return false, nil
		}
		return equalObjects(ctx, run, l, r, depth)
	}
	sign, ordered := compareNumbers(left, right)
	return ordered && sign == 0, nil
}

func equalLists(ctx context.Context, run *Run, left, right []any, depth int) (bool, error) {
	if len(left) != len(right) {
		return false, nil
	}
	for i := range left {
		if same, err := equal(ctx, run, left[i], right[i], depth+1); !same {
			return false, err
		}
	}
	return true, nil
}

func equalObjects(ctx context.Context, run *Run, left, right map[string]any, depth int) (bool, error) {
	if len(left) != len(right) {
		return false, nil
	}
	// In the order of the keys, so that what is spent does not depend on chance.
	keys, err := sortedKeys(ctx, run, left)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		r, ok := right[key]
		if !ok {
			return false, nil
		}
		if same, err := equal(ctx, run, left[key], r, depth+1); !same {
			return false, err
		}
	}
	return true, nil
}
