// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

var _ interface {
	rest.Storage
	rest.Scoper
	rest.Creater
	rest.SingularNameProvider
	rest.GroupVersionKindProvider
} = (*REST)(nil)

// REST is a door as discovery shows it. It judges nothing: reviews that are POSTed to
// the resource are for a Handler to answer before they are decoded as objects of an
// API are.
type REST struct{ singular string }

// NewREST returns a resource with the given singular name.
func NewREST(singular string) *REST { return &REST{singular: singular} }

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &admissionv1.AdmissionReview{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return r.singular }

// GroupVersionKind implements rest.GroupVersionKindProvider: the kind is one of
// another group than the resource.
func (r *REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
}

// Create implements rest.Creater. It is reached by what no Handler has answered, such as
// a path with a slash at its end, and refuses: the caller then applies the failurePolicy
// of its webhook registration.
func (r *REST) Create(context.Context, runtime.Object, rest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error) {
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: "no reviews are judged here: POST to the path of the resource, without a slash at the end",
	}}
}
