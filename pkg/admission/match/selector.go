// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// selector is a label selector, or the reason why it cannot be used.
type selector struct {
	labels labels.Selector
	err    error
}

func everything() selector { return selector{labels: labels.Everything()} }

// compileSelector parses source. Only an object without defaults has no
// selector; that is an error, with the text of
// k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_matcher.go.
func compileSelector(name string, source *metav1.LabelSelector) selector {
	if source == nil {
		return selector{err: fmt.Errorf("a nil %s selector was passed, please ensure selectors are initialized properly", name)}
	}
	parsed, err := metav1.LabelSelectorAsSelector(source)
	return selector{labels: parsed, err: err}
}

// matchesNamespace follows MatchNamespaceSelector of
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace.
func (s selector) matchesNamespace(ctx context.Context, req *request.Request, view cluster.View) (bool, error) {
	if req.Namespace == "" && req.RequestResource.Resource != "namespaces" {
		return true, nil // no namespaceSelector exempts cluster-scoped objects
	}
	if s.err != nil {
		return false, apierrors.NewInternalError(s.err)
	}
	if s.labels.Empty() {
		return true, nil
	}
	set, err := namespaceLabels(ctx, req, view)
	if err == nil {
		return s.labels.Matches(set), nil
	}
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		return false, &apierrors.StatusError{ErrStatus: status.Status()}
	}
	return false, apierrors.NewInternalError(err)
}

// namespaceLabels returns the labels that the namespace of the request has, or
// will have when the request itself writes it.
func namespaceLabels(ctx context.Context, req *request.Request, view cluster.View) (labels.Set, error) {
	if req.RequestResource.Resource == "namespaces" && req.RequestSubResource == "" &&
		(req.Operation == admission.Create || req.Operation == admission.Update) {
		if req.Object == nil {
			_, err := meta.Accessor(nil)
			return nil, err
		}
		sets, err := labelsOf(req)
		return sets.object, err
	}
	namespace, err := view.Namespace(ctx, req.Namespace)
	if err != nil {
		return nil, err
	}
	return namespace.Labels, nil
}

// matchesObjects says whether the object or the old object is selected. It
// follows MatchObjectSelector of
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object.
func (s selector) matchesObjects(req *request.Request) (bool, error) {
	if s.err != nil {
		return false, apierrors.NewInternalError(s.err)
	}
	if s.labels.Empty() {
		return true, nil
	}
	sets, err := labelsOf(req)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return req.Object != nil && s.labels.Matches(sets.object) ||
		req.OldObject != nil && s.labels.Matches(sets.oldObject), nil
}

// objectLabels are the labels of the objects of a request, which unstructured
// objects copy each time they are asked.
type objectLabels struct{ object, oldObject labels.Set }

var labelsKey = request.NewKey[objectLabels]("match.objectLabels")

func labelsOf(req *request.Request) (objectLabels, error) {
	return request.Derive(req, labelsKey, func(req *request.Request) (objectLabels, error) {
		var sets objectLabels
		if req.Object != nil {
			sets.object = req.Object.GetLabels()
		}
		if req.OldObject != nil {
			sets.oldObject = req.OldObject.GetLabels()
		}
		return sets, nil
	})
}
