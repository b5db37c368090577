// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/pattern"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/syntax"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

const (
	// maxDepth is how deep an overlay may be nested.
	maxDepth = 200
	// itemBytes and fieldBytes are what an item of a list and a field of a map are taken
	// to need.
	itemBytes  = 16
	fieldBytes = 48
)

var (
	errDepth = fmt.Errorf("the overlay is nested deeper than %d levels", maxDepth)
	// errNoAnchor is for keys that no object of Kubernetes has.
	errNoAnchor = errors.New("a key with parentheses that is no anchor would be written into objects; there are (key), <(key) and +(key)")
	errForeign  = errors.New("this anchor says nothing outside of a condition and would be written into objects; there are (key), <(key) and +(key)")
)

// builder builds the parts of an overlay.
type builder struct {
	// templates compiles variables. It is nil for a value in which they are replaced.
	templates *template.Compiler
	at        template.Place
	// strict refuses keys that look like anchors and are none. Where a variable has them
	// they are data.
	strict bool

	faults []template.Fault
	uses   []template.Use
}

// fail notes a fault, and returns a part that fails with it.
func (b *builder) fail(path []string, err error) *broken {
	b.faults = append(b.faults, template.Fault{Path: path, Detail: err.Error()})
	return &broken{err: &template.Error{Path: path, Err: err}}
}

// err returns the first fault.
func (b *builder) err() error {
	return &template.Error{Path: b.faults[0].Path, Err: errors.New(b.faults[0].Detail)}
}

// part returns the part of a value.
func (b *builder) part(value any, path []string) part {
	if len(path) > maxDepth {
		return b.fail(path, errDepth)
	}
	switch value := value.(type) {
	case map[string]any:
		if b.templates != nil && hasMarkedKey(value) {
			return b.variable(value, path)
		}
		return b.mapping(value, path)
	case []any:
		return b.list(value, path)
	case string:
		if b.templates != nil && marked(value) {
			return b.variable(value, path)
		}
		return &literal{value: value, size: itemBytes + len(value), written: true}
	default:
		return &literal{value: value, size: itemBytes, written: true}
	}
}

func (b *builder) mapping(values map[string]any, path []string) part {
	m := &mapping{path: path}
	written := true
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, at := values[key], below(path, key)
		around, name := syntax.ParseKey(key)
		switch around {
		case syntax.Condition, syntax.Global:
			b.condition(m, around == syntax.Global, name, value, at)
		case syntax.Addition:
			m.adds = append(m.adds, field{name, b.part(value, at)})
		case syntax.Equality, syntax.Negation, syntax.Existence: // they say something in a condition
			if b.strict {
				m.put(key, b.fail(at, errForeign))
				continue
			}
			m.put(key, b.part(value, at))
		case syntax.None:
			if b.templates != nil && strings.ContainsAny(key, "()") && !strings.Contains(key, "{{") { // written, and not a value
				m.put(key, b.fail(at, errNoAnchor))
				continue
			}
			p := b.part(value, at)
			constant, ok := p.(*literal)
			written = written && ok && constant.written
			m.put(key, p)
		}
	}
	finished := m.finish()
	if constant, ok := finished.(*literal); ok && written {
		constant.value, constant.written = values, true
	}
	return finished
}

// hasAddition says whether a value is a map that has a key of the form +(key). A
// condition with such a value only asks whether its key is there.
func hasAddition(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for key := range object {
		if around, _ := syntax.ParseKey(key); around == syntax.Addition {
			return true
		}
	}
	return false
}

// condition adds a condition to a map.
func (b *builder) condition(m *mapping, isGlobal bool, key string, value any, path []string) {
	c := condition{key: key, global: isGlobal, path: path}
	switch {
	case hasAddition(value):
		m.put(key, b.part(value, path))
	case b.templates != nil && hasMarks(value, len(path)):
		compiled := b.template(value, path)
		if static, ok := compiled.Static(); ok {
			inner := builder{strict: true}
			inner.condition(m, isGlobal, key, static, path)
			b.faults = append(b.faults, inner.faults...)
			return
		}
		c.source = &variable{template: compiled, path: path}
	default:
		compiled, err := pattern.Compile(value)
		if err != nil {
			m.put(key, b.fail(path, err))
			return
		}
		c.pattern, c.size = compiled, weight(value)
	}
	at := len(m.conditions)
	if first := slices.IndexFunc(m.conditions, func(c condition) bool { return !c.global }); isGlobal && first >= 0 {
		at = first
	}
	m.conditions = slices.Insert(m.conditions, at, c)
}

func (b *builder) list(values []any, path []string) part {
	l := &list{path: path, elements: make([]part, 0, len(values))}
	written := true
	for i, value := range values {
		p := b.part(value, below(path, strconv.Itoa(i)))
		constant, ok := p.(*literal)
		written = written && ok && constant.written
		l.elements = append(l.elements, p)
	}
	finished, err := l.finish()
	if err != nil {
		return b.fail(path, errListInList)
	}
	if constant, ok := finished.(*literal); ok && written {
		constant.value, constant.written = values, true
	}
	return finished
}

// below returns the path of a part.
func below(path []string, part string) []string {
	return append(slices.Clip(path), part)
}
