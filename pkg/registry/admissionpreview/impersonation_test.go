// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestImpersonation(t *testing.T) {
	const (
		bob    = "{username: bob, groups: [devs, 'system:authenticated'], extra: {scopes: [view, edit], team: []}, uid: u-1}"
		asBob  = "impersonate users /bob"
		asDevs = "impersonate groups /devs"
		asAll  = "impersonate groups /system:authenticated"
		asEdit = "impersonate authentication.k8s.io/v1/userextras/scopes /edit"
		asView = "impersonate authentication.k8s.io/v1/userextras/scopes /view"
		asTeam = "impersonate authentication.k8s.io/v1/userextras/team /"
		asUID  = "impersonate authentication.k8s.io/v1/uids /u-1"
		advice = "; leave userInfo out to be judged as yourself"
	)
	tests := []struct {
		name     string
		userInfo string
		allowed  []string
		asked    []string // when it is not what is allowed
		want     string   // the message of the refusal
	}{
		{name: "the caller", userInfo: "{username: jane, groups: [system:authenticated, staff], extra: {id: ['7']}, uid: u-2}", asked: []string{}},
		{
			name: "the caller with less", userInfo: "{username: jane}", asked: []string{"impersonate users /jane"},
			want: `users "jane" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope: needed for spec.request.userInfo.username` + advice,
		},
		{
			name: "the caller with more", userInfo: "{username: jane, groups: [staff, 'system:authenticated', 'system:masters'], extra: {id: ['7']}, uid: u-2}",
			allowed: []string{"impersonate users /jane", "impersonate groups /staff", asAll},
			asked:   []string{"impersonate users /jane", "impersonate groups /staff", asAll, "impersonate groups /system:masters"},
			want:    `groups "system:masters" is forbidden: User "jane" cannot impersonate resource "groups" in API group "" at the cluster scope: needed for spec.request.userInfo.groups[2]` + advice,
		},
		{name: "every part", userInfo: bob, allowed: []string{asBob, asDevs, asAll, asView, asEdit, asTeam, asUID}},
		{
			name: "no right to a group by nature", userInfo: bob, allowed: []string{asBob, asDevs}, asked: []string{asBob, asDevs, asAll},
			want: `groups "system:authenticated" is forbidden: User "jane" cannot impersonate resource "groups" in API group "" at the cluster scope: needed for spec.request.userInfo.groups[1]` + advice,
		},
		{
			name: "no right to a value", userInfo: bob, allowed: []string{asBob, asDevs, asAll, asView}, asked: []string{asBob, asDevs, asAll, asView, asEdit},
			want: `userextras.authentication.k8s.io "edit" is forbidden: User "jane" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope: needed for spec.request.userInfo.extra[scopes]` + advice,
		},
		{
			name: "no right to a key without values", userInfo: bob,
			allowed: []string{asBob, asDevs, asAll, asView, asEdit, asUID}, asked: []string{asBob, asDevs, asAll, asView, asEdit, asTeam},
			want: `userextras.authentication.k8s.io is forbidden: User "jane" cannot impersonate resource "userextras/team" in API group "authentication.k8s.io" at the cluster scope: needed for spec.request.userInfo.extra[team]` + advice,
		},
		{
			name: "no right to the uid", userInfo: bob, allowed: []string{asBob, asDevs, asAll, asView, asEdit, asTeam},
			asked: []string{asBob, asDevs, asAll, asView, asEdit, asTeam, asUID},
			want:  `uids.authentication.k8s.io "u-1" is forbidden: User "jane" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope: needed for spec.request.userInfo.uid` + advice,
		},
		{
			name: "a service account", userInfo: "{username: 'system:serviceaccount:ci:builder', groups: ['system:serviceaccounts']}",
			allowed: []string{"impersonate serviceaccounts ci/builder", "impersonate groups /system:serviceaccounts"},
		},
		{
			name: "no right to a service account", userInfo: "{username: 'system:serviceaccount:ci:builder'}",
			allowed: []string{"impersonate users /system:serviceaccount:ci:builder"}, asked: []string{"impersonate serviceaccounts ci/builder"},
			want: `serviceaccounts "builder" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ci": needed for spec.request.userInfo.username` + advice,
		},
		{
			name: "nobody", userInfo: "{}", asked: []string{"impersonate users /"},
			want: `users is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope: needed for spec.request.userInfo.username` + advice,
		},
	}
	jane := &user.DefaultInfo{Name: "jane", UID: "u-2", Groups: []string{"staff", user.AllAuthenticated}, Extra: map[string][]string{"id": {"7"}}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.rights.allowed = test.allowed
			_, err := f.create(genericapirequest.WithUser(t.Context(), jane), t, "  request: {userInfo: "+test.userInfo+", object: "+deployment+"}")
			wantForbidden(t, err, test.want)
			if judged := f.request != nil; judged != (test.want == "") {
				t.Errorf("judged: %v", judged)
			}
			want := test.asked
			if want == nil {
				want = test.allowed
			}
			if !slices.Equal(f.rights.asked, want) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(f.rights.asked, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestImpersonationFailsClosed: an authorizer that cannot answer allows nothing.
func TestImpersonationFailsClosed(t *testing.T) {
	f := newFixture(t)
	f.rights = grants{allowed: []string{"impersonate users /bob"}, err: errors.New("roles cannot be read")}
	jane := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
	_, err := f.create(jane, t, "  request: {userInfo: {username: bob}, object: "+deployment+"}")
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), ": roles cannot be read") {
		t.Errorf("got error %v, want Forbidden with the reason", err)
	}
}

// TestImpersonationBound: the number of questions is bounded before the first is
// asked, for everyone.
func TestImpersonationBound(t *testing.T) {
	const fit = 500
	groups := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("g%d", i))
		}
		return strings.Join(names, ", ")
	}
	f := newFixture(t)
	f.ask(t, "  request: {userInfo: {username: bob, groups: ["+groups(fit-1)+"], extra: {a: []}}, object: "+deployment+"}")
	wantFaults(t, newFixture(t).faults(t, "  request: {userInfo: {username: bob, groups: ["+groups(fit-1)+"], extra: {a: [b], c: []}}, object: "+deployment+"}"),
		[]string{"spec.request.userInfo: Invalid value: 501 groups and values of extra: at most 500 are taken together"})
}

// wantForbidden checks the message of a refusal; an empty one wants none.
func wantForbidden(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got error %v, want none", err)
		}
		return
	}
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got error\n%v\nwant\n%s", err, want)
	}
}
