// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

// TestRightsToChangeRules: nobody makes another use of what others may read.
func TestRightsToChangeRules(t *testing.T) {
	read := policy.Read{Field: field.NewPath("spec"), Verb: "get", Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: "shop", Name: "s"}
	rules := func(auth authorizer.Authorizer) mutateRules {
		return mutateRules{
			compile: func(context.Context, string, runtime.Object) (*policy.Unit, field.ErrorList) {
				return &policy.Unit{Policy: &policy.Policy{Reads: []policy.Read{read}}}, nil
			},
			writes: rights.NewWrites(auth, func() meta.RESTMapper { return nil }, nil),
		}
	}
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
	old := &policyapi.ClusterPolicy{Spec: kyvernov1.Spec{Rules: []kyvernov1.Rule{{Name: "a"}}}}
	labelled, changed, controllers := old.DeepCopy(), old.DeepCopy(), old.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	changed.Spec.Rules[0].Name = "b"
	controllers.Annotations = map[string]string{kyvernov1.AutogenControllersAnnotation: "Job"}
	namespaced := &policyapi.Policy{Spec: changed.Spec}
	for name, test := range map[string]struct {
		obj, old runtime.Object
		refused  bool
	}{
		"new":               {obj: old, refused: true},
		"labels":            {obj: labelled, old: old},
		"rules":             {obj: changed, old: old, refused: true},
		"controllers":       {obj: controllers, old: old, refused: true},
		"no controllers":    {obj: old, old: controllers, refused: true},
		"rules of a Policy": {obj: namespaced, old: &policyapi.Policy{}, refused: true},
		"a Policy":          {obj: namespaced, old: namespaced.DeepCopy()},
	} {
		if errs := rules(authorizerfactory.NewAlwaysDenyAuthorizer()).authorize(ctx, test.obj, test.old); (len(errs) > 0) != test.refused {
			t.Errorf("%s: got %v, want a refusal: %v", name, errs, test.refused)
		}
		if errs := rules(authorizerfactory.NewAlwaysAllowAuthorizer()).authorize(ctx, test.obj, test.old); len(errs) > 0 {
			t.Errorf("%s: who may read it is refused: %v", name, errs)
		}
	}
}
