// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"strconv"
)

// maxValueDepth is how deep lists and objects of a value may lie within one another.
const maxValueDepth = 1000

var errDepth = errors.New("the value is nested too deep")

// measure returns about how large a value is as JSON. It fails with errSize when the
// values of all entries are too large with it; so it need not look at all of it.
func (v *Variables) measure(ctx context.Context, value any) (int, error) {
	m := measure{left: maxSize - v.size}
	err := m.add(value, 0)
	if spent := v.run.Spend(ctx, m.nodes, 0); spent != nil {
		return 0, spent
	}
	if err != nil {
		return 0, err
	}
	return maxSize - v.size - m.left, nil
}

// measure is one measurement.
type measure struct {
	left  int
	nodes int
}

func (m *measure) add(value any, depth int) error {
	if depth > maxValueDepth {
		return errDepth
	}
	m.nodes++
	switch value := value.(type) {
	case map[string]any:
		m.left -= 2
		for key, field := range value {
			m.left -= len(key) + len(`"":,`)
			if err := m.add(field, depth+1); err != nil {
				return err
			}
		}
	case []any:
		m.left -= 2
		for _, item := range value {
			m.left--
			if err := m.add(item, depth+1); err != nil {
				return err
			}
		}
	case string:
		m.left -= len(value) + len(`""`)
	case int64:
		m.left -= len(strconv.FormatInt(value, 10))
	case float64:
		m.left -= len(strconv.FormatFloat(value, 'g', -1, 64))
	default: // nil and booleans
		m.left -= len("null")
	}
	if m.left < 0 {
		return errSize
	}
	return nil
}
