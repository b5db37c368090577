// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// pair is a key and a value, both with wildcards.
type pair struct{ key, value glob }

func newPairs(all map[string]string) []pair {
	pairs := make([]pair, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, pair{newGlob(key), newGlob(all[key])})
	}
	return pairs
}

// in says whether one of the labels or annotations has the key and the value.
func (p *pair) in(all map[string]string) bool {
	if p.key.kind == literal {
		value, ok := all[p.key.text]
		return ok && p.value.match(value)
	}
	for key, value := range all {
		if p.key.match(key) && p.value.match(value) {
			return true
		}
	}
	return false
}

// labelSelector is a label selector, of whose matchLabels those with wildcards are kept
// apart: they ask for some label that matches, as Kyverno's ReplaceInSelector does.
type labelSelector struct {
	exact labels.Selector
	pairs []pair
	// never is why the selector matches nothing: Kyverno looks at what stands beside
	// wildcards only when there is a request, and takes a mistake for no match.
	never error
}

func newLabelSelector(spec *metav1.LabelSelector) (*labelSelector, error) {
	plain, wild := map[string]string{}, map[string]string{}
	for key, value := range spec.MatchLabels {
		if wildcard.Contains(key) || wildcard.Contains(value) {
			wild[key] = value
		} else {
			plain[key] = value
		}
	}
	exact, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: plain, MatchExpressions: spec.MatchExpressions})
	if err != nil && len(wild) == 0 {
		return nil, err
	}
	if err != nil {
		exact = labels.Nothing()
	}
	return &labelSelector{exact: exact, pairs: newPairs(wild), never: err}, nil
}

// exactly returns labels that all objects have that the selector selects.
func (l *labelSelector) exactly() map[string]string {
	if l == nil {
		return nil
	}
	requirements, _ := l.exact.Requirements()
	exactly := map[string]string{}
	for _, requirement := range requirements {
		switch requirement.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := requirement.ValuesUnsorted(); len(values) == 1 {
				exactly[requirement.Key()] = values[0]
			}
		}
	}
	return exactly
}

func (l *labelSelector) isEmpty() bool { return l.exact.Empty() && len(l.pairs) == 0 }

func (l *labelSelector) match(set labels.Set) bool {
	for i := range l.pairs {
		if !l.pairs[i].in(set) {
			return false
		}
	}
	return l.exact.Matches(set)
}
