// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

const (
	clusterReviews = "subjectaccessreviews"
	localReviews   = "localsubjectaccessreviews"
)

// checkReview refuses a POST that is no question about the rights of a user.
func checkReview(target address) error {
	resource := target.resource
	asks := fits(resource.Group, authorizationv1.GroupName) && fits(resource.Version, "v1") && target.name == ""
	switch {
	case asks && resource.Resource == anything,
		asks && resource.Resource == clusterReviews && (target.namespace == "" || target.namespace == anything),
		asks && resource.Resource == localReviews && target.namespace != "":
		return nil
	}
	return fmt.Errorf("a policy changes nothing in the cluster: a POST may only ask for %s and %s of %s/v1", clusterReviews, localReviews, authorizationv1.GroupName)
}

// review answers a SubjectAccessReview, or a local one.
func review(ctx context.Context, from horizon, target address, body map[string]any) (any, error) {
	size := measure{left: maxReview}
	if err := size.add(body, 0); err != nil {
		return nil, fmt.Errorf("data: it is larger than %d bytes, or nested too deep", maxReview)
	}
	if err := from.v.run.Spend(ctx, reviewSteps+size.nodes, 2*maxReview); err != nil {
		return nil, err
	}
	var asked authorizationv1.SubjectAccessReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body, &asked); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	attributes, err := attributesOf(&asked.Spec, target)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	kind := schema.GroupVersionKind{Group: authorizationv1.GroupName, Version: "v1", Kind: "SubjectAccessReview"}
	if target.resource.Resource == localReviews {
		kind.Kind = "LocalSubjectAccessReview"
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	if err := from.v.reads(ctx, verdict.ParamRef{APIVersion: apiVersion, Kind: name, Namespace: target.namespace}); err != nil {
		return nil, err
	}
	asked.APIVersion, asked.Kind, asked.Namespace = apiVersion, name, target.namespace
	if err := decide(ctx, from.v.in.View.Authorizer(), attributes, &asked.Status); err != nil {
		return nil, err
	}
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&asked)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return answer, nil
}

const (
	// maxReview is how large a review may be, as JSON.
	maxReview = 16 << 10
	// reviewSteps is what the rights of a user take, about.
	reviewSteps = 1000
)

// decide asks the authorizer, and completes the status as kube-apiserver does. A view
// that does not know gives no answer: neither yes nor no would be safe, nor a default.
func decide(
	ctx context.Context, rights authorizer.UnconditionalAuthorizer, attributes authorizer.AttributesRecord,
	status *authorizationv1.SubjectAccessReviewStatus,
) error {
	if rights == nil {
		return fmt.Errorf("%w: nothing is known here of what users may do", errRefused)
	}
	decision, reason, err := authorize(ctx, rights, attributes)
	var unanswered *cluster.UnansweredError
	switch {
	case errors.Is(err, errRefused):
		return err
	case errors.As(err, &unanswered):
		return fmt.Errorf("%w: what the user may do is not known: %w", errRefused, err)
	}
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return nil
}

// authorize asks the authorizer. That of a candidate panics with an error about whom the
// caller may not be told, since CEL would make a no of an error that is returned.
func authorize(ctx context.Context, rights authorizer.UnconditionalAuthorizer, attributes authorizer.Attributes) (decision authorizer.Decision, reason string, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		refusal, ok := cause.(error)
		if _, fault := cause.(goruntime.Error); fault || !ok {
			panic(cause)
		}
		err = fmt.Errorf("%w: %w", errRefused, refusal)
	}()
	return rights.Authorize(ctx, attributes)
}

// attributesOf returns the question of a review, and refuses what kube-apiserver refuses.
func attributesOf(spec *authorizationv1.SubjectAccessReviewSpec, target address) (authorizer.AttributesRecord, error) {
	local := target.resource.Resource == localReviews
	resource, path := spec.ResourceAttributes, spec.NonResourceAttributes
	record := authorizer.AttributesRecord{User: userOf(spec)}
	switch {
	case spec.User == "" && len(spec.Groups) == 0:
		return record, errors.New("spec.user or spec.groups: say whose rights are asked about")
	case (resource == nil) == (path == nil):
		return record, errors.New("spec has exactly one of resourceAttributes and nonResourceAttributes")
	case local && path != nil:
		return record, errors.New("spec.nonResourceAttributes: a local review is about a namespace")
	case path != nil:
		record.Verb, record.Path = path.Verb, path.Path
		return record, nil
	case resource.FieldSelector != nil || resource.LabelSelector != nil:
		return record, errors.New("spec.resourceAttributes: selectors are not supported")
	}
	namespace := resource.Namespace
	if local && namespace == "" {
		namespace = target.namespace
	}
	if local && namespace != target.namespace {
		return record, fmt.Errorf("spec.resourceAttributes.namespace: it is %q, and the path names %q", namespace, target.namespace)
	}
	record.ResourceRequest = true
	record.Verb, record.Namespace, record.Name = resource.Verb, namespace, resource.Name
	record.APIGroup, record.APIVersion = resource.Group, resource.Version
	record.Resource, record.Subresource = resource.Resource, resource.Subresource
	return record, nil
}

func userOf(spec *authorizationv1.SubjectAccessReviewSpec) *user.DefaultInfo {
	asked := &user.DefaultInfo{Name: spec.User, Groups: spec.Groups, UID: spec.UID}
	if len(spec.Extra) > 0 {
		asked.Extra = make(map[string][]string, len(spec.Extra))
		for key, values := range spec.Extra {
			asked.Extra[key] = values
		}
	}
	return asked
}
