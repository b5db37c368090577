// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// param is what a policy is judged with through a binding. Its zero value stands
// for no param.
type param struct {
	object    *unstructured.Unstructured
	reference *verdict.ParamRef
}

// selectParams returns the params of a binding for a request in namespace, in
// the order of namespace and name. None is returned only where the binding
// allows that. The rules and texts are those of CollectParams in
// k8s.io/apiserver/pkg/admission/plugin/policy/generic.
func selectParams(ctx context.Context, view cluster.View, kind schema.GroupVersionKind, params *policy.Params, namespace string) ([]param, error) {
	mapping, err := view.Mapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	selection := cluster.Selection{Kind: kind, Name: params.Name, Selector: params.Selector}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		selection.Namespace = params.Namespace
		if selection.Namespace == "" {
			selection.Namespace = namespace
		}
		if selection.Namespace == "" {
			return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
		}
	}
	if !cluster.Lists(kind.GroupKind()) {
		return nil, fmt.Errorf("paramKind kind `&ParamKind{APIVersion:%s,Kind:%s,}` not yet synced to use for admission", kind.GroupVersion(), kind.Kind)
	}
	if selection.Namespace == "" && params.Namespace != "" {
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	}
	if params.Err != nil {
		return nil, params.Err
	}
	selected, err := view.Objects(ctx, selection)
	if err != nil {
		return nil, err
	}
	if len(selected) == 0 && !params.AllowAbsent {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	list := make([]param, len(selected))
	for i, object := range selected {
		list[i] = param{object, reference(object)}
	}
	return list, nil
}

func reference(object *unstructured.Unstructured) *verdict.ParamRef {
	return &verdict.ParamRef{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}
