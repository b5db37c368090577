// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// paramRights keeps those who bring a policy or a binding from reading, through
// its params, what they may not read themselves. It asks what kube-apiserver
// asks when such an object is written:
// k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go
// and its neighbour for bindings.
type paramRights struct {
	caller caller
	mapper meta.RESTMapper
}

// all stands for every group, version, resource, namespace or name.
const all = "*"

// checkPolicy demands the right to get every object of the paramKind.
func (r paramRights) checkPolicy(ctx context.Context, id policy.ID, kind *schema.GroupVersionKind) error {
	if kind == nil {
		return nil
	}
	asked, doubt := r.resource(kind)
	asked.Verb, asked.Namespace, asked.Name = "get", all, all
	return r.caller.need(ctx, asked, fmt.Sprintf("needed for the paramKind of %s %q%s", id.Kind, id.Name, doubt))
}

// checkBinding demands the right to get the object of the paramRef, or to list
// where it has a selector; without a namespace, in all of them. Kind is that of
// the params of the policy, or nil when the policy is unknown or has none.
func (r paramRights) checkBinding(ctx context.Context, id policy.ID, params *policy.Params, kind *schema.GroupVersionKind) error {
	if params == nil {
		return nil
	}
	asked, doubt := r.resource(kind)
	asked.Verb, asked.Namespace, asked.Name = "get", params.Namespace, params.Name
	if params.Name == "" {
		asked.Verb = "list"
	}
	return r.caller.need(ctx, asked, fmt.Sprintf("needed for the paramRef of %s %q%s", id.Kind, id.Name, doubt))
}

// resource returns the resource of a kind. Where it cannot be told, the right
// must cover all that it may be, which the second result explains.
func (r paramRights) resource(kind *schema.GroupVersionKind) (authorizer.AttributesRecord, string) {
	if kind == nil {
		return authorizer.AttributesRecord{APIGroup: all, APIVersion: all, Resource: all},
			", for all resources: its policy is not known or has no paramKind"
	}
	asked := authorizer.AttributesRecord{APIGroup: kind.Group, APIVersion: kind.Version, Resource: all}
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return asked, fmt.Sprintf(", for all resources of the group: the cluster has no kind %s", kind)
	}
	asked.Resource = mapping.Resource.Resource
	return asked, ""
}

// check demands what the candidates need. A binding may be that of a candidate
// or of a policy of stored, which must be the set that judges; where it is nil,
// nothing is known, and the rights must cover whatever a stored policy may be.
func (r paramRights) check(ctx context.Context, candidates []*policy.Unit, stored *policy.Set) error {
	policies := map[policy.ID]*policy.Unit{}
	for _, unit := range candidates {
		if unit.Policy != nil {
			policies[unit.ID] = unit
		}
	}
	for _, unit := range candidates {
		if unit.Policy != nil {
			if err := r.checkPolicy(ctx, unit.ID, unit.Policy.ParamKind); err != nil {
				return err
			}
			continue
		}
		bound := policies[unit.Binding.Policy]
		if bound == nil && stored != nil {
			bound = stored.Policy(unit.Binding.Policy)
		}
		var kind *schema.GroupVersionKind
		if bound != nil && bound.Policy != nil {
			kind = bound.Policy.ParamKind
		}
		if err := r.checkBinding(ctx, unit.ID, unit.Binding.Params, kind); err != nil {
			return err
		}
	}
	return nil
}
