// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kyverno is the dialect of ClusterPolicy and Policy: the mutate rules of
// kyverno.io/v1. It compiles them once and applies them to requests as the admission
// controller of Kyverno 1.19 does, except where KNOWN_ISSUES says otherwise. Its parts
// are below: expressions, variables, selection, patches. It neither stores policies nor
// decides what an error leads to, and reads the cluster through the view of a request
// alone.
package kyverno

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/function"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// The kinds that the dialect compiles.
const (
	clusterPolicyKind = "ClusterPolicy"
	policyKind        = "Policy"
)

var _ policy.Dialect = (*Dialect)(nil)

// Dialect compiles ClusterPolicies and Policies. It is safe for concurrent use.
type Dialect struct {
	templates *template.Compiler
}

// New returns the dialect.
func New() *Dialect {
	return &Dialect{templates: &template.Compiler{Expressions: jmespath.NewCompiler(function.All()...)}}
}

// Name implements policy.Dialect.
func (*Dialect) Name() string { return "kyverno" }

// Kinds implements policy.Dialect.
func (*Dialect) Kinds() []string { return []string{clusterPolicyKind, policyKind} }

// Compile implements policy.Dialect. A rule with faults fails the requests that it is
// about, and where it cannot be told which these are, all that the policy may be about.
func (d *Dialect) Compile(_ context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	switch of := obj.(type) {
	case *policyapi.ClusterPolicy:
		id := policy.ID{Kind: clusterPolicyKind, Name: of.Name}
		return d.compile(id, of.Annotations, &of.Spec)
	case *policyapi.Policy:
		id := policy.ID{Kind: policyKind, Namespace: of.Namespace, Name: of.Name}
		return d.compile(id, of.Annotations, &of.Spec)
	}
	return nil, field.ErrorList{field.InternalError(nil, fmt.Errorf("%T is no policy of this language", obj))}
}
