// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator compares the key and the value of a condition, as the handlers of
// Kyverno's pkg/engine/variables/operator do for requests: durations, quantities,
// versions, ranges and patterns are told from their texts. Operands are decoded JSON.
// It does not know variables, nor how conditions are combined.
//
// Kyverno's admission controller decodes numbers as float64; so all numbers are
// compared, and written where they are compared as texts: 1000000 is "1e+06". Where
// the handlers panic there is an error here.
package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// Operator is a comparison. The zero value is none, and fails.
type Operator uint8

// The operators. Equal, NotEqual, In, NotIn and those of durations are older forms.
const (
	Unknown Operator = iota
	Equal
	Equals
	NotEqual
	NotEquals
	In
	NotIn
	AnyIn
	AllIn
	AnyNotIn
	AllNotIn
	GreaterThan
	GreaterThanOrEquals
	LessThan
	LessThanOrEquals
	DurationGreaterThan
	DurationGreaterThanOrEquals
	DurationLessThan
	DurationLessThanOrEquals
)

// Names returns the names of the operators, the older ones last.
func Names() []string {
	return []string{
		"Equals", "NotEquals", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn",
		"GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals",
		"Equal", "NotEqual", "In", "NotIn",
		"DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals",
	}
}

// Parse returns the operator of a name. Case matters, as it does where Kyverno
// validates policies.
func Parse(name string) (Operator, error) {
	for o := Equal; o <= DurationLessThanOrEquals; o++ {
		if o.String() == name {
			return o, nil
		}
	}
	return Unknown, fmt.Errorf("unknown operator %.64q: use one of %s", name, strings.Join(Names(), ", "))
}

// String returns the name of the operator.
func (o Operator) String() string {
	switch o {
	case Equal:
		return "Equal"
	case Equals:
		return "Equals"
	case NotEqual:
		return "NotEqual"
	case NotEquals:
		return "NotEquals"
	case In:
		return "In"
	case NotIn:
		return "NotIn"
	case AnyIn:
		return "AnyIn"
	case AllIn:
		return "AllIn"
	case AnyNotIn:
		return "AnyNotIn"
	case AllNotIn:
		return "AllNotIn"
	case GreaterThan, GreaterThanOrEquals, LessThan, LessThanOrEquals:
		return o.order().String()
	case DurationGreaterThan, DurationGreaterThanOrEquals, DurationLessThan, DurationLessThanOrEquals:
		return "Duration" + o.order().String()
	case Unknown:
	}
	return "unknown operator"
}

// Holds says whether the operator holds between key and value, which it never
// modifies. Operands that it cannot compare are no error: it does not hold between
// them, or does when it is one of the negative ones, as in Kyverno. It spends from run,
// and fails when that cannot pay for it.
func (o Operator) Holds(ctx context.Context, run *jmespath.Run, key, value any) (bool, error) {
	c := &comparison{ctx: ctx, run: run}
	if err := c.spend(1); err != nil {
		return false, err
	}
	switch o {
	case Equal, Equals:
		return c.equal(key, value)
	case NotEqual, NotEquals:
		if key == nil {
			return false, nil
		}
		equal, err := c.equal(key, value)
		return !equal && err == nil, err
	case In, NotIn:
		return c.member(key, value, o == NotIn)
	case AnyIn, AllIn, AnyNotIn, AllNotIn:
		return c.members(o, key, value)
	case GreaterThan, GreaterThanOrEquals, LessThan, LessThanOrEquals:
		return c.ordered(o.order(), key, value), nil
	case DurationGreaterThan, DurationGreaterThanOrEquals, DurationLessThan, DurationLessThanOrEquals:
		return c.durationsOrdered(o.order(), key, value), nil
	case Unknown:
	}
	return false, fmt.Errorf("operator %d does not exist", o)
}

// comparison is one call of Holds.
type comparison struct {
	ctx context.Context //nolint:containedctx // it lives no longer than the call of Holds
	run *jmespath.Run
}

// charactersPerStep is how many characters are compared in the time of a step.
const charactersPerStep = 32

func (c *comparison) spend(characters int) error {
	return c.run.Spend(c.ctx, 1+characters/charactersPerStep, 0)
}
