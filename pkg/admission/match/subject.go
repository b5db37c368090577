// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// Subject is a request before a cluster, to which criteria apply or not. What
// they ask of the two is found once, when the first of them asks, errors
// included, and is the same for all. It is not safe for concurrent use.
type Subject struct {
	request *request.Request
	view    cluster.View

	namespace once[labels.Set]
	objects   once[objectLabels]
	others    once[[]cluster.Equivalent]
	parent    once[schema.GroupVersionKind]
	guardedBy once[traits]
	// byKindAlone says that guards let the subject pass.
	byKindAlone bool
	// answers are those of large selectors. The others are asked each time, which
	// takes no longer than to look an answer up.
	answers map[question]bool
}

// question is what a subject may be asked about a selector.
type question struct {
	selector  *parsed
	namespace bool // and not the objects
}

// NewSubject returns the subject of a request that is judged before view.
func NewSubject(req *request.Request, view cluster.View) *Subject {
	return &Subject{request: req, view: view}
}

// once is what has been found, or why it could not be. A panic leaves it empty.
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

// namespaceLabels returns the labels that the namespace of the request has, or
// will have when the request itself writes it.
func (s *Subject) namespaceLabels(ctx context.Context) (labels.Set, error) {
	return s.namespace.find(func() (labels.Set, error) {
		req := s.request
		if req.RequestResource.Resource == "namespaces" && req.RequestSubResource == "" &&
			(req.Operation == admission.Create || req.Operation == admission.Update) {
			if req.Object == nil {
				_, err := meta.Accessor(nil)
				return nil, err
			}
			return s.objectLabels().object, nil
		}
		namespace, err := s.view.Namespace(ctx, req.Namespace)
		if err != nil {
			return nil, err
		}
		return namespace.Labels, nil
	})
}

// objectLabels are the labels of the objects of a request, which unstructured
// objects copy each time they are asked.
type objectLabels struct {
	object, oldObject labels.Set
	// selectable says of which objects there are labels at all.
	selectable struct{ object, oldObject bool }
}

func (s *Subject) objectLabels() objectLabels {
	sets, _ := s.objects.find(func() (objectLabels, error) {
		var sets objectLabels
		if s.request.Object != nil {
			sets.object, sets.selectable.object = s.request.Object.GetLabels(), s.hasMetadata(s.request.Object)
		}
		if s.request.OldObject != nil {
			sets.oldObject, sets.selectable.oldObject = s.request.OldObject.GetLabels(), s.hasMetadata(s.request.OldObject)
		}
		return sets, nil
	})
	return sets
}

// hasMetadata is false for the options of a request to connect, such as
// PodExecOptions. In kube-apiserver no selector selects them, not even one for labels
// that are absent; see matchObject of
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object.
func (s *Subject) hasMetadata(object *unstructured.Unstructured) bool {
	return s.request.Operation != admission.Connect || object.Object["metadata"] != nil
}

// original is the request as its client has sent it.
func (s *Subject) original() cluster.Equivalent {
	return cluster.Equivalent{Resource: s.request.RequestResource, Kind: s.request.RequestKind}
}

// equivalents returns the other resources that serve the objects of the request.
// The resource to which the API server has converted them for a webhook is one of
// them, whether the view knows that or not.
func (s *Subject) equivalents() []cluster.Equivalent {
	others, _ := s.others.find(func() ([]cluster.Equivalent, error) {
		req := s.request
		known := s.view.Equivalents(req.RequestResource, req.RequestSubResource)
		if req.Resource == req.RequestResource || req.Resource.Empty() {
			return known, nil
		}
		converted := cluster.Equivalent{Resource: req.Resource, Kind: req.Kind}
		i := slices.IndexFunc(known, func(e cluster.Equivalent) bool { return e.Resource == converted.Resource })
		if i >= 0 && !known[i].Kind.Empty() {
			return known, nil
		}
		all := slices.Clone(known)
		if i >= 0 {
			all[i] = converted
			return all, nil
		}
		return append(all, converted), nil
	})
	return others
}

// selected says whether a selector selects the labels that it is asked about.
func (s *Subject) selected(by *parsed, namespace bool, ask func() bool) bool {
	if !by.large {
		return ask()
	}
	q := question{by, namespace}
	answer, ok := s.answers[q]
	if !ok {
		answer = ask()
		if s.answers == nil {
			s.answers = map[question]bool{}
		}
		s.answers[q] = answer
	}
	return answer
}
