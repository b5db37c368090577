// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

// scenario is what is stored.
type scenario struct {
	policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// question is a request before anyone has looked at it.
type question struct {
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	SubResource string
	Name        string
	Namespace   string
	Operation   admission.Operation
	User        user.DefaultInfo
	DryRun      bool
	Object      *unstructured.Unstructured
	OldObject   *unstructured.Unstructured
	Options     runtime.Object
	// ForwardedAs is the version to which the API server has converted the object
	// of a custom resource before it asks a webhook; empty when it has not.
	ForwardedAs string
}

// attributes is the request as an API server hands it to its own plugins.
func (q *question) attributes() admission.Attributes {
	var object, oldObject runtime.Object
	switch {
	case q.Object == nil:
	case q.Operation == admission.Connect:
		object = options{q.Object.DeepCopy()}
	default:
		object = q.Object.DeepCopy()
	}
	if q.OldObject != nil {
		oldObject = q.OldObject.DeepCopy()
	}
	info := q.User
	return admission.NewAttributesRecord(object, oldObject, q.Kind, q.Namespace, q.Name, q.Resource, q.SubResource,
		q.Operation, q.Options, q.DryRun, &info)
}

// options are those of a request to connect as an API server has them: they have no
// metadata, which would not be seen of unstructured ones, and are of no version.
type options struct{ object *unstructured.Unstructured }

// GetObjectKind implements runtime.Object.
func (options) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (o options) DeepCopyObject() runtime.Object { return options{o.object.DeepCopy()} }

// review is the request as an API server sends it to a webhook. See
// CreateAdmissionObjects in k8s.io/apiserver/pkg/admission/plugin/webhook/request.
func (q *question) review() (*admissionv1.AdmissionRequest, error) {
	kind, resource := metav1.GroupVersionKind(q.Kind), metav1.GroupVersionResource(q.Resource)
	r := &admissionv1.AdmissionRequest{
		UID: "00000000-0000-0000-0000-000000000001", Kind: kind, Resource: resource, SubResource: q.SubResource,
		RequestKind: &kind, RequestResource: &resource, RequestSubResource: q.SubResource,
		Name: q.Name, Namespace: q.Namespace, Operation: admissionv1.Operation(q.Operation), DryRun: &q.DryRun,
		UserInfo: authenticationv1.UserInfo{Username: q.User.Name, UID: q.User.UID, Groups: q.User.Groups},
	}
	for key, values := range q.User.Extra {
		if r.UserInfo.Extra == nil {
			r.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
		}
		r.UserInfo.Extra[key] = values
	}
	if q.ForwardedAs != "" {
		r.Kind.Version, r.Resource.Version = q.ForwardedAs, q.ForwardedAs
	}
	var err error
	if r.Object.Raw, err = q.encode(q.Object); err != nil {
		return nil, err
	}
	if r.OldObject.Raw, err = q.encode(q.OldObject); err != nil {
		return nil, err
	}
	if q.Options != nil {
		if r.Options.Raw, err = json.Marshal(q.Options); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (q *question) encode(object *unstructured.Unstructured) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	if q.ForwardedAs != "" {
		object = object.DeepCopy()
		object.SetGroupVersionKind(q.Kind.GroupKind().WithVersion(q.ForwardedAs))
	}
	return json.Marshal(object.Object)
}

// describe is all that one needs to see a difference again.
func describe(s *scenario, q *question) string {
	text := ""
	add := func(kind string, object any) {
		part, err := yaml.Marshal(object)
		if err != nil {
			part = []byte(err.Error())
		}
		text += "--- # " + kind + "\n" + string(part)
	}
	for _, policy := range s.policies {
		add("ValidatingAdmissionPolicy", map[string]any{"name": policy.Name, "spec": policy.Spec})
	}
	for _, binding := range s.bindings {
		add("ValidatingAdmissionPolicyBinding", map[string]any{"name": binding.Name, "spec": binding.Spec})
	}
	add("request", q)
	return text
}
