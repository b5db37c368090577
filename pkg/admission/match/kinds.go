// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// Kind selects requests by the kind of the object, where a policy language names kinds
// and not resources. Of a request about a subresource, that is the kind of the object
// to which the subresource belongs. Texts with * or ? may be any text: these criteria
// find the requests that a policy may be about, and it decides for itself.
type Kind struct {
	Group, Version, Kind, Subresource string
	// Operations are those of admission; none means all.
	Operations []string
	// Names and Namespaces, with * and ?, and Labels are those of objects that may be
	// selected: one of the names, one of the namespaces, and all labels. None means all
	// objects. Criteria do not look at them, only an index does, to find fewer.
	Names, Namespaces []string
	Labels            map[string]string
}

// CompileKinds returns criteria that apply to requests that one of kinds selects; no
// kinds select nothing. With a namespace, they apply to requests in it alone.
func CompileKinds(namespace string, kinds []Kind) *Criteria {
	c := &Criteria{compiled: true, byKind: true, namespace: namespace}
	for _, kind := range kinds {
		c.kinds = append(c.kinds, kindPattern{
			group: coarse(kind.Group), version: coarse(kind.Version), kind: coarse(kind.Kind),
			subresource: coarse(kind.Subresource),
			operations:  operationsOf(kind.Operations),
			guard:       guardOf(&kind),
		})
	}
	return c
}

// kindPattern is a Kind whose texts are "*" where they have wildcards.
type kindPattern struct {
	group, version, kind, subresource string

	operations []string
	guard      guard
}

func coarse(pattern string) string {
	if strings.ContainsAny(pattern, "*?") {
		return wildcard
	}
	return pattern
}

func operationsOf(named []string) []string {
	if len(named) == 0 {
		return []string{wildcard}
	}
	return slices.Clone(named)
}

// matchesKinds is Matches of criteria that select by kind. That the kind of the parent
// is not known is an error only for those that select the subresource.
func (c *Criteria) matchesKinds(s *Subject) (cluster.Equivalent, bool, error) {
	if c.namespace != "" && s.request.Namespace != c.namespace {
		return cluster.Equivalent{}, false, nil
	}
	for i := range c.kinds {
		if p := &c.kinds[i]; !p.takes(string(s.request.Operation), s.request.SubResource) {
			continue
		} else if kind, err := s.parentKind(); err != nil {
			return cluster.Equivalent{}, false, fmt.Errorf("the kind of %v: %w", s.request.Resource, err)
		} else if p.selects(kind) {
			return s.original(), true, nil
		}
	}
	return cluster.Equivalent{}, false, nil
}

func (p *kindPattern) takes(operation, subresource string) bool {
	return listed(p.operations, operation) && (p.subresource == wildcard || p.subresource == subresource)
}

func (p *kindPattern) selects(kind schema.GroupVersionKind) bool {
	return (p.kind == wildcard || p.kind == kind.Kind) &&
		(p.group == wildcard || p.group == kind.Group) &&
		(p.version == wildcard || p.version == kind.Version)
}

// parentKind returns the kind of the object that the request is about, or to which its
// subresource belongs.
func (s *Subject) parentKind() (schema.GroupVersionKind, error) {
	return s.parent.find(func() (schema.GroupVersionKind, error) {
		if s.request.SubResource == "" {
			return s.request.Kind, nil
		}
		return s.view.Mapper().KindFor(s.request.Resource)
	})
}

// keysOfKinds are the keys of criteria that select by kind, and false when there are
// too many.
func (c *Criteria) keysOfKinds(widened shape) ([]key, bool) {
	var keys []key
	for i := range c.kinds {
		p := &c.kinds[i]
		group, version := p.group, p.version
		if widened&anyGroup != 0 {
			group = wildcard
		}
		if widened&anyVersion != 0 {
			version = wildcard
		}
		for _, operation := range dimension(p.operations, widened&anyOperation != 0) {
			if keys = append(keys, key{kinded, operation, group, version, p.kind, p.subresource}); len(keys) > maxKeys {
				return nil, false
			}
		}
	}
	return unique(keys), true
}

// appendKinded appends the buckets of criteria that may select the request by its kind.
// Where that is not known, these are all that select its subresource.
func (ix *Index[T]) appendKinded(found [][]entry[T], s *Subject) [][]entry[T] {
	if ix.shapes.present[kinded] == 0 {
		return found
	}
	kind, err := s.parentKind()
	if err == nil {
		at := len(found)
		found = ix.appendBuckets(found, key{kinded, string(s.request.Operation), kind.Group, kind.Version, kind.Kind, s.request.SubResource})
		return append(found[:at], pass(s, found[at:])...)
	}
	var all []entry[T]
	for _, item := range ix.names.All() {
		if item.Criteria != nil && slices.ContainsFunc(item.Criteria.kinds, func(p kindPattern) bool {
			return p.takes(string(s.request.Operation), s.request.SubResource)
		}) {
			all = append(all, entry[T]{Item: item})
		}
	}
	if len(all) == 0 {
		return found
	}
	slices.SortFunc(all, func(a, b entry[T]) int { return strings.Compare(a.Name, b.Name) })
	return append(found, all)
}

// whyNotKinds is WhyNot of criteria that select by kind.
func (c *Criteria) whyNotKinds(_ context.Context, s *Subject) string {
	if _, ok, err := c.matchesKinds(s); ok || err != nil {
		return ""
	}
	if c.namespace != "" && s.request.Namespace != c.namespace {
		if s.request.Namespace == "" {
			return fmt.Sprintf("the policy is about namespace %s only, and the object is in none", seen(c.namespace))
		}
		return fmt.Sprintf("the policy is about namespace %s only, not %s", seen(c.namespace), seen(s.request.Namespace))
	}
	var named, operations enumeration
	kind, err := s.parentKind()
	for i := range c.kinds {
		p := &c.kinds[i]
		named.add(p.text())
		if err == nil && p.selects(kind) {
			operations.addAll(p.operations)
		}
	}
	if len(c.kinds) == 0 {
		return "no rule names a kind"
	}
	if len(operations.items) > 0 && c.namesSubresource(s.request.SubResource) {
		return fmt.Sprintf("the operations are %s, not %s", &operations, s.request.Operation)
	}
	about := kind.Kind
	if err != nil {
		about = s.request.Resource.Resource
	}
	if s.request.SubResource != "" {
		about += "/" + s.request.SubResource
	}
	return fmt.Sprintf("the rules are about %s, not %s", &named, seen(about))
}

func (c *Criteria) namesSubresource(subresource string) bool {
	return slices.ContainsFunc(c.kinds, func(p kindPattern) bool { return p.subresource == wildcard || p.subresource == subresource })
}

func (p *kindPattern) text() string {
	text := p.kind
	if p.version != wildcard {
		text = p.version + "/" + text
	}
	if p.group != wildcard && p.group != "" {
		text = p.group + "/" + text
	}
	if p.subresource != "" {
		text += "/" + p.subresource
	}
	return text
}
