// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selector is a label selector, or the reason why it cannot be used. The zero
// value selects everything.
type selector struct {
	*parsed // nil selects everything
	err     error
}

// parsed is a selector that does not select everything. An Interner makes equal
// ones the same.
type parsed struct {
	labels.Selector
	large bool
}

// largeSelector is how many terms and values a selector has at least that it
// takes longer to ask again than to remember what it said.
const largeSelector = 8

// compileSelector parses source. Only an object without defaults has no
// selector; that is an error, with the text of
// k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_matcher.go.
func compileSelector(name string, source *metav1.LabelSelector) selector {
	if source == nil {
		return selector{err: fmt.Errorf("a nil %s selector was passed, please ensure selectors are initialized properly", name)}
	}
	from, err := metav1.LabelSelectorAsSelector(source)
	if err != nil {
		return selector{err: err}
	}
	if from.Empty() {
		return selector{}
	}
	return selector{parsed: newParsed(from)}
}

func newParsed(from labels.Selector) *parsed {
	size := 0
	requirements, _ := from.Requirements()
	for i := range requirements {
		size += 1 + len(requirements[i].ValuesUnsorted())
	}
	return &parsed{Selector: from, large: size >= largeSelector}
}

// matchesNamespace follows MatchNamespaceSelector of
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace.
func (l selector) matchesNamespace(ctx context.Context, s *Subject) (bool, error) {
	if s.request.Namespace == "" && s.request.RequestResource.Resource != "namespaces" {
		return true, nil // no namespaceSelector exempts cluster-scoped objects
	}
	if l.err != nil {
		return false, apierrors.NewInternalError(l.err)
	}
	if l.parsed == nil {
		return true, nil
	}
	set, err := s.namespaceLabels(ctx)
	if err == nil {
		return s.selected(l.parsed, true, func() bool { return l.Matches(set) }), nil
	}
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		return false, &apierrors.StatusError{ErrStatus: status.Status()}
	}
	return false, apierrors.NewInternalError(err)
}

// matchesObjects says whether the object or the old object is selected. It
// follows MatchObjectSelector of
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object.
func (l selector) matchesObjects(s *Subject) (bool, error) {
	if l.err != nil {
		return false, apierrors.NewInternalError(l.err)
	}
	if l.parsed == nil {
		return true, nil
	}
	sets := s.objectLabels()
	return s.selected(l.parsed, false, func() bool {
		return sets.selectable.object && l.Matches(sets.object) ||
			sets.selectable.oldObject && l.Matches(sets.oldObject)
	}), nil
}
