// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

// paramRights keeps those who bring a policy or a binding from reading, through
// its params, what they may not read themselves.
type paramRights struct {
	caller caller
	mapper meta.RESTMapper
}

// checkPolicy demands the right to get every object of the paramKind.
func (r paramRights) checkPolicy(ctx context.Context, id policy.ID, kind *schema.GroupVersionKind) error {
	if kind == nil {
		return nil
	}
	asked, err := rights.ToReadKind(r.mapper, kind)
	return r.caller.Need(ctx, asked, fmt.Sprintf("needed for the paramKind of %s %q%s", id.Kind, id.Name, whyAll(kind, err)))
}

// checkReads demands the rights to what a policy reads by itself.
func (r paramRights) checkReads(ctx context.Context, unit *policy.Unit) error {
	for i := range unit.Policy.Reads {
		read := &unit.Policy.Reads[i]
		why := fmt.Sprintf("%s %q reads it: %s", unit.ID.Kind, unit.ID.Name, read.Field)
		if err := r.caller.Need(ctx, rights.ToRead(read), why); err != nil {
			return err
		}
	}
	return nil
}

// checkBinding demands the right to read what the paramRef refers to. Kind is that
// of the params of the policy, or nil when the policy is unknown or has none.
func (r paramRights) checkBinding(ctx context.Context, id policy.ID, params *policy.Params, kind *schema.GroupVersionKind) error {
	if params == nil {
		return nil
	}
	asked, err := rights.ToReadRef(r.mapper, kind, params.Namespace, params.Name)
	return r.caller.Need(ctx, asked, fmt.Sprintf("needed for the paramRef of %s %q%s", id.Kind, id.Name, whyAll(kind, err)))
}

// whyAll explains a right that must cover all that the params may be.
func whyAll(kind *schema.GroupVersionKind, unmapped error) string {
	switch {
	case kind == nil:
		return ", for all resources: its policy is not known or has no paramKind"
	case unmapped != nil:
		return fmt.Sprintf(", for all resources of the group: the cluster has no kind %s", kind)
	default:
		return ""
	}
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
			if err := r.checkReads(ctx, unit); err != nil {
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
