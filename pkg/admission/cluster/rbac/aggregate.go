// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// maxComparisons bounds how often a requirement of a selector is compared with
// the labels of a ClusterRole: each aggregating role is compared with each other
// one. Clusters need some hundreds.
const maxComparisons = 1 << 22

// aggregate finds the members of the roles that aggregate others. In a cluster
// the controller clusterrole-aggregation writes the rules of the members into
// the role, and those of a member that aggregates arrive there in turn. As with
// the controller, the role itself is no member, and rules of its own are lost
// when a member has any. Roles that select only each other have no rules; in a
// cluster they have whatever the last write has left.
func aggregate(all []*role, limit int) {
	comparisons := 0
	for _, r := range all {
		if r.aggregate == nil {
			continue
		}
		selectors, err := newSelectors(r.aggregate)
		if err != nil {
			r.fault = fmt.Errorf("ClusterRole %q cannot be aggregated: %w", r.name, err)
			continue
		}
		if comparisons += selectors.cost * len(all); comparisons > limit {
			r.fault = fmt.Errorf("ClusterRole %q is not aggregated: the aggregationRules of the cluster need more than %d comparisons of labels; use fewer or simpler ones", r.name, limit)
			continue
		}
		keep := true
		for _, other := range all {
			if other == r || !selectors.match(other.labels) {
				continue
			}
			r.members = append(r.members, other)
			keep = keep && other.aggregate == nil && other.fault == nil && len(other.rules) == 0
		}
		if !keep {
			r.rules = nil
		}
	}
}

type selectors struct {
	any  []labels.Selector
	cost int // in comparisons
}

func newSelectors(rule *rbacv1.AggregationRule) (selectors, error) {
	var s selectors
	for i := range rule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i])
		if err != nil {
			return selectors{}, fmt.Errorf("aggregationRule.clusterRoleSelectors[%d]: %w", i, err)
		}
		requirements, _ := selector.Requirements()
		s.any = append(s.any, selector)
		s.cost += 1 + len(requirements)
	}
	return s, nil
}

func (s selectors) match(set labels.Set) bool {
	for _, selector := range s.any {
		if selector.Matches(set) {
			return true
		}
	}
	return false
}
