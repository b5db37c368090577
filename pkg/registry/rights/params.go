// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// all stands for every group, version, resource, namespace or name.
const all = "*"

// ToReadKind returns the right to have params of a kind: to get every object of it.
// It is the one that kube-apiserver asks for in
// pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go. Where kind
// is nil it is not known, and the right covers all resources; the error, if there
// is one, says why it covers all of the group and version.
func ToReadKind(mapper meta.RESTMapper, kind *schema.GroupVersionKind) (authorizer.AttributesRecord, error) {
	right, err := resource(mapper, kind)
	right.Verb, right.Namespace, right.Name = "get", all, all
	return right, err
}

// ToReadRef returns the right to have the params of a reference: to get the object
// of that name or, without a name, to list those of the namespace; without a
// namespace, in all of them. It is the one of
// pkg/registry/admissionregistration/validatingadmissionpolicybinding/authz.go
// there. Kind and the error are those of ToReadKind.
func ToReadRef(mapper meta.RESTMapper, kind *schema.GroupVersionKind, namespace, name string) (authorizer.AttributesRecord, error) {
	right, err := resource(mapper, kind)
	right.Verb, right.Namespace, right.Name = "get", namespace, name
	if name == "" {
		right.Verb = "list"
	}
	return right, err
}

// resource returns all that objects of the kind may be.
func resource(mapper meta.RESTMapper, kind *schema.GroupVersionKind) (authorizer.AttributesRecord, error) {
	if kind == nil {
		return authorizer.AttributesRecord{APIGroup: all, APIVersion: all, Resource: all}, nil
	}
	right := authorizer.AttributesRecord{APIGroup: kind.Group, APIVersion: kind.Version, Resource: all}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return right, err
	}
	right.Resource = mapping.Resource.Resource
	return right, nil
}
