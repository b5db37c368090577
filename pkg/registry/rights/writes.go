// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// Writes refuses writers of policies and bindings who may not read the params
// themselves, at the fields and in the words of kube-apiserver. It asks nothing of
// system:masters, and nothing for a write after which params are found as before.
// It is safe for concurrent use.
type Writes struct {
	authorizer authorizer.UnconditionalAuthorizer
	mapper     func() meta.RESTMapper
	policy     func(ctx context.Context, name string) (*policyapi.ValidatingAdmissionPolicy, error)
}

// NewWrites returns what asks the authorizer of the server. Mapper maps kinds to
// resources as the cluster has them at the moment. Policy returns a policy as it is
// stored, however lately that was, and an error when it cannot be told all of it.
func NewWrites(
	auth authorizer.UnconditionalAuthorizer,
	mapper func() meta.RESTMapper,
	policy func(ctx context.Context, name string) (*policyapi.ValidatingAdmissionPolicy, error),
) *Writes {
	return &Writes{authorizer: auth, mapper: mapper, policy: policy}
}

// Policy checks the writer of a valid policy; old is nil when it is new.
func (w *Writes) Policy(ctx context.Context, obj, old *policyapi.ValidatingAdmissionPolicy) field.ErrorList {
	kind := obj.Spec.ParamKind
	if kind == nil || old != nil && apiequality.Semantic.DeepEqual(kind, old.Spec.ParamKind) {
		return nil
	}
	return forbidden("paramKind", w.readKind(ctx, kind))
}

// Binding checks the writer of a valid binding at each write, also when the reference
// stays: kube-apiserver does so too, since it compares pointers (authorizeUpdate in
// k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding).
func (w *Writes) Binding(ctx context.Context, obj, _ *policyapi.ValidatingAdmissionPolicyBinding) field.ErrorList {
	ref := obj.Spec.ParamRef
	if ref == nil {
		return nil
	}
	return forbidden("paramRef", w.readRef(ctx, obj.Spec.PolicyName, ref))
}

func forbidden(part string, err error) field.ErrorList {
	if err == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", part), err.Error())}
}

// readKind demands of the writer the right to have params of the kind.
func (w *Writes) readKind(ctx context.Context, kind *admissionregistrationv1.ParamKind) error {
	writer := CallerOf(ctx, w.authorizer)
	switch {
	case writer.privileged():
		return nil
	case writer.User == nil:
		return errors.New("cannot identify user to authorize read access to paramKind resources")
	}
	parsed, _ := parse(kind)
	right, _ := ToReadKind(w.mapper(), parsed)
	allowed, _, err := writer.May(ctx, &right)
	if err != nil {
		return err
	}
	if !allowed {
		return fmt.Errorf(`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`,
			writer.User, kind.Kind, kind.APIVersion)
	}
	return nil
}

// readRef demands of the writer the right to have the params of a reference for
// the policy of that name.
func (w *Writes) readRef(ctx context.Context, policy string, ref *admissionregistrationv1.ParamRef) error {
	writer := CallerOf(ctx, w.authorizer)
	switch {
	case writer.privileged():
		return nil
	case writer.User == nil:
		return errors.New("cannot identify user to authorize read access to paramRef object")
	}
	kind, doubt := w.paramKind(ctx, policy)
	right, err := ToReadRef(w.mapper(), kind, ref.Namespace, ref.Name)
	if err != nil {
		doubt = fmt.Sprintf("resolve paramKind &{%s %s}", kind.GroupVersion(), kind.Kind)
	}
	allowed, _, err := writer.May(ctx, &right)
	switch {
	case err != nil:
		return fmt.Errorf("failed to authorize request: %w", err)
	case allowed:
		return nil
	case doubt != "":
		return fmt.Errorf(`unable to %s to determine minimum required permissions and user %v does not have "%s" permission for all groups, versions and resources`,
			doubt, writer.User, right.Verb)
	default:
		return fmt.Errorf(`user %v does not have "%s" permission on the object referenced by paramRef`, writer.User, right.Verb)
	}
}

// paramKind returns the kind of the params of a policy, or nil when it has none.
// It is nil as well where it cannot be told, which the second result explains.
func (w *Writes) paramKind(ctx context.Context, name string) (*schema.GroupVersionKind, string) {
	policy, err := w.policy(ctx, name)
	if err != nil {
		return nil, "get policy " + name
	}
	if policy.Spec.ParamKind == nil {
		return nil, ""
	}
	kind, err := parse(policy.Spec.ParamKind)
	if err != nil {
		return nil, fmt.Sprintf("parse paramKind &{%s %s}", policy.Spec.ParamKind.APIVersion, policy.Spec.ParamKind.Kind)
	}
	return kind, ""
}

func parse(kind *admissionregistrationv1.ParamKind) (*schema.GroupVersionKind, error) {
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, err
	}
	parsed := version.WithKind(kind.Kind)
	return &parsed, nil
}
