// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// errNotCompiled keeps a forgotten Compile from becoming "no match".
var errNotCompiled = errors.New("match criteria were not compiled: use match.Compile")

// Criteria is the compiled form of MatchResources. It is immutable and safe for
// concurrent use. The zero value and nil match nothing and say so with an error.
type Criteria struct {
	compiled        bool
	namespaces      selector
	objects         selector
	equivalent      bool // matchPolicy is Equivalent
	excludes, rules []rule
	everyResource   bool // no resourceRules

	// byKind says that kinds decide, and namespace if it is not empty, and nothing else.
	byKind    bool
	namespace string
	kinds     []kindPattern
}

// Compile prepares resources, to which defaults have been applied, and keeps no
// reference to them. It never fails: what cannot be parsed is reported by
// Matches, for the requests that it concerns. Nil resources match every request,
// which is right for a binding; that a policy must have them is for its
// validation to say.
func Compile(resources *admissionregistrationv1.MatchResources) *Criteria {
	if resources == nil {
		return &Criteria{compiled: true, everyResource: true}
	}
	return &Criteria{
		compiled:   true,
		namespaces: compileSelector("namespace", resources.NamespaceSelector),
		objects:    compileSelector("object", resources.ObjectSelector),
		// Only defaulting makes Equivalent of an absent matchPolicy.
		equivalent:    resources.MatchPolicy != nil && *resources.MatchPolicy != admissionregistrationv1.Exact,
		excludes:      compileRules(resources.ExcludeResourceRules),
		rules:         compileRules(resources.ResourceRules),
		everyResource: len(resources.ResourceRules) == 0,
	}
}

// Matches says whether the criteria apply to the subject, and under which
// resource and kind: those of the original request, or those of an equivalent
// resource that a rule names. A selector that cannot be decided is an error only
// when the rules match. The semantics are those of matching.Matcher in
// k8s.io/apiserver/pkg/admission/plugin/policy/matching.
func (c *Criteria) Matches(ctx context.Context, s *Subject) (cluster.Equivalent, bool, error) {
	if c == nil || !c.compiled {
		return cluster.Equivalent{}, false, errNotCompiled
	}
	if c.byKind {
		return c.matchesKinds(s)
	}
	selected, namespaceErr := c.namespaces.matchesNamespace(ctx, s)
	if !selected && namespaceErr == nil {
		return cluster.Equivalent{}, false, nil
	}
	selected, objectErr := c.objects.matchesObjects(s)
	if !selected && objectErr == nil {
		return cluster.Equivalent{}, false, nil
	}
	if _, by, err := c.matchesRules(c.excludes, s); by != noRule || err != nil {
		return cluster.Equivalent{}, false, err
	}
	matched := s.original()
	if !c.everyResource {
		under, by, err := c.matchesRules(c.rules, s)
		if by == noRule || err != nil {
			return cluster.Equivalent{}, false, err
		}
		matched = under
	}
	if namespaceErr != nil {
		return cluster.Equivalent{}, false, namespaceErr
	}
	if objectErr != nil {
		return cluster.Equivalent{}, false, objectErr
	}
	return matched, true, nil
}

// noRule is the index that matchesRules returns when no rule matches.
const noRule = -1

// matchesRules tries the original resource with every rule first, then each rule
// with every equivalent resource. The first that matches wins; its index is
// returned, with the resource and kind under which it matches.
func (c *Criteria) matchesRules(rules []rule, s *Subject) (cluster.Equivalent, int, error) {
	req := s.request
	for i := range rules {
		if rules[i].matches(req, req.RequestResource) && rules[i].matchesName(req.Name) {
			return s.original(), i, nil
		}
	}
	if !c.equivalent || len(rules) == 0 {
		return cluster.Equivalent{}, noRule, nil
	}
	others := s.equivalents()
	for i := range rules {
		for _, other := range others {
			if other.Resource == req.RequestResource || !rules[i].matches(req, other.Resource) {
				continue
			}
			// Checked before the name, as upstream does.
			if other.Kind.Empty() {
				return cluster.Equivalent{}, noRule, fmt.Errorf("unable to convert to %v: unknown kind", other.Resource)
			}
			if rules[i].matchesName(req.Name) {
				return other, i, nil
			}
		}
	}
	return cluster.Equivalent{}, noRule, nil
}
