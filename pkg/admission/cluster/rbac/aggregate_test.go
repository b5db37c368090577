// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

// recorded are the objects that kube-apiserver makes itself, with the rules that
// the controller clusterrole-aggregation has written into admin, edit and view.
type recorded struct{}

func (recorded) Objects(_ context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := builtin.RBAC()
	return slices.DeleteFunc(slices.Clone(all), func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() != selection.Kind.Kind
	}), err
}

// TestAggregateAsController compares the rules that the controller has written
// with those that are aggregated here.
func TestAggregateAsController(t *testing.T) {
	roles, err := readRoles(t.Context(), recorded{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := recorded{}.Objects(t.Context(), cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole")})
	if err != nil {
		t.Fatal(err)
	}
	aggregated := 0
	for _, obj := range objects {
		if written := newRole(obj); written.aggregate != nil {
			aggregated++
			want, got := ruleTexts(written), ruleTexts(roles.clusterWide[written.name])
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", written.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	if aggregated != 3 {
		t.Errorf("got %d aggregated roles, want admin, edit and view", aggregated)
	}
}

// ruleTexts returns the rules of a role and its members, sorted, each once. There
// must be no loop.
func ruleTexts(r *role) []string {
	var texts []string
	for _, rule := range r.rules {
		texts = append(texts, rule.String())
	}
	for _, member := range r.members {
		texts = append(texts, ruleTexts(member)...)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// TestAggregateIsBounded has three roles that select two others each; there are
// comparisons for two of them.
func TestAggregateIsBounded(t *testing.T) {
	everything := &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	var all []*role
	for i := range 3 {
		all = append(all, &role{name: fmt.Sprint(i), aggregate: everything})
	}
	aggregate(all, 6)
	for i, r := range all {
		if i < 2 && (r.fault != nil || len(r.members) != 2) {
			t.Errorf("%d: got %d members, %v, want 2", i, len(r.members), r.fault)
		}
		if i == 2 && (r.fault == nil || len(r.members) > 0 || !strings.HasPrefix(r.fault.Error(), `ClusterRole "2" is not aggregated: `)) {
			t.Errorf("%d: got %d members, %v, want an error", i, len(r.members), r.fault)
		}
	}
}
