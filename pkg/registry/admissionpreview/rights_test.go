// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

func TestMayRead(t *testing.T) {
	secret := verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: "prod", Name: "key"}
	deployment := verdict.ParamRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "prod", Name: "web"}
	jane := &user.DefaultInfo{Name: "jane"}
	allow := func(authorizer.Attributes) (authorizer.Decision, error) { return authorizer.DecisionAllow, nil }
	tests := []struct {
		name   string
		user   user.Info
		ref    verdict.ParamRef
		answer func(authorizer.Attributes) (authorizer.Decision, error)
		want   bool
		asked  int // when asked twice
	}{
		{name: "allowed", user: jane, ref: secret, answer: allow, want: true, asked: 1},
		{name: "of a group", user: jane, ref: deployment, answer: func(a authorizer.Attributes) (authorizer.Decision, error) {
			if a.GetUser().GetName() == "jane" && a.GetVerb() == "get" && a.GetAPIGroup() == "apps" && a.GetAPIVersion() == "v1" &&
				a.GetResource() == "deployments" && a.GetNamespace() == "prod" && a.GetName() == "web" && a.IsResourceRequest() {
				return authorizer.DecisionAllow, nil
			}
			return authorizer.DecisionNoOpinion, nil
		}, want: true, asked: 1},
		{name: "no opinion", user: jane, ref: secret, answer: func(authorizer.Attributes) (authorizer.Decision, error) {
			return authorizer.DecisionNoOpinion, nil
		}, asked: 1},
		{name: "denied", user: jane, ref: secret, answer: func(authorizer.Attributes) (authorizer.Decision, error) {
			return authorizer.DecisionDeny, nil
		}, asked: 1},
		{name: "an error, which is not remembered", user: jane, ref: secret, answer: func(authorizer.Attributes) (authorizer.Decision, error) {
			return authorizer.DecisionAllow, errors.New("broken")
		}, asked: 2},
		{name: "nobody", ref: secret, answer: allow},
		{name: "no authorizer", user: jane, ref: secret},
		{name: "unknown kind", user: jane, ref: verdict.ParamRef{APIVersion: "example.com/v1", Kind: "Secret", Name: "key"}, answer: allow},
		{name: "broken version", user: jane, ref: verdict.ParamRef{APIVersion: "a/b/c", Kind: "Secret", Name: "key"}, answer: allow},
		{name: "all of a namespace", user: jane, ref: verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: "prod"}, answer: func(a authorizer.Attributes) (authorizer.Decision, error) {
			if a.GetVerb() == "list" && a.GetResource() == "secrets" && a.GetNamespace() == "prod" && a.GetName() == "" {
				return authorizer.DecisionAllow, nil
			}
			return authorizer.DecisionNoOpinion, nil
		}, want: true, asked: 1},
	}
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			access := caller{rights.Caller{User: test.user}}
			if test.answer != nil {
				access.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					asked++
					decision, err := test.answer(a)
					return decision, "", err
				})
			}
			r := newReader(access, view.Mapper())
			for range 2 {
				if got := r.MayRead(t.Context(), test.ref); got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
			}
			if asked != test.asked {
				t.Errorf("asked %d times, want %d", asked, test.asked)
			}
		})
	}
}
