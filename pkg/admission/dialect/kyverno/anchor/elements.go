// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"cmp"
	"context"
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/merge"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// list judges a list. Its elements without anchors are as in every patch; the others are
// changes of the elements of the object that they are for.
func (j *judgement) list(ctx context.Context, l *list, value any, s merge.Schema) (judged, error) {
	old, ok := value.([]any)
	if !ok && value != nil {
		return judged{}, fmt.Errorf("%s: the overlay has a list where the object has none", dotted(l.path))
	}
	elements := &merge.Elements{}
	for _, p := range l.elements {
		if constant, ok := p.(*literal); ok {
			elements.Others = append(elements.Others, constant.value)
			// A list without keys is searched for it.
			if err := j.run.Spend(ctx, 1+len(old), constant.size); err != nil {
				return judged{}, err
			}
			continue
		}
		m, ok := p.(*mapping)
		if !ok {
			return judged{}, fmt.Errorf("%s: %w", dotted(l.path), errListInList)
		}
		missing, err := j.element(ctx, elements, m, old, s)
		if err != nil || missing.why != met {
			return judged{unmet: missing}, err
		}
	}
	return judged{patch: elements, none: len(elements.Others)+len(elements.Changes) == 0}, nil
}

// element judges an element with anchors for each element of the object that it may be
// for. As in Kyverno, one with a global condition has nothing to merge. It returns what
// is missing if no element passes, unless all that do not have met the global conditions
// and fail by others, which are about them alone.
func (j *judgement) element(ctx context.Context, elements *merge.Elements, m *mapping, old []any, s merge.Schema) (unmet, error) {
	if err := j.run.Spend(ctx, len(old), 0); err != nil {
		return unmet{}, err
	}
	selector, schema := newSelector(m, s), s.Elements()
	asked := asking{missing: unmet{path: m.path, why: noElements}}
	for i, value := range old {
		asked.missing.why = noElement
		object, ok := value.(map[string]any)
		if !ok || !selector.selects(object) {
			continue
		}
		judged, err := j.mapping(ctx, m, object, schema)
		if err != nil {
			return unmet{}, err
		}
		if judged.unmet.why != met {
			asked.failed(judged.unmet, m.is.gated)
			continue
		}
		asked.passed = true
		if m.is.gated {
			break
		}
		if change, ok := judged.patch.(map[string]any); ok && !judged.none {
			selector.strip(change)
			elements.Changes = append(elements.Changes, merge.Change{Index: i, Patch: change})
		}
	}
	if m.is.gated {
		return j.gate(ctx, m, len(old) == 0, schema, asked)
	}
	if !asked.passed && j.missed.why == met {
		j.missed = asked.missing
	}
	return unmet{}, nil
}

// asking is what came of an element with anchors for the elements of the object.
type asking struct {
	missing unmet
	passed  bool
	// spared says that a condition of its own has left an element out, and blocked that
	// one has failed by a global condition.
	spared, blocked bool
}

// failed notes what is missing. Where a global condition decides, that says more.
func (a *asking) failed(why unmet, gated bool) {
	if why.condition.ofElement() {
		a.spared = true
	} else {
		a.blocked = true
		if gated && a.missing.condition.ofElement() {
			a.missing.condition = nil
		}
	}
	a.missing.keep(why)
}

// gate returns what is missing of a global condition. In a list without elements, all
// that the conditions are about is absent.
func (j *judgement) gate(ctx context.Context, m *mapping, empty bool, s merge.Schema, asked asking) (unmet, error) {
	if empty {
		judged, err := j.mapping(ctx, m, nil, s)
		if err != nil {
			return unmet{}, err
		}
		asked.failed(judged.unmet, true)
	}
	if asked.passed || asked.spared && !asked.blocked {
		return unmet{}, nil
	}
	return asked.missing, nil
}

// selector says for which elements of a list an element with anchors is.
type selector struct {
	keys  [2]selected
	count int
}

// selected is the value that a key must have. It may have wildcards.
type selected struct{ name, text, fallback string }

// newSelector returns the selector of an element: its merge key, as far as that has no
// anchor, or its name where nothing is known of the list.
func newSelector(m *mapping, s merge.Schema) selector {
	var result selector
	name, fallback, known := s.Key(0)
	if !known {
		name = "name"
	}
	if !result.add(m, name, fallback) {
		return result
	}
	if second, fallback, ok := s.Key(1); ok {
		result.add(m, second, fallback)
	}
	return result
}

func (s *selector) add(m *mapping, name, fallback string) bool {
	text := merge.Text(m.constants[name])
	if text == "" {
		return false
	}
	s.keys[s.count] = selected{name, text, fallback}
	s.count++
	return true
}

func (s *selector) selects(object map[string]any) bool {
	for _, key := range s.keys[:s.count] {
		if !wildcard.Match(key.text, cmp.Or(merge.Text(object[key.name]), key.fallback)) {
			return false
		}
	}
	return true
}

// strip takes from a patch what the element has already.
func (s *selector) strip(patch map[string]any) {
	for _, key := range s.keys[:s.count] {
		delete(patch, key.name)
	}
}
