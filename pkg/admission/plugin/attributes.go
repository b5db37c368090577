// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// attributes are those of a request that has come through a door of ours, with
// the question that it is.
type attributes struct {
	admission.Attributes
	question *chain.Question
}

func newAttributes(req *request.Request, question *chain.Question) *attributes {
	return &attributes{Attributes: req.Attributes(), question: question}
}

// fromAttributes returns the request that another API server asks about, in the
// version that the client has used, as the webhook plugins of kube-apiserver
// send it.
func fromAttributes(a admission.Attributes, o admission.ObjectInterfaces) (*request.Request, error) {
	object, err := toUnstructured(a.GetObject(), a.GetKind(), o)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	oldObject, err := toUnstructured(a.GetOldObject(), a.GetKind(), o)
	if err != nil {
		return nil, fmt.Errorf("old object: %w", err)
	}
	options, err := operationOptions(a)
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	return request.New(request.Fields{
		Kind: a.GetKind(), Resource: a.GetResource(), SubResource: a.GetSubresource(),
		Name: a.GetName(), Namespace: a.GetNamespace(), Operation: a.GetOperation(),
		User: a.GetUserInfo(), DryRun: a.IsDryRun(),
		Object: object, OldObject: oldObject, Options: options,
	}), nil
}

func toUnstructured(obj runtime.Object, kind schema.GroupVersionKind, o admission.ObjectInterfaces) (*unstructured.Unstructured, error) {
	if obj == nil {
		return nil, nil //nolint:nilnil // no object, and that is no error
	}
	versioned, err := admission.ConvertToGVK(obj, kind, o)
	if err != nil {
		return nil, err
	}
	if own, ok := versioned.(*unstructured.Unstructured); ok {
		return own, nil
	}
	converted, err := admission.ConvertObjectToUnstructured(versioned)
	if err != nil {
		return nil, err
	}
	converted.SetGroupVersionKind(kind)
	return converted, nil
}

func operationOptions(a admission.Attributes) (*unstructured.Unstructured, error) {
	if a.GetOperationOptions() == nil {
		return nil, nil //nolint:nilnil // no options, and that is no error
	}
	return admission.ConvertObjectToUnstructured(a.GetOperationOptions())
}

// replaceObject puts what policies have made of the object into that of a, in its own
// version and type; nil leaves it as it is.
func replaceObject(a admission.Attributes, o admission.ObjectInterfaces, changed *unstructured.Unstructured) error {
	if changed == nil {
		return nil
	}
	if own, ok := a.GetObject().(*unstructured.Unstructured); ok {
		own.SetUnstructuredContent(changed.DeepCopy().Object)
		return nil
	}
	versioned, err := o.GetObjectCreater().New(a.GetKind())
	if err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(changed.Object, versioned, true); err != nil {
		return fmt.Errorf("object as policies have changed it: %w", err)
	}
	o.GetObjectDefaulter().Default(versioned)
	if err := o.GetObjectConvertor().Convert(versioned, a.GetObject(), nil); err != nil {
		return fmt.Errorf("object as policies have changed it: %w", err)
	}
	return nil
}
