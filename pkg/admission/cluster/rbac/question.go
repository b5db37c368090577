// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// maxErrors is how many missing roles, and how many faults, an answer names.
const maxErrors = 100

// question is what is asked, with what has been found out so far. Each role is
// looked at once, however often it is bound or aggregated: the cost of a question
// is at most that of all rules.
type question struct {
	authorizer.Attributes
	resource string // with the subresource
	refused  map[*role]bool
	missing  []error
	faults   []error
}

func newQuestion(attributes authorizer.Attributes) *question {
	q := &question{Attributes: attributes, resource: attributes.GetResource(), refused: map[*role]bool{}}
	if subresource := attributes.GetSubresource(); subresource != "" {
		q.resource += "/" + subresource
	}
	return q
}

func (q *question) allowedBy(b *binding) bool {
	if b.role == nil {
		q.missing = append(q.missing, b.missing)
		return false
	}
	return q.allowedByRole(b.role)
}

func (q *question) allowedByRole(r *role) bool {
	if q.refused[r] {
		return false
	}
	q.refused[r] = true // before its members, which may aggregate it in turn
	if r.fault != nil {
		q.faults = append(q.faults, r.fault)
	}
	for i := range r.rules {
		if q.allowedByRule(&r.rules[i]) {
			return true
		}
	}
	return slices.ContainsFunc(r.members, q.allowedByRole)
}

// allowedByRule is RuleAllows in k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac.
func (q *question) allowedByRule(rule *rbacv1.PolicyRule) bool {
	if !matches(rule.Verbs, rbacv1.VerbAll, q.GetVerb()) {
		return false
	}
	if !q.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, q.matchesURL)
	}
	return matches(rule.APIGroups, rbacv1.APIGroupAll, q.GetAPIGroup()) &&
		slices.ContainsFunc(rule.Resources, q.matchesResource) &&
		// A request without a name, such as a list, is for no name in particular.
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.GetName()))
}

func matches(allowed []string, all, asked string) bool {
	return slices.Contains(allowed, all) || slices.Contains(allowed, asked)
}

// matchesResource knows a resource, a resource with its subresource, the
// subresource of every resource, as in */scale, and everything. A resource
// without a subresource does not allow its subresources, and pods/* is not a
// pattern.
func (q *question) matchesResource(allowed string) bool {
	if allowed == rbacv1.ResourceAll || allowed == q.resource {
		return true
	}
	subresource, found := strings.CutPrefix(allowed, "*/")
	return found && subresource != "" && subresource == q.GetSubresource()
}

// matchesURL knows a path, and what begins with the text before trailing stars.
func (q *question) matchesURL(allowed string) bool {
	if allowed == q.GetPath() {
		return true
	}
	prefix := strings.TrimRight(allowed, "*")
	return prefix != allowed && strings.HasPrefix(q.GetPath(), prefix)
}

// reason is empty when no role is missing.
func (q *question) reason() string {
	if len(q.missing) == 0 {
		return ""
	}
	return fmt.Sprintf("RBAC: %v", utilerrors.NewAggregate(bound(q.missing, "missing roles")))
}

// err names the objects that might have allowed what is asked.
func (q *question) err() error {
	if len(q.faults) == 0 {
		return nil
	}
	return unanswered(utilerrors.NewAggregate(bound(q.faults, "objects that cannot be read")))
}

// bound returns errs, each once.
func bound(errs []error, what string) []error {
	seen := map[string]bool{}
	errs = slices.DeleteFunc(errs, func(err error) bool {
		text := err.Error()
		defer func() { seen[text] = true }()
		return seen[text]
	})
	if more := len(errs) - maxErrors; more > 0 {
		return append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more %s", more, what))
	}
	return errs
}
