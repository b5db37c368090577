// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/roles"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// namespaceKind is the kind whose objects are in the namespace that they are.
const namespaceKind = "Namespace"

// Subject is a request before a cluster, to which rules apply or not. What selections
// ask of the two is found once, when the first of them asks, errors included, and is the
// same for all. It is not safe for concurrent use.
type Subject struct {
	request *request.Request
	view    cluster.View

	// object is the one that selections look at; nil when the request has none.
	object                *unstructured.Unstructured
	name, namespace, kind string
	labelsFound           once[map[string]string]
	annotationsFound      once[map[string]string]

	parent once[schema.GroupVersionKind]
	around once[map[string]string]
	given  once[given]
}

// given are the roles of the user.
type given struct{ roles, clusterRoles []string }

// once is what has been found, or why it could not be.
type once[T any] struct {
	found bool
	value T
	err   error
}

func (o *once[T]) find(find func() (T, error)) (T, error) {
	if !o.found {
		o.value, o.err = find()
		o.found = true
	}
	return o.value, o.err
}

// NewSubject returns the subject of a request that is judged before view.
func NewSubject(req *request.Request, view cluster.View) *Subject {
	s := &Subject{request: req, view: view}
	s.SetObject(req.Object)
	return s
}

// SetObject makes object the one that selections look at: that of the request as former
// rules have left it. Without one they look at the old object, as when the request
// deletes.
func (s *Subject) SetObject(object *unstructured.Unstructured) {
	if object == nil || object.Object == nil {
		object = s.request.OldObject
	}
	s.object, s.name, s.namespace, s.kind = nil, "", "", ""
	s.labelsFound, s.annotationsFound = once[map[string]string]{}, once[map[string]string]{}
	if object == nil || object.Object == nil {
		return
	}
	s.object = object
	s.kind, s.namespace = object.GetKind(), object.GetNamespace()
	if s.name = object.GetName(); s.name == "" {
		s.name = object.GetGenerateName()
	}
}

// placeName is the namespace in which the object is. A Namespace that has no name yet is
// nowhere.
func (s *Subject) placeName() string {
	if s.kind == namespaceKind {
		return s.object.GetName()
	}
	return s.namespace
}

func (s *Subject) labels() map[string]string {
	labels, _ := s.labelsFound.find(func() (map[string]string, error) {
		labels := s.object.GetLabels()
		if s.kind == namespaceKind && s.request.Operation == admission.Create && s.object.GetName() == "" {
			// The API server will set it to the name, which it has yet to make: now it is
			// what the user pleases.
			delete(labels, corev1.LabelMetadataName)
		}
		return labels, nil
	})
	return labels
}

func (s *Subject) annotations() map[string]string {
	annotations, _ := s.annotationsFound.find(func() (map[string]string, error) { return s.object.GetAnnotations(), nil })
	return annotations
}

// parentKind returns the kind of the object, or that of the object to which the
// subresource of the request belongs.
func (s *Subject) parentKind() (schema.GroupVersionKind, error) {
	return s.parent.find(func() (schema.GroupVersionKind, error) {
		if s.request.SubResource == "" {
			return s.request.Kind, nil
		}
		kind, err := s.view.Mapper().KindFor(s.request.Resource)
		if err != nil {
			return schema.GroupVersionKind{}, fmt.Errorf("finding the kind of %s, to which %s belongs: %w", s.request.Resource.GroupResource(), s.request.SubResource, err)
		}
		return kind, nil
	})
}

// namespaceLabels returns the labels of the namespace of the request. What is in none
// has none. They are never those of a Namespace that the request writes:
// namespaceSelector does not select Namespaces.
func (s *Subject) namespaceLabels(ctx context.Context) (map[string]string, error) {
	return s.around.find(func() (map[string]string, error) {
		if s.request.Namespace == "" {
			return nil, nil
		}
		namespace, err := s.view.Namespace(ctx, s.request.Namespace)
		if err != nil {
			return nil, fmt.Errorf("reading namespace %q for its labels: %w", s.request.Namespace, err)
		}
		return namespace.Labels, nil
	})
}

// Roles returns the Roles and the ClusterRoles of the user: see roles.OfRequest.
func (s *Subject) Roles(ctx context.Context) (names, clusterNames []string, err error) {
	found, err := s.given.find(func() (given, error) {
		names, clusterNames, err := roles.OfRequest(ctx, s.view, s.request)
		return given{names, clusterNames}, err
	})
	return found.roles, found.clusterRoles, err
}

// isUserUnknown says that nothing is known of who has made the request.
func (s *Subject) isUserUnknown() bool {
	who := s.request.User
	return who.GetName() == "" && who.GetUID() == "" && len(who.GetGroups()) == 0 && len(who.GetExtra()) == 0
}

// subject is a compiled entry of subjects.
type subject struct {
	name  glob
	group bool
	text  string
}

func newSubject(spec *rbacv1.Subject) subject {
	compiled := subject{name: newGlob(spec.Name), group: spec.Kind == rbacv1.GroupKind, text: spec.Kind + " " + spec.Name}
	if spec.Kind == rbacv1.ServiceAccountKind {
		compiled.name = newGlob(serviceaccount.ServiceAccountUsernamePrefix + spec.Namespace + ":" + spec.Name)
		compiled.text = spec.Kind + " " + spec.Namespace + "/" + spec.Name
	}
	return compiled
}

func (s *subject) match(who user.Info) bool {
	if !s.group {
		return s.name.match(who.GetName())
	}
	for _, group := range who.GetGroups() {
		if s.name.match(group) {
			return true
		}
	}
	return false
}
