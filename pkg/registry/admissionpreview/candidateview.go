// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/interpreter"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// candidateView is what candidates see of the cluster. It is that of the stored
// policies, but it does not tell of every user and every Namespace: nobody has
// allowed a candidate, which is written by the caller, to look at them. Matching
// sees the whole view: a selector tells the labels that it asks for alone.
type candidateView struct {
	cluster.View
	asker  caller
	judged user.Info // the user of the request
}

func newCandidateView(view cluster.View, asker caller, judged user.Info) cluster.View {
	return &candidateView{View: view, asker: asker, judged: judged}
}

// Namespace implements cluster.View. It is what expressions see as
// namespaceObject, so the caller must have the right to get it.
func (v *candidateView) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	err := v.asker.Need(ctx, authorizer.AttributesRecord{
		Verb: "get", APIVersion: "v1", Resource: "namespaces", Namespace: name, Name: name,
	}, "needed by the candidates to look at namespaceObject")
	if err != nil {
		return nil, err
	}
	return v.View.Namespace(ctx, name)
}

// Authorizer implements cluster.View.
func (v *candidateView) Authorizer() authorizer.UnconditionalAuthorizer {
	all := v.View.Authorizer()
	if all == nil {
		return nil
	}
	return &candidateAuthorizer{all: all, asker: v.asker, judged: v.judged}
}

var _ authorizer.Authorizer = (*candidateAuthorizer)(nil)

// candidateAuthorizer answers what the user of the request and the caller may do,
// and what those may do whom the caller may impersonate.
type candidateAuthorizer struct {
	all    authorizer.UnconditionalAuthorizer
	asker  caller
	judged user.Info
}

// Authorize answers as the authorizer of the cluster does. About a user of whom
// the caller may not be told it gives no answer at all: it panics with an
// interpreter.EvalCancelledError, which cel-go makes the error of the expression
// that asks, so that the failure policy decides. To return the error would not do:
// in CEL, authorizer.check().allowed() is then false (decisionAllowed in
// k8s.io/apiserver/pkg/cel/library), and such a no is neither true nor safe.
func (a *candidateAuthorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if err := a.mayAskAbout(ctx, attributes.GetUser()); err != nil {
		panic(interpreter.EvalCancelledError{Message: err.Error()})
	}
	return a.all.Authorize(ctx, attributes)
}

// ConditionsAwareAuthorize is Authorize: policies know no conditions.
func (a *candidateAuthorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions always denies: policies know no conditions.
func (a *candidateAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// mayAskAbout returns the right that the caller lacks to be told of who. It is
// the right to impersonate who, for whoever has it can find out anyway.
func (a *candidateAuthorizer) mayAskAbout(ctx context.Context, who user.Info) error {
	if who == nil {
		return errors.New("a candidate asks the authorizer about no user")
	}
	if isPart(who, a.judged) || isPart(who, a.asker.User) {
		return nil
	}
	as := &authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: sets.List(sets.New(who.GetGroups()...).Delete(byNature(who)...))}
	for key, values := range who.GetExtra() {
		if as.Extra == nil {
			as.Extra = map[string]authenticationv1.ExtraValue{}
		}
		as.Extra[key] = values
	}
	return a.asker.impersonate(ctx, as, func(*field.Path) string {
		return fmt.Sprintf("needed by the candidates to ask the authorizer about %q", who.GetName())
	}, nil)
}

// isPart says whether who is known, or known with less: what that user may do,
// the other one may do too.
func isPart(who, known user.Info) bool {
	if known == nil || who.GetName() != known.GetName() || who.GetUID() != "" && who.GetUID() != known.GetUID() {
		return false
	}
	if !sets.New(known.GetGroups()...).Insert(byNature(known)...).HasAll(who.GetGroups()...) {
		return false
	}
	for key, values := range who.GetExtra() {
		if known, found := known.GetExtra()[key]; !found || !slices.Equal(known, values) {
			return false
		}
	}
	return true
}

// byNature returns the groups of a service account, which take no right of their
// own: impersonation adds them.
func byNature(who user.Info) []string {
	namespace, _, err := serviceaccount.SplitUsername(who.GetName())
	if err != nil {
		return nil
	}
	return serviceaccount.MakeGroupNames(namespace)
}
