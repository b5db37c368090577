// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"slices"
)

// filter is a compiled filter: what is given must all hold, and of a list one.
type filter struct {
	operations  []string
	kinds       []kind
	names       []glob // of name
	anyName     []glob // of names
	namespaces  []glob
	annotations []pair
	selector    *labelSelector
	ofNamespace *labelSelector

	roles, clusterRoles []string
	subjects            []subject

	// place is where the filter stands in the rule.
	place string
	// excludes says that the filter stands in exclude.
	excludes bool
	// resources says that anything but the user is looked at.
	resources bool
	// unknown says that a kind or an operation has a fault.
	unknown bool
}

// aspect is one thing in which a filter does not match.
type aspect uint8

const (
	matches aspect = iota
	byNothing
	byOperation
	byKind
	byName
	byNames
	byNamespace
	byAnnotation
	bySelector
	byNamespaceKind
	byNamespaceSelector
	bySubject
	byRole
	byClusterRole
)

func (f *filter) asksForUser() bool {
	return len(f.roles)+len(f.clusterRoles)+len(f.subjects) > 0
}

func (f *filter) isEmpty() bool { return !f.resources && !f.asksForUser() }

// check returns the first aspect in which the filter does not match. What must be looked
// up comes last, and fails only when nothing else decides.
func (f *filter) check(ctx context.Context, s *Subject) (aspect, error) {
	user := f.asksForUser()
	if user && !f.excludes && s.isUserUnknown() {
		// Kyverno takes such a request for one that no user has made.
		user = false
	}
	if !f.resources && !user {
		return byNothing, nil
	}
	if why := f.checkObject(s); why != matches {
		return why, nil
	}
	if user && len(f.subjects) > 0 && !slices.ContainsFunc(f.subjects, func(of subject) bool { return of.match(s.request.User) }) {
		return bySubject, nil
	}
	return f.checkCluster(ctx, s, user)
}

// checkObject looks at what the request holds.
func (f *filter) checkObject(s *Subject) aspect {
	switch {
	case len(f.operations) > 0 && !slices.Contains(f.operations, string(s.request.Operation)):
		return byOperation
	case len(f.kinds) > 0 && !f.mayTakeKind(s):
		return byKind
	case len(f.names) > 0 && !matchAny(f.names, s.name):
		return byName
	case len(f.anyName) > 0 && !matchAny(f.anyName, s.name):
		return byNames
	case len(f.namespaces) > 0 && !matchAny(f.namespaces, s.placeName()):
		return byNamespace
	}
	return f.checkMetadata(s)
}

func (f *filter) checkMetadata(s *Subject) aspect {
	switch {
	case len(f.annotations) > 0 && f.missing(s.annotations()) != nil:
		return byAnnotation
	case f.selector != nil && !f.selector.match(s.labels()):
		return bySelector
	case f.ofNamespace != nil && s.kind == namespaceKind:
		return byNamespaceKind
	}
	return matches
}

// mayTakeKind says whether one of the kinds matches, as far as that is known without
// asking for the kind to which a subresource belongs.
func (f *filter) mayTakeKind(s *Subject) bool {
	subresource := s.request.SubResource
	if subresource != "" {
		return slices.ContainsFunc(f.kinds, func(k kind) bool { return k.mayTake(subresource) })
	}
	for i := range f.kinds {
		if f.kinds[i].match(s.request.Kind, "") {
			return true
		}
	}
	return false
}

// missing returns the first pair that no annotation has.
func (f *filter) missing(annotations map[string]string) *pair {
	for i := range f.annotations {
		if !f.annotations[i].in(annotations) {
			return &f.annotations[i]
		}
	}
	return nil
}

// checkCluster looks at what the cluster knows.
func (f *filter) checkCluster(ctx context.Context, s *Subject, user bool) (aspect, error) {
	var failed error
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	if s.request.SubResource != "" && len(f.kinds) > 0 {
		of, err := s.parentKind()
		if err != nil {
			note(err)
		} else if !slices.ContainsFunc(f.kinds, func(k kind) bool { return k.match(of, s.request.SubResource) }) {
			return byKind, nil
		}
	}
	if f.ofNamespace != nil {
		labels, err := s.namespaceLabels(ctx)
		if err != nil {
			note(err)
		} else if !f.ofNamespace.match(labels) {
			return byNamespaceSelector, nil
		}
	}
	if user && len(f.roles)+len(f.clusterRoles) > 0 {
		why, err := f.checkRoles(ctx, s)
		if err != nil {
			note(err)
		} else if why != matches {
			return why, nil
		}
	}
	return matches, failed
}

func (f *filter) checkRoles(ctx context.Context, s *Subject) (aspect, error) {
	roles, clusterRoles, err := s.Roles(ctx)
	switch {
	case err != nil:
		return matches, err
	case len(f.roles) > 0 && !slices.ContainsFunc(f.roles, func(role string) bool { return slices.Contains(roles, role) }):
		return byRole, nil
	case len(f.clusterRoles) > 0 && !slices.ContainsFunc(f.clusterRoles, func(role string) bool { return slices.Contains(clusterRoles, role) }):
		return byClusterRole, nil
	}
	return matches, nil
}
