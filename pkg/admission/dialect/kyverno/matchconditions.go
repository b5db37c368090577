// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// matchConditions are the CEL expressions of webhookConfiguration, which kube-apiserver
// evaluates for Kyverno. Nil holds always.
type matchConditions struct{ matcher matchconditions.Matcher }

// compileMatchConditions returns the conditions and their faults.
func compileMatchConditions(name string, webhook *kyvernov1.WebhookConfiguration, path *field.Path) (*matchConditions, field.ErrorList) {
	if webhook == nil || len(webhook.MatchConditions) == 0 {
		return nil, nil
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	accessors := make([]cel.ExpressionAccessor, len(webhook.MatchConditions))
	for i := range webhook.MatchConditions {
		accessors[i] = (*matchconditions.MatchCondition)(&webhook.MatchConditions[i])
	}
	evaluator := compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	var errs field.ErrorList
	for _, err := range evaluator.CompilationErrors() {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	// What an error leads to is for the failurePolicy of the policy, later.
	onError := admissionregistrationv1.Fail
	return &matchConditions{matcher: matchconditions.NewMatcher(evaluator, &onError, "policy", "admit", name)}, errs
}

// hold returns why the policy is not for the request, or nothing when it is. An error
// counts where no condition is false.
func (m *matchConditions) hold(ctx context.Context, in policy.Input) (string, error) {
	if m == nil {
		return "", nil
	}
	req := in.Request
	versioned := &admission.VersionedAttributes{Attributes: req.Attributes(), VersionedKind: req.Kind}
	if req.Object != nil {
		versioned.VersionedObject = admission.NewLazyObject(req.Object)
	}
	if req.OldObject != nil {
		versioned.VersionedOldObject = admission.NewLazyObject(req.OldObject)
	}
	result := m.matcher.Match(ctx, versioned, nil, in.View.Authorizer())
	switch {
	case result.Error != nil:
		return "", fmt.Errorf("matchConditions: %w", result.Error)
	case !result.Matches:
		return fmt.Sprintf("the match condition %q is false", result.FailedConditionName), nil
	}
	return "", nil
}
