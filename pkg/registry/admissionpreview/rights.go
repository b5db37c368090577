// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
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

// caller is who asks for a preview, which need not be the user of the request that
// is judged.
type caller struct {
	rights.Caller
}

func (a Access) caller(ctx context.Context) caller {
	return caller{rights.CallerOf(ctx, a.Authorizer)}
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

// MayRead says whether the caller has the right to get the object, or to list the
// objects when ref has no name. It is false when that cannot be told.
func (r *reader) MayRead(ctx context.Context, ref verdict.ParamRef) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer, known := r.answers[ref]; known {
		return answer
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false
	}
	mapping, err := r.mapper.RESTMapping(group.WithKind(ref.Kind).GroupKind(), group.Version)
	if err != nil {
		return false
	}
	verb, namespace := "get", ref.Namespace
	if ref.Name == "" {
		verb = "list"
	}
	if mapping.Resource == corev1.SchemeGroupVersion.WithResource("namespaces") {
		namespace = ref.Name // as an API server asks: a Namespace is in itself
	}
	allowed, _, err := r.caller.May(ctx, &authorizer.AttributesRecord{
		Verb:       verb,
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
