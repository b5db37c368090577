// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/merge"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// judgement judges an overlay without variables against one object.
type judgement struct {
	run *jmespath.Run
	// missed is the first element of a list for which the object had none.
	missed unmet
}

// judged is what comes of a part for a value of the object.
type judged struct {
	// patch is what to merge into the value, unless there is none.
	patch any
	none  bool
	// unmet is the condition for which nothing is to be merged into what is around the
	// part, up to the element of a list.
	unmet unmet
}

// value judges a part. Value is what the object has where the part is, or nil.
func (j *judgement) value(ctx context.Context, p part, value any, s merge.Schema) (judged, error) {
	switch p := p.(type) {
	case nothing:
		return judged{none: true}, nil
	case *literal:
		return judged{patch: p.value}, j.run.Spend(ctx, 1, p.size)
	case *mapping:
		return j.mapping(ctx, p, value, s)
	case *list:
		return j.list(ctx, p, value, s)
	default:
		return judged{}, fmt.Errorf("a part of the overlay is a %T, whose variables were not replaced", p)
	}
}

// mapping judges a map. What is left of it without anchors is none if that is nothing: a
// map that is there for its anchors alone makes no map in the object.
func (j *judgement) mapping(ctx context.Context, m *mapping, value any, s merge.Schema) (judged, error) {
	if err := j.run.Spend(ctx, 1+len(m.conditions)+len(m.adds)+len(m.fields), m.size); err != nil {
		return judged{}, err
	}
	object, _ := value.(map[string]any)
	unmet, err := j.conditions(ctx, m, object)
	if err != nil || unmet.why != met {
		return judged{unmet: unmet}, err
	}
	s = s.Of(object)
	result := make(map[string]any, len(m.adds)+len(m.fields)+len(m.constants))
	for _, f := range m.adds {
		if _, ok := object[f.key]; ok {
			continue
		}
		if unmet, err := j.field(ctx, result, f, nil, s); err != nil || unmet.why != met {
			return judged{unmet: unmet}, err
		}
	}
	for _, f := range m.fields {
		if unmet, err := j.field(ctx, result, f, object[f.key], s); err != nil || unmet.why != met {
			return judged{unmet: unmet}, err
		}
	}
	maps.Copy(result, m.constants)
	return judged{patch: result, none: len(result) == 0}, nil
}

// field judges a field of a map, and puts what comes of it into result.
func (j *judgement) field(ctx context.Context, result map[string]any, f field, value any, s merge.Schema) (unmet, error) {
	judged, err := j.value(ctx, f.part, value, s.Field(f.key))
	if err != nil || judged.unmet.why != met {
		return judged.unmet, err
	}
	if !judged.none {
		result[f.key] = judged.patch
	}
	return unmet{}, nil
}

// conditions returns the first condition of a map that an object does not meet.
func (j *judgement) conditions(ctx context.Context, m *mapping, object map[string]any) (unmet, error) {
	for i := range m.conditions {
		c := &m.conditions[i]
		value, ok := object[c.key]
		if !ok {
			return unmet{condition: c, why: absent}, nil
		}
		if c.pattern == nil {
			continue
		}
		matches, err := j.match(ctx, c, value)
		if err != nil {
			return unmet{}, err
		}
		if !matches {
			return unmet{condition: c, why: different}, nil
		}
	}
	return unmet{}, nil
}

// charactersPerStep is how many characters are compared in the time of one step.
const charactersPerStep = 64

// match says whether a value meets a condition, and pays for what that takes at most.
func (j *judgement) match(ctx context.Context, c *condition, value any) (bool, error) {
	if err := j.run.Spend(ctx, 1+c.size*weight(value)/charactersPerStep, 0); err != nil {
		return false, err
	}
	return c.pattern.MatchText(value), nil
}

// weight returns about how many characters a value has.
func weight(value any) int {
	switch value := value.(type) {
	case string:
		return 1 + len(value)
	case map[string]any, []any:
		size, ok := patch.Size(value, math.MaxInt32, math.MaxInt32)
		if !ok {
			return math.MaxInt32
		}
		return size
	default:
		return itemBytes
	}
}
