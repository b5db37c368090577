// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/relation"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// member is for In and NotIn, which are older than AnyIn and its like: a list is in a
// list only element by element, without patterns.
func (c *comparison) member(key, value any, not bool) (bool, error) {
	switch typed := key.(type) {
	case string, bool, int64, float64:
		text, err := c.textOf(typed)
		if err != nil {
			return false, err
		}
		found, known, err := c.contains(value, text, false)
		return known && found != not, err
	case []any:
		keys := make([]string, 0, len(typed))
		for i, element := range typed {
			text, ok := element.(string)
			if !ok {
				return false, fmt.Errorf("operators In and NotIn compare lists of strings only, and element %d of the key is none: use AnyIn, AllIn, AnyNotIn or AllNotIn", i)
			}
			keys = append(keys, text)
		}
		return c.memberOf(keys, value, not)
	}
	return false, nil
}

func (c *comparison) memberOf(keys []string, value any, not bool) (bool, error) {
	var values []string
	switch typed := value.(type) {
	case []any:
		for _, element := range typed {
			text, ok := element.(string)
			if !ok {
				return false, nil
			}
			values = append(values, text)
		}
	case string:
		// For NotIn as well: that is what Kyverno does.
		if len(keys) == 1 && keys[0] == typed {
			return true, nil
		}
		if json.Unmarshal([]byte(typed), &values) != nil {
			return false, c.spend(len(typed))
		}
	default:
		return false, nil
	}
	known := make(map[string]bool, len(values))
	for _, text := range values {
		known[text] = true
	}
	missing := slices.ContainsFunc(keys, func(key string) bool { return !known[key] })
	return missing == not, c.spend(charactersPerStep * (len(keys) + len(values)))
}

// members is for AnyIn, AllIn, AnyNotIn and AllNotIn: all elements are compared as
// texts, and both sides may be patterns.
func (c *comparison) members(o Operator, key, value any) (bool, error) {
	not := o == AnyNotIn || o == AllNotIn
	switch typed := key.(type) {
	case string, bool, int64, float64:
		text, err := c.textOf(typed)
		if err != nil {
			return false, err
		}
		found, known, err := c.contains(value, text, true)
		return known && found != not, err
	case []any:
		keys, err := c.textsOf(typed)
		if err != nil {
			return false, err
		}
		return c.membersOf(o, keys, value)
	}
	return false, nil
}

// contains says whether a value contains the text: a list does, and a text, which is a
// pattern, a range when ranges is set, or a JSON array of texts. Of nothing else
// that is known.
func (c *comparison) contains(value any, text string, ranges bool) (found, known bool, err error) {
	switch typed := value.(type) {
	case []any:
		texts, err := c.textsOf(typed)
		if err != nil {
			return false, true, err
		}
		found, err := c.inList(text, texts)
		return found, true, err
	case string:
		if found, err := c.match(typed, text); found || err != nil {
			return found, true, err
		}
		if ranges && relation.Of(typed) == relation.InRange {
			found, err := c.matchesPattern(text, typed)
			return found, true, err
		}
		texts, ok := c.arrayOf(typed, ranges)
		return slices.Contains(texts, text), ok, c.spend(len(typed))
	}
	return false, false, nil
}

// arrayOf returns the texts of a JSON array of texts. Of a text that is no JSON at all
// it is the only one, when plain is set.
func (c *comparison) arrayOf(text string, plain bool) (texts []string, ok bool) {
	if plain && !json.Valid([]byte(text)) {
		return []string{text}, true
	}
	ok = json.Unmarshal([]byte(text), &texts) == nil
	return texts, ok
}

func (c *comparison) membersOf(o Operator, keys []string, value any) (bool, error) {
	not := o == AnyNotIn || o == AllNotIn
	var values []string
	var err error
	switch typed := value.(type) {
	case []any:
		if values, err = c.textsOf(typed); err != nil {
			return false, err
		}
	case string:
		if len(keys) == 1 && keys[0] == typed {
			return !not, nil
		}
		if relation.Of(typed) == relation.InRange {
			return c.inRange(o, keys, typed)
		}
		var ok bool
		if values, ok = c.arrayOf(typed, true); !ok {
			return false, nil
		}
	case bool, int64, float64:
		if o == AllIn || o == AllNotIn {
			return false, nil
		}
		if values, err = c.textsOf([]any{typed}); err != nil {
			return false, err
		}
	default:
		return false, nil
	}
	return c.quantified(o, keys, func(key string) (bool, error) { return c.inList(key, values) })
}

// inRange compares the keys with a range.
func (c *comparison) inRange(o Operator, keys []string, pattern string) (bool, error) {
	if o != AnyNotIn {
		return c.quantified(o, keys, func(key string) (bool, error) { return c.matchesPattern(key, pattern) })
	}
	// Kyverno makes the opposite range of the text, which is not the opposite of the
	// range for a key that has no place in its order.
	outside := strings.Replace(pattern, "-", "!-", 1)
	return c.quantified(AnyIn, keys, func(key string) (bool, error) { return c.matchesPattern(key, outside) })
}

// quantified asks for each key, until the answer is known, and in their order.
func (c *comparison) quantified(o Operator, keys []string, ask func(key string) (bool, error)) (bool, error) {
	for _, key := range keys {
		found, err := ask(key)
		if err != nil {
			return false, err
		}
		switch {
		case o == AnyIn && found, o == AnyNotIn && !found:
			return true, nil
		case o == AllIn && !found, o == AllNotIn && found:
			return false, nil
		}
	}
	return o == AllIn || o == AllNotIn, nil
}

// inList says whether a text matches one of the texts, either of both being the pattern.
func (c *comparison) inList(text string, texts []string) (bool, error) {
	isPattern := wildcard.Contains(text)
	characters := charactersPerStep * len(texts)
	for _, other := range texts {
		if wildcard.Contains(other) {
			characters += wildcard.Steps(other, text)
		}
		if isPattern {
			characters += wildcard.Steps(text, other)
		}
	}
	if err := c.spend(characters); err != nil {
		return false, err
	}
	return slices.ContainsFunc(texts, func(other string) bool {
		return text == other || wildcard.Match(other, text) || isPattern && wildcard.Match(text, other)
	}), nil
}

func (c *comparison) textsOf(operands []any) ([]string, error) {
	texts := make([]string, len(operands))
	for i, operand := range operands {
		text, err := c.textOf(operand)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}
