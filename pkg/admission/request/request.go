// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request holds one admission request, decoded once and shared by all
// policies. It does not know policies, the cluster or any policy language.
package request

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Fields are the facts of a request, with the meaning that
// admission.k8s.io/v1 AdmissionRequest gives them.
type Fields struct {
	UID types.UID

	// Kind, Resource and SubResource are those of Object and OldObject.
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	SubResource string

	// RequestKind, RequestResource and RequestSubResource are those of the
	// original request. They differ from the above when the API server has
	// converted the object for a webhook. New copies them from the above when
	// RequestResource is empty.
	RequestKind        schema.GroupVersionKind
	RequestResource    schema.GroupVersionResource
	RequestSubResource string

	Name      string
	Namespace string // for a Namespace object: its own name, as in kube-apiserver
	Operation admission.Operation
	User      user.Info
	DryRun    bool
	// Time is the clock of policies that ask for one. The chain takes its own where it
	// is zero.
	Time time.Time

	Object    *unstructured.Unstructured // nil on DELETE
	OldObject *unstructured.Unstructured // nil on CREATE
	Options   *unstructured.Unstructured // nil when unknown
}

// Request is one request. Nothing that is reachable from it may be modified.
// It is safe for concurrent use.
type Request struct {
	Fields
	attributes admission.Attributes
	views      views
	lasting    *views
}

// New returns a request with the given facts. The request owns the objects of
// fields from now on.
func New(fields Fields) *Request {
	if fields.RequestResource.Empty() {
		fields.RequestKind, fields.RequestResource = fields.Kind, fields.Resource
		fields.RequestSubResource = fields.SubResource
	}
	if fields.User == nil {
		fields.User = &user.DefaultInfo{}
	}
	return &Request{Fields: fields, attributes: fields.attributes(), lasting: &views{}}
}

// WithObject returns a copy of r that judges obj. Of derived views, only lasting ones are
// carried over.
func (r *Request) WithObject(obj *unstructured.Unstructured) *Request {
	fields := r.Fields
	fields.Object = obj
	return r.with(fields)
}

// At returns a copy of r with the given time. Of derived views, only lasting ones are
// carried over.
func (r *Request) At(now time.Time) *Request {
	fields := r.Fields
	fields.Time = now
	return r.with(fields)
}

// with returns a request that differs from r in its object or its time.
func (r *Request) with(fields Fields) *Request {
	changed := New(fields)
	changed.lasting = r.lasting
	return changed
}
