// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxLevels is how deep a value may be nested.
	maxLevels = 100
	// maxVariables is how many variables a value may have.
	maxVariables = 10_000
)

// compilation is the compilation of one value.
type compilation struct {
	compiler   *Compiler
	self       *self
	references *references
	// expressions are those that have been compiled, by their texts.
	expressions map[string]expression
	variables   int
	faults      []Fault
	uses        []Use
}

func newCompilation(c *Compiler, at Place) *compilation {
	self := newSelf(at.Path)
	return &compilation{
		compiler:    c,
		self:        &self,
		references:  &references{rule: at.Rule, base: at.Path},
		expressions: map[string]expression{},
	}
}

// fail notes a fault, and returns a node that fails with it.
func (c *compilation) fail(path []string, err error) *broken {
	c.faults = append(c.faults, Fault{Path: path, Detail: err.Error()})
	return &broken{err: &Error{Path: path, Err: err}}
}

// compiled is a value that has been compiled.
type compiled struct {
	// value is the value when node is nil: it is the same for all requests then.
	value any
	// changed says that value is not the one that was given.
	changed bool
	node    node
}

// value compiles a value.
func (c *compilation) value(value any, path []string) compiled {
	if len(path) > maxLevels {
		return compiled{node: c.fail(path, fmt.Errorf("the value is nested deeper than %d levels", maxLevels))}
	}
	switch value := value.(type) {
	case string:
		static, text, err := c.text(value, path, path)
		switch {
		case err != nil:
			return compiled{node: c.fail(path, err)}
		case text != nil:
			return compiled{node: text}
		default:
			return compiled{value: static, changed: static != value}
		}
	case []any:
		return c.list(value, path)
	case map[string]any:
		return c.object(value, path)
	default:
		return compiled{value: value}
	}
}

func (c *compilation) list(values []any, path []string) compiled {
	result := &list{base: values}
	changed := false
	for i, value := range values {
		part := c.value(value, below(path, strconv.Itoa(i)))
		if part.node != nil {
			result.items = append(result.items, item{index: i, node: part.node})
			continue
		}
		if part.changed && !changed {
			result.base, changed = slices.Clone(values), true
		}
		if part.changed {
			result.base[i] = part.value
		}
	}
	if len(result.items) == 0 {
		return compiled{value: result.base, changed: changed}
	}
	return compiled{node: result}
}

func (c *compilation) object(values map[string]any, path []string) compiled {
	result := &object{base: maps.Clone(values)}
	changed := false
	var renamed []member
	for _, key := range slices.Sorted(maps.Keys(values)) {
		part := c.value(values[key], below(path, key))
		name, text, err := c.text(key, path, below(path, key))
		if err != nil {
			part.node = c.fail(below(path, key), err)
			name = key
		}
		f := member{key: text, name: name, node: part.node, value: part.value}
		switch {
		case text != nil:
			f.name = key
			delete(result.base, key)
			result.fields = append(result.fields, f)
		case name != key:
			changed = true
			delete(result.base, key)
			renamed = append(renamed, f)
		case part.node != nil:
			result.fields = append(result.fields, f)
		case part.changed:
			changed = true
			result.base[key] = part.value
		}
	}
	for _, f := range renamed {
		result.base[f.name] = f.value
		if f.node != nil {
			result.fields = append(result.fields, f)
		}
	}
	if len(result.fields) > 0 {
		return compiled{node: result}
	}
	if !changed {
		return compiled{value: values}
	}
	return compiled{value: result.base, changed: true}
}

// text compiles a text whose references start at base, the path of the object for a
// key. It returns nil when the text is the same for all requests.
func (c *compilation) text(source string, base, path []string) (string, *text, error) {
	source, err := c.references.replace(source, base)
	if err != nil {
		return "", nil, err
	}
	if !strings.Contains(source, "{{") {
		return source, nil, nil
	}
	rounds, err := plan(source)
	if err != nil {
		return "", nil, err
	}
	if len(rounds) == 0 {
		return unescape(source), nil, nil
	}
	t := &text{path: base, self: c.self, source: source}
	for i, round := range rounds {
		for _, s := range round {
			if s.depends {
				continue
			}
			if c.variables++; c.variables > maxVariables {
				return "", nil, fmt.Errorf("the value has more than %d variables", maxVariables)
			}
			written := source[s.start:s.end]
			v := t.compile(written, c.expression)
			c.note(v, written, path)
			if i == 0 {
				t.first = append(t.first, found{span: s.span, variable: v})
				continue
			}
			if t.later == nil {
				t.later = map[string]*variable{}
			}
			t.later[written] = v
		}
	}
	return "", t, nil
}

// expression compiles an expression, once for each text.
func (c *compilation) expression(text string) expression {
	compiled, ok := c.expressions[text]
	if !ok {
		compiled = c.compiler.compile(text)
		c.expressions[text] = compiled
	}
	return compiled
}

// note notes the fault of a variable, or the names that it uses.
func (c *compilation) note(v *variable, written string, path []string) {
	if err := v.usual.err; err != nil {
		c.faults = append(c.faults, Fault{Path: path, Detail: fmt.Sprintf("variable %s: %v", excerpt(written), err)})
		return
	}
	if mistake := v.usual.mistake; mistake != nil {
		c.faults = append(c.faults, Fault{Later: true, Path: path, Detail: fmt.Sprintf("variable %s: %v", excerpt(written), mistake)})
	}
	source, _ := between(written)
	first, _ := v.usual.compiled.Leading()
	for _, name := range v.usual.compiled.Roots() {
		c.uses = append(c.uses, Use{Name: name, Leading: name == first, Expression: source, Path: path})
	}
}

// planned is a variable of a text as it was written.
type planned struct {
	span
	// depends says that there is another variable in it.
	depends bool
}

// plan returns the variables of a text in the rounds in which they are replaced, as far
// as that does not depend on their values.
func plan(source string) ([][]planned, error) {
	const filler = 0
	var rounds [][]planned
	for current := []byte(source); ; {
		spans := scan(string(current))
		if len(spans) == 0 {
			return rounds, nil
		}
		if len(rounds) == maxRounds {
			return nil, errors.New("variables are nested too deeply")
		}
		round := make([]planned, len(spans))
		shallow := false
		for i, s := range spans {
			part := current[s.start:s.end]
			round[i] = planned{span: s, depends: len(rounds) > 0 && slices.Contains(part, filler)}
			_, shallow = between(string(part))
			for at := range part {
				part[at] = filler
			}
		}
		rounds = append(rounds, round)
		if shallow {
			return rounds, nil
		}
	}
}

// below returns the path of a part.
func below(path []string, part string) []string {
	return append(slices.Clip(path), part)
}
