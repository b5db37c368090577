// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights says which rights to the cluster policies take from those who
// bring them: to have a param read takes the right to read it. It asks an
// authorizer for them, for the writers of stored policies and the callers of
// previews alike. It knows neither where policies are kept nor how they judge, and
// not whether anything reads a param in the end.
package rights

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Caller is who asks for something to be done. The zero value may do nothing.
type Caller struct {
	// User is nil when nobody is known to ask.
	User user.Info
	// Authorizer is that of the server.
	Authorizer authorizer.UnconditionalAuthorizer
}

// CallerOf returns the user of a request.
func CallerOf(ctx context.Context, auth authorizer.UnconditionalAuthorizer) Caller {
	who, _ := genericapirequest.UserFrom(ctx)
	return Caller{User: who, Authorizer: auth}
}

// May says whether the caller has a right to a resource, with the reason of the
// authorizer if not. An error is no right.
func (c Caller) May(ctx context.Context, asked *authorizer.AttributesRecord) (bool, string, error) {
	asked.User, asked.ResourceRequest = c.User, true
	if c.User == nil || c.Authorizer == nil {
		return false, "", errors.New("cannot tell what the caller may do: no user or no authorizer")
	}
	decision, reason, err := c.Authorizer.Authorize(ctx, *asked)
	return err == nil && decision == authorizer.DecisionAllow, reason, err
}

// Need refuses a caller without the right, with 403 and the words of the API
// server; why says what the right is needed for.
func (c Caller) Need(ctx context.Context, asked authorizer.AttributesRecord, why string) error {
	allowed, reason, err := c.May(ctx, &asked)
	if allowed {
		return nil
	}
	if c.User == nil {
		return apierrors.NewInternalError(err)
	}
	reasons := []string{why}
	if reason != "" {
		reasons = append(reasons, reason)
	}
	if err != nil {
		reasons = append(reasons, err.Error())
	}
	return responsewriters.ForbiddenStatusError(asked, strings.Join(reasons, ": "))
}

// privileged says whether the caller may do anything, whatever the authorizer
// says, as EscalationAllowed of k8s.io/kubernetes/pkg/registry/rbac does: so may
// the server itself.
func (c Caller) privileged() bool {
	return c.User != nil && slices.Contains(c.User.GetGroups(), user.SystemPrivilegedGroup)
}
