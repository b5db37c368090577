// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// Values are not deeper than documents can be.
const maxDepth = 10000

// equal compares two values of JSON, numbers by value. It pays a step for each pair, and
// goes on after the first difference, so that what it costs does not depend on the order
// of the fields of an object.
func equal(ctx context.Context, run *jmespath.Run, a, b any, depth int) (bool, error) {
	if err := run.Spend(ctx, 1, 0); err != nil {
		return false, err
	}
	if depth > maxDepth {
		return false, errors.New("a value is nested too deep to be compared")
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		return equalLists(ctx, run, a, b, depth)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		return contained(ctx, run, a, b, depth)
	case string:
		b, ok := b.(string)
		return ok && a == b, nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b, nil
	case nil:
		return b == nil, nil
	default:
		return equalNumbers(a, b), nil
	}
}

func equalLists(ctx context.Context, run *jmespath.Run, a, b []any, depth int) (bool, error) {
	all := true
	for i := range a {
		same, err := equal(ctx, run, a[i], b[i], depth+1)
		if err != nil {
			return false, err
		}
		all = all && same
	}
	return all, nil
}

// contained says whether b has all fields of a with equal values.
func contained(ctx context.Context, run *jmespath.Run, a, b map[string]any, depth int) (bool, error) {
	all := true
	for key, value := range a {
		other, ok := b[key]
		same, err := equal(ctx, run, value, other, depth+1)
		if err != nil {
			return false, err
		}
		all = all && ok && same
	}
	return all, nil
}

func equalNumbers(a, b any) bool {
	left, leftOK := integer(a)
	right, rightOK := integer(b)
	if leftOK && rightOK {
		return left == right
	}
	leftFloat, leftOK := fraction(a)
	rightFloat, rightOK := fraction(b)
	return leftOK && rightOK && leftFloat == rightFloat
}
