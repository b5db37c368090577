// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection decides which requests a rule is about: its match and its exclude,
// as Kyverno's pkg/engine/utils/match.go does. It does not know what rules do, nor the
// preconditions, which come later.
package selection

import (
	"context"
	"errors"
	"slices"
)

// errNotCompiled keeps a forgotten Compile from becoming "no match".
var errNotCompiled = errors.New("the selection was not compiled: use selection.Compile")

// Selection is the compiled match and exclude of a rule. It is immutable and safe for
// concurrent use. The zero value and nil match nothing and say so with an error.
type Selection struct {
	compiled bool
	// namespace is that of a namespaced policy, which is about its objects only.
	namespace      string
	match, exclude block
	// broken is why the selection cannot be used, and unknown says that not all kinds and
	// operations are known then.
	broken  error
	unknown bool
}

// block is a match or an exclude.
type block struct {
	filters []filter
	// any says that one filter is enough.
	any bool
}

// answer is what a block has to say about a request.
type answer struct {
	matched bool
	// by is the index of the filter that decides, or -1: the first that matches of any,
	// the first that does not of all.
	by int
	// why is the aspect in which that filter does not match.
	why aspect
}

// Matches says whether the rule is about the subject. What cannot be found is an error
// where it would decide.
func (s *Selection) Matches(ctx context.Context, subject *Subject) (bool, error) {
	if s == nil || !s.compiled {
		return false, errNotCompiled
	}
	if s.broken != nil {
		if !s.MayTakeKind(subject) {
			return false, nil
		}
		return false, s.broken
	}
	if subject.object == nil || !s.reaches(subject) {
		return false, nil
	}
	matched, matchErr := s.match.matches(ctx, subject)
	if !matched.matched && matchErr == nil {
		return false, nil
	}
	excluded, excludeErr := s.exclude.matches(ctx, subject)
	switch {
	case excludeErr == nil && excluded.matched:
		return false, nil
	case matchErr != nil:
		return false, matchErr
	case excludeErr != nil:
		return false, excludeErr
	}
	return true, nil
}

// MayTakeKind says whether the kind and the operation of the request may be those that
// the rule is about, as far as that is known without asking for anything. It is known of a
// selection with faults, too, unless they are in these.
func (s *Selection) MayTakeKind(subject *Subject) bool {
	return s == nil || s.unknown || slices.ContainsFunc(s.match.filters, func(f filter) bool {
		return (len(f.kinds) == 0 || f.mayTakeKind(subject)) &&
			(len(f.operations) == 0 || slices.Contains(f.operations, string(subject.request.Operation)))
	})
}

// reaches says whether the object lies where the policy may look.
func (s *Selection) reaches(subject *Subject) bool {
	if s.namespace == "" {
		return true
	}
	requested := subject.request.Namespace
	return subject.namespace == s.namespace && (requested == "" || requested == s.namespace)
}

// matches asks the filters in their order, as long as they can change the answer. One
// that fails matters only if no other one decides.
func (b *block) matches(ctx context.Context, subject *Subject) (answer, error) {
	var failed error
	for i := range b.filters {
		why, err := b.filters[i].check(ctx, subject)
		switch {
		case err != nil:
			if failed == nil {
				failed = err
			}
		case b.any && why == matches:
			return answer{matched: true, by: i}, nil
		case !b.any && why != matches:
			return answer{by: i, why: why}, nil
		}
	}
	if failed != nil {
		return answer{by: -1}, failed
	}
	return answer{matched: !b.any && len(b.filters) > 0, by: -1}, nil
}

// NeedsRoles says whether it matters who the user is.
func (s *Selection) NeedsRoles() bool {
	if s == nil {
		return false
	}
	asks := func(f filter) bool { return f.asksForUser() }
	return slices.ContainsFunc(s.match.filters, asks) || slices.ContainsFunc(s.exclude.filters, asks)
}
