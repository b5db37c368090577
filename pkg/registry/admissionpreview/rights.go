// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Access is what the door asks about its callers, so that a preview shows nobody
// more than they may see themselves.
type Access struct {
	// Authorizer is that of the server. It does not know what a preview lays over
	// the cluster: nobody gives themselves a right.
	Authorizer authorizer.UnconditionalAuthorizer
	// Stored returns the stored policies, or nil as long as they are not
	// complete; a nil function knows none. It is asked once for each preview: the
	// set against which rights are asked for is the one that judges.
	Stored func() *policy.Set
}

func (a Access) stored() *policy.Set {
	if a.Stored == nil {
		return nil
	}
	return a.Stored()
}

// caller is who asks, which need not be the user of the request that is judged.
type caller struct {
	user       user.Info // nil may do nothing
	authorizer authorizer.UnconditionalAuthorizer
}

func (a Access) caller(ctx context.Context) caller {
	who, _ := genericapirequest.UserFrom(ctx)
	return caller{user: who, authorizer: a.Authorizer}
}

// may says whether the caller has a right to a resource, with the reason of the
// authorizer if not. An error is no right.
func (c caller) may(ctx context.Context, asked *authorizer.AttributesRecord) (bool, string, error) {
	asked.User, asked.ResourceRequest = c.user, true
	if c.user == nil || c.authorizer == nil {
		return false, "", errors.New("cannot tell what the caller may do: no user or no authorizer")
	}
	decision, reason, err := c.authorizer.Authorize(ctx, *asked)
	return err == nil && decision == authorizer.DecisionAllow, reason, err
}

// need refuses a caller without the right, with 403 and the words of the API
// server; why says what the right is needed for.
func (c caller) need(ctx context.Context, asked authorizer.AttributesRecord, why string) error {
	allowed, reason, err := c.may(ctx, &asked)
	if allowed {
		return nil
	}
	if c.user == nil {
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

// reader remembers, for one preview, what its caller may read. It is safe for
// concurrent use.
type reader struct {
	caller caller
	mapper meta.RESTMapper

	mu      sync.Mutex
	answers map[verdict.ParamRef]bool
}

func newReader(c caller, mapper meta.RESTMapper) *reader {
	return &reader{caller: c, mapper: mapper, answers: map[verdict.ParamRef]bool{}}
}

// MayRead says whether the caller has the right to get the object. It is false
// when that cannot be told.
func (r *reader) MayRead(ctx context.Context, ref verdict.ParamRef) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer, known := r.answers[ref]; known {
		return answer
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || ref.Name == "" {
		return false
	}
	mapping, err := r.mapper.RESTMapping(group.WithKind(ref.Kind).GroupKind(), group.Version)
	if err != nil {
		return false
	}
	namespace := ref.Namespace
	if mapping.Resource == corev1.SchemeGroupVersion.WithResource("namespaces") {
		namespace = ref.Name // as an API server asks: a Namespace is in itself
	}
	allowed, _, err := r.caller.may(ctx, &authorizer.AttributesRecord{
		Verb:       "get",
		APIGroup:   mapping.Resource.Group,
		APIVersion: mapping.Resource.Version,
		Resource:   mapping.Resource.Resource,
		Namespace:  namespace,
		Name:       ref.Name,
	})
	if err != nil {
		return false // asked again: the next answer may be another one
	}
	r.answers[ref] = allowed
	return allowed
}
