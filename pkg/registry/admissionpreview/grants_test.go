// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// grants is an authorizer that allows what it lists, and everything to
// system:masters. It keeps what it was asked by others.
type grants struct {
	allowed []string
	asked   []string
	err     error
}

func (g *grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	question := ask(a)
	g.asked = append(g.asked, question)
	if slices.Contains(g.allowed, question) {
		return authorizer.DecisionAllow, "", g.err
	}
	return authorizer.DecisionNoOpinion, "", g.err
}

// ask writes a question as: verb group/version/resource/subresource
// namespace/name.
func ask(a authorizer.Attributes) string {
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	if a.GetAPIGroup() != "" || a.GetAPIVersion() != "" {
		resource = a.GetAPIGroup() + "/" + a.GetAPIVersion() + "/" + resource
	}
	return fmt.Sprintf("%s %s %s/%s", a.GetVerb(), resource, a.GetNamespace(), a.GetName())
}
