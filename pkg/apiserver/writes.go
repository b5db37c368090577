// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// bindingsResource is the resource of the bindings whose params are authorized.
const bindingsResource = "validatingadmissionpolicybindings"

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
