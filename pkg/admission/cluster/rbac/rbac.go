// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac answers what a user may do by the RBAC objects of a cluster. It
// decides as the RBAC authorizer of kube-apiserver does
// (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac); answers recorded from one
// are its test. It does not know where the objects come from, does not validate
// them, does not look at field and label selectors, and does not stand for other
// authorizers of a cluster, such as Node or Webhook.
package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// Source is where the RBAC objects are read. A cluster.View is one.
type Source interface {
	// Objects is that of cluster.View. What it returns must never change.
	Objects(ctx context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error)
}

// Evaluator answers by the objects of one source. It reads them when it is first
// asked, and once. It is safe for concurrent use. Make one by New.
type Evaluator struct {
	source   Source
	reading  sync.Mutex
	compiled atomic.Pointer[index]
}

var _ authorizer.Authorizer = (*Evaluator)(nil)

// New returns an evaluator over the RBAC objects of source, which must never
// change.
func New(source Source) *Evaluator { return &Evaluator{source: source} }

// Authorize allows what a rule allows that is bound to the user or to one of its
// groups, and everything to system:masters. All else is DecisionNoOpinion: RBAC
// never denies. Roles that are bound and do not exist are told in the reason, as
// kube-apiserver does. An object that cannot be read might have allowed what is
// asked: unless other objects allow it, the answer then has an error that names
// the object. That one, and that of a source that cannot be read, is a
// cluster.UnansweredError. The RBAC authorizer of kube-apiserver returns no error:
// it has all objects in memory, and they are valid.
//
// Where several bindings allow, the reason names the first: ClusterRoleBindings
// before RoleBindings, then by name. The order of kube-apiserver is random.
func (e *Evaluator) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	caller := attributes.GetUser()
	if caller == nil {
		return authorizer.DecisionNoOpinion, "", errors.New("RBAC: the question names no user")
	}
	// kube-apiserver asks its authorizer of privileged groups first, and that
	// one gives no reason (pkg/kubeapiserver/authorizer in k8s.io/kubernetes).
	if slices.Contains(caller.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	index, err := e.index(ctx)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", unanswered(err)
	}
	return index.authorize(attributes)
}

// ConditionsAwareAuthorize is Authorize: RBAC knows no conditions.
func (e *Evaluator) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(e.Authorize(ctx, attributes))
}

// EvaluateConditions always denies: RBAC knows no conditions.
func (e *Evaluator) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

func unanswered(err error) error {
	return &cluster.UnansweredError{Err: fmt.Errorf("RBAC: %w", err)}
}

// index returns the compiled objects. That the source cannot be read is not kept:
// the context of one caller may be the cause.
func (e *Evaluator) index(ctx context.Context) (*index, error) {
	if compiled := e.compiled.Load(); compiled != nil {
		return compiled, nil
	}
	e.reading.Lock()
	defer e.reading.Unlock()
	if compiled := e.compiled.Load(); compiled != nil {
		return compiled, nil
	}
	compiled, err := newIndex(ctx, e.source)
	if err != nil {
		return nil, err
	}
	e.compiled.Store(compiled)
	return compiled, nil
}
