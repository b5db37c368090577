// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// Elements is a list of a patch for some elements of a list. It never replaces the
// list, unless a directive says so: what it does not change stays.
type Elements struct {
	// Others are elements as every list of a patch has them. Where the elements of the
	// list have no keys, they come in front of it if it has no equal ones.
	Others []any
	// Changes are for elements that the object has.
	Changes []Change
}

// Change is a patch for the element of a list that has a place in the object, whatever
// its keys are. Where it and one of the others are for the same element, the other is
// merged later.
type Change struct {
	Index int
	Patch map[string]any
}

// mergeIn merges the elements into a list, which is nil when there is none.
func (e *Elements) mergeIn(old []any, s *schema, depth int) (outcome, *Error) {
	for _, change := range e.Changes {
		if change.Index < 0 || change.Index >= len(old) {
			return outcome{}, errorf("the object has no such element").at(change.Index)
		}
	}
	directive, others, fault := directiveOfList(e.Others)
	if fault != nil {
		return outcome{}, fault
	}
	if directive == directiveDelete {
		return outcome{gone: true}, nil
	}
	var merged outcome
	if s.isMerged() {
		merged, fault = e.mergeByKey(old, others, directive == directiveReplace, s, depth)
	} else {
		merged, fault = e.mergeInPlace(old, others, directive == directiveReplace, s.elementSchema(), depth)
	}
	merged.changed = merged.changed || len(others) < len(e.Others)
	return merged, fault
}

// mergeByKey merges the elements into a list whose elements have keys. What the patch
// has comes first if it does without changes.
func (e *Elements) mergeByKey(old, others []any, replace bool, s *schema, depth int) (outcome, *Error) {
	l := newList(old, others, s.keys)
	if fault := l.changeAll(e.Changes, s.elementSchema(), depth); fault != nil {
		return outcome{}, fault
	}
	if _, fault := l.mergeAll(others, s.elementSchema(), depth); fault != nil {
		return outcome{}, fault
	}
	if replace {
		l.removeOthers()
	}
	for _, change := range e.Changes {
		if l.inFront {
			l.touch(change.Index)
		}
	}
	return l.result(), nil
}

// changeAll merges changes into the elements at their places.
func (l *list) changeAll(changes []Change, s *schema, depth int) *Error {
	for _, change := range changes {
		if l.elements[change.Index].gone {
			continue
		}
		now, fault := l.become(change.Index, change.Patch, s, depth)
		if fault != nil {
			return fault.at(change.Index)
		}
		if now.gone {
			l.removeOnly(change.Index)
		} else {
			l.put(change.Index, now)
		}
	}
	return nil
}

// mergeInPlace merges the elements into a list whose elements have no keys.
func (e *Elements) mergeInPlace(old, others []any, replace bool, s *schema, depth int) (outcome, *Error) {
	l := &list{old: old}
	for _, value := range old {
		l.append(identity{}, value)
	}
	if fault := l.changeAll(e.Changes, s, depth); fault != nil {
		return outcome{}, fault
	}
	if replace {
		l.removeOthers()
	}
	for i, other := range others {
		added, fault := create(other, s, depth)
		if fault != nil {
			return outcome{}, fault.at(i)
		}
		equal := func(e element) bool { return !e.gone && patch.Equal(e.value, added.value) }
		if !added.gone && !slices.ContainsFunc(l.elements, equal) {
			l.add(identity{}, added.value)
		}
	}
	return l.result(), nil
}
