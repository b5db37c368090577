// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"testing"

	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

// fixed is a view with the given authorizer.
type fixed struct {
	cluster.View
	authorizer authorizer.UnconditionalAuthorizer
}

func (v fixed) Authorizer() authorizer.UnconditionalAuthorizer { return v.authorizer }

func TestCandidateAuthorizer(t *testing.T) {
	nobody := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", nil
	})
	bobs := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "impersonate" && a.GetResource() == "users" && a.GetName() == "bob" && a.GetUser().GetName() == "jane" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	broken := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", errors.New("roles cannot be read")
	})
	jane := &user.DefaultInfo{Name: "jane", UID: "7", Groups: []string{"devs", "ops"}, Extra: map[string][]string{"a": {"b"}}}
	ann := &user.DefaultInfo{Name: "ann", Groups: []string{"devs"}}
	const suffix = ": needed by the candidates to ask the authorizer about "
	tests := []struct {
		name   string
		who    user.Info
		rights authorizer.UnconditionalAuthorizer
		caller user.Info
		want   string // the panic
	}{
		{name: "the user of the request", who: ann, rights: nobody, caller: jane},
		{name: "the caller", who: jane, rights: nobody, caller: jane},
		{name: "the caller with less", who: &user.DefaultInfo{Name: "jane", Groups: []string{"ops"}}, rights: nobody, caller: jane},
		{
			name: "the caller with another group", who: &user.DefaultInfo{Name: "jane", Groups: []string{"ops", "admins"}}, rights: nobody, caller: jane,
			want: `users "jane" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope` + suffix + `"jane"`,
		},
		{
			name: "the caller with another uid", who: &user.DefaultInfo{Name: "jane", UID: "8"}, rights: nobody, caller: jane,
			want: `users "jane" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope` + suffix + `"jane"`,
		},
		{
			name: "the caller with other extra", who: &user.DefaultInfo{Name: "jane", Extra: map[string][]string{"a": {"c"}}}, rights: nobody, caller: jane,
			want: `users "jane" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope` + suffix + `"jane"`,
		},
		{name: "one whom the caller may impersonate", who: &user.DefaultInfo{Name: "bob"}, rights: bobs, caller: jane},
		{
			name: "one in a group that the caller may not impersonate", who: &user.DefaultInfo{Name: "bob", Groups: []string{"devs"}}, rights: bobs, caller: jane,
			want: `groups "devs" is forbidden: User "jane" cannot impersonate resource "groups" in API group "" at the cluster scope` + suffix + `"bob"`,
		},
		{
			name: "a service account", who: &user.DefaultInfo{Name: "system:serviceaccount:ci:builder", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci"}}, rights: bobs, caller: jane,
			want: `serviceaccounts "builder" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ci"` + suffix + `"system:serviceaccount:ci:builder"`,
		},
		{
			name: "no answer about the right", who: &user.DefaultInfo{Name: "bob"}, rights: broken, caller: jane,
			want: `users "bob" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope` + suffix + `"bob": roles cannot be read`,
		},
		{
			name: "no authorizer of the server", who: &user.DefaultInfo{Name: "bob"}, caller: jane,
			want: `users "bob" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope` + suffix + `"bob": cannot tell what the caller may do: no user or no authorizer`,
		},
		{name: "no caller", who: &user.DefaultInfo{Name: "bob"}, rights: bobs, want: "Internal error occurred: cannot tell what the caller may do: no user or no authorizer"},
		{name: "nobody", rights: bobs, caller: jane, want: "a candidate asks the authorizer about no user"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			all := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				asked++
				return authorizer.DecisionAllow, "because", nil
			})
			view := newCandidateView(fixed{authorizer: all}, caller{rights.Caller{User: test.caller, Authorizer: test.rights}}, ann)
			defer func() {
				problem, _ := recover().(interpreter.EvalCancelledError)
				if problem.Message != test.want {
					t.Errorf("got the panic\n%s\nwant\n%s", problem.Message, test.want)
				}
				if answered := asked > 0; answered != (test.want == "") {
					t.Errorf("answered: %v", answered)
				}
			}()
			decision, reason, err := view.Authorizer().Authorize(t.Context(), authorizer.AttributesRecord{User: test.who, Verb: "get"})
			if decision != authorizer.DecisionAllow || reason != "because" || err != nil {
				t.Errorf("got %v, %q and error %v, want the answer of the cluster", decision, reason, err)
			}
		})
	}
}

// TestCandidateAuthorizerAbsent: where nobody can tell what users may do, no
// candidate is told.
func TestCandidateAuthorizerAbsent(t *testing.T) {
	if got := newCandidateView(fixed{}, caller{}, nil).Authorizer(); got != nil {
		t.Errorf("got %T, want nil", got)
	}
}
