// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cel is the dialect of ValidatingAdmissionPolicy and
// ValidatingAdmissionPolicyBinding: CEL expressions that mean what they mean in
// kube-apiserver, to the letter of their errors. They are checked in upstream's
// environments and run by cel-go.
//
// What is around that is made anew, for speed: an environment serves all policies
// and not one (workspace), an expression is compiled once (expression), what it sees
// is made once for a request (shared, frame), and what it costs is only counted where
// a limit could be reached (fit). Where that is so, the programs are upstream's own.
//
// Where an explanation is asked for, a tracer evaluates the same expressions once
// more, to see what their parts were; it has no part in what is found.
//
// The package does not apply failurePolicy or validationActions, and it does not
// check what is written: pkg/apis/policy/validation does.
package cel

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

var _ policy.Dialect = (*Dialect)(nil)

// Dialect compiles CEL policies. It is safe for concurrent use.
type Dialect struct{ compiler *compiler }

// New returns the dialect.
func New() *Dialect { return &Dialect{compiler: newCompiler()} }

// Name implements policy.Dialect.
func (d *Dialect) Name() string { return "cel" }

// Kinds implements policy.Dialect.
func (d *Dialect) Kinds() []string { return []string{policyKind, bindingKind} }

// Compile implements policy.Dialect. Expressions are compiled in the
// environment for stored expressions, as at run time in kube-apiserver.
func (d *Dialect) Compile(_ context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	switch stored := obj.(type) {
	case *policyapi.ValidatingAdmissionPolicy:
		return d.compilePolicy(stored)
	case *policyapi.ValidatingAdmissionPolicyBinding:
		return compileBinding(stored), nil
	}
	return nil, field.ErrorList{field.InternalError(nil, fmt.Errorf("the cel dialect does not compile %T", obj))}
}

func (d *Dialect) compilePolicy(stored *policyapi.ValidatingAdmissionPolicy) (*policy.Unit, field.ErrorList) {
	unit := &policy.Unit{
		ID: policy.ID{Kind: policyKind, Name: stored.Name},
		Policy: &policy.Policy{
			Criteria:     match.Compile(stored.Spec.MatchConstraints),
			OnError:      failurePolicy(stored.Spec.FailurePolicy),
			NeedsBinding: true,
		},
	}
	var errs field.ErrorList
	if kind := stored.Spec.ParamKind; kind != nil {
		version, err := schema.ParseGroupVersion(kind.APIVersion)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "paramKind", "apiVersion"), kind.APIVersion, err.Error()))
		}
		paramKind := version.WithKind(kind.Kind)
		unit.Policy.ParamKind = &paramKind
	}
	program, programErrs := newLazyProgram(d.compiler, &stored.Spec)
	unit.Policy.Program = program
	return unit, append(errs, programErrs...)
}

func compileBinding(stored *policyapi.ValidatingAdmissionPolicyBinding) *policy.Unit {
	return &policy.Unit{
		ID: policy.ID{Kind: bindingKind, Name: stored.Name},
		Binding: &policy.Binding{
			Policy:   policy.ID{Kind: policyKind, Name: stored.Spec.PolicyName},
			Criteria: match.Compile(stored.Spec.MatchResources),
			Params:   params(stored.Spec.ParamRef),
			Actions:  actions(stored.Spec.ValidationActions),
		},
	}
}

// params follows CollectParams of
// k8s.io/apiserver/pkg/admission/plugin/policy/generic in what it refuses.
func params(ref *admissionregistrationv1.ParamRef) *policy.Params {
	if ref == nil {
		return nil
	}
	p := &policy.Params{Name: ref.Name, Namespace: ref.Namespace}
	switch {
	case ref.Name != "" && ref.Selector != nil:
		p.Err = errors.New("paramRef.name and paramRef.selector are mutually exclusive")
	case ref.Name == "" && ref.Selector == nil:
		p.Err = errors.New("one of name or selector must be provided")
	case ref.Name == "":
		p.Selector, p.Err = metav1.LabelSelectorAsSelector(ref.Selector)
	}
	if action := ref.ParameterNotFoundAction; action != nil {
		p.AllowAbsent = *action == admissionregistrationv1.AllowAction
	}
	return p
}

func failurePolicy(p *admissionregistrationv1.FailurePolicyType) verdict.FailurePolicy {
	if p != nil && *p == admissionregistrationv1.Ignore {
		return verdict.Ignore
	}
	return verdict.FailClosed
}

func actions(names []admissionregistrationv1.ValidationAction) []verdict.Action {
	list := make([]verdict.Action, 0, len(names))
	for _, name := range names {
		switch name {
		case admissionregistrationv1.Warn:
			list = append(list, verdict.Warn)
		case admissionregistrationv1.Audit:
			list = append(list, verdict.Audit)
		case admissionregistrationv1.Deny:
			list = append(list, verdict.Deny)
		default: // an action that this version does not know must not admit
			list = append(list, verdict.Deny)
		}
	}
	return list
}
