// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// bindingsResource is the resource of the bindings whose params are authorized.
const bindingsResource = "validatingadmissionpolicybindings"

// The resources of the policies whose rules change objects.
const (
	clusterMutationsResource    = "clusterpolicies"
	namespacedMutationsResource = "policies"
)

// authorizeWrites has writers of kinds asked for the right to read params. It
// returns what is to read the stored policies for that, once they are served.
func (c *completedConfig) authorizeWrites(kinds []stored.Kind) *storedPolicies {
	mapper := c.extra.Mapper
	if mapper == nil {
		mapper = func() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) } // maps nothing
	}
	policies := &storedPolicies{}
	writes := rights.NewWrites(c.generic.Authorization.Authorizer, mapper, policies.get)
	for i := range kinds {
		switch kinds[i].Resource {
		case policiesResource:
			kinds[i].Authorize = stored.Authorization(writes.Policy)
		case bindingsResource:
			kinds[i].Authorize = stored.Authorization(writes.Binding)
		case clusterMutationsResource, namespacedMutationsResource:
			rules := mutateRules{compile: c.extra.Compile, writes: writes}
			kinds[i].Compiles, kinds[i].Authorize, kinds[i].Warnings = rules.faults, rules.authorize, rules.warnings
		}
	}
	return policies
}

// storedPolicies reads policies from the storage.
type storedPolicies struct {
	getter rest.Getter // nil reads none
}

// serve makes the policies those of the storage that is served.
func (p *storedPolicies) serve(storage map[string]rest.Storage) error {
	getter, ok := storage[policiesResource].(rest.Getter)
	if !ok {
		return fmt.Errorf("storage of %s is a %T, want a rest.Getter", policiesResource, storage[policiesResource])
	}
	p.getter = getter
	return nil
}

// get returns a policy as it is in etcd, which is what the empty resource version
// asks for.
func (p *storedPolicies) get(ctx context.Context, name string) (*policyapi.ValidatingAdmissionPolicy, error) {
	if p.getter == nil {
		return nil, fmt.Errorf("%s are not served yet", policiesResource)
	}
	obj, err := p.getter.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := stored.Damage(obj); err != nil {
		return nil, err
	}
	policy, ok := obj.(*policyapi.ValidatingAdmissionPolicy)
	if !ok {
		return nil, fmt.Errorf("%s %q is a %T", policiesResource, name, obj)
	}
	return policy, nil
}

// mutateRules are the policies whose rules change objects. Their language
// tells what is wrong with them, and what they read of the cluster.
type mutateRules struct {
	compile func(ctx context.Context, kind string, obj runtime.Object) (*policy.Unit, field.ErrorList)
	writes  *rights.Writes
}

func (r mutateRules) compiled(ctx context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	if r.compile == nil {
		return nil, field.ErrorList{field.InternalError(nil, errors.New("nothing compiles the policy"))}
	}
	kind := "ClusterPolicy"
	if _, namespaced := obj.(*policyapi.Policy); namespaced {
		kind = "Policy"
	}
	return r.compile(ctx, kind, obj)
}

// faults returns what is wrong with a valid policy.
func (r mutateRules) faults(ctx context.Context, obj runtime.Object) field.ErrorList {
	_, errs := r.compiled(ctx, obj)
	return errs
}

// warnings returns what a writer should know of a policy that has no faults.
func (r mutateRules) warnings(ctx context.Context, obj runtime.Object) []string {
	unit, _ := r.compiled(ctx, obj)
	if unit == nil {
		return nil
	}
	return unit.Warnings
}

// authorize refuses writers who may not read what the policy reads. Who leaves the rules
// as they are, and changes labels for example, needs no right: nothing is read that was
// not read before, and nothing else is made of it. Who changes rules needs all rights:
// the same that is read may now become a part of other objects.
func (r mutateRules) authorize(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	unit, errs := r.compiled(ctx, obj)
	if unit == nil || unit.Policy == nil {
		return errs
	}
	var before []policy.Read
	if old != nil && apiequality.Semantic.DeepEqual(rulesOf(obj), rulesOf(old)) {
		before = unit.Policy.Reads
	}
	return r.writes.Reads(ctx, unit.Policy.Reads, before)
}

// rules are what says what a policy does.
type rules struct {
	Spec *kyvernov1.Spec
	// Controllers and Given are the annotation.
	Controllers string
	Given       bool
}

// rulesOf returns the rules of a policy. Those of another object equal only themselves.
func rulesOf(obj runtime.Object) any {
	var of rules
	switch typed := obj.(type) {
	case *policyapi.ClusterPolicy:
		of.Spec = &typed.Spec
		of.Controllers, of.Given = typed.Annotations[kyvernov1.AutogenControllersAnnotation]
	case *policyapi.Policy:
		of.Spec = &typed.Spec
		of.Controllers, of.Given = typed.Annotations[kyvernov1.AutogenControllersAnnotation]
	default:
		return obj
	}
	return of
}
