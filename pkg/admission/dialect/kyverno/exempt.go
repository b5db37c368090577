// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// letsGoKey names whether a request lets go: all policies ask, and both of its objects
// may be large.
var letsGoKey = request.NewKey[bool]("kyverno lets go")

// letsGo says whether a request does nothing but take finalizers from an object. What
// rules would change beside that, the API server may refuse, of a Job for example, and
// the object would stay for ever.
func letsGo(req *request.Request) bool {
	lets, err := request.Derive(req, letsGoKey, func(req *request.Request) (bool, error) { return onlyDropsFinalizers(req), nil })
	return err == nil && lets
}

func onlyDropsFinalizers(req *request.Request) bool {
	if req.Operation != admission.Update || req.SubResource != "" || req.Object == nil || req.OldObject == nil {
		return false
	}
	left, had := req.Object.GetFinalizers(), req.OldObject.GetFinalizers()
	if len(left) >= len(had) || slices.ContainsFunc(left, func(name string) bool { return !slices.Contains(had, name) }) {
		return false
	}
	return patch.Equal(withoutFinalizers(req.OldObject), withoutFinalizers(req.Object))
}

// withoutFinalizers returns an object without these and what the API server writes by
// itself into the metadata of an object that exists.
func withoutFinalizers(object *unstructured.Unstructured) map[string]any {
	rest := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		rest[key] = value
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	kept := make(map[string]any, len(metadata))
	for key, value := range metadata {
		switch key {
		case "finalizers", "managedFields", "resourceVersion", "generation":
		default:
			kept[key] = value
		}
	}
	rest["metadata"] = kept
	return rest
}

const wouldBeMadeAgain = "it changes no template of a ReplicaSet that has a controller, which would make another one, without end: change what controls it"

// controlledReplicaSet says whether the object of a request is a ReplicaSet that
// something else controls: a Deployment, or a kind of its own. That compares its template
// with the one of the ReplicaSet. If they differ, it makes another ReplicaSet, and so on.
// Kyverno leaves all ReplicaSets alone, in the filters that it is installed with.
func controlledReplicaSet(req *request.Request) bool {
	return req.Kind.Group == "apps" && req.Kind.Kind == "ReplicaSet" && req.SubResource == "" &&
		req.Object != nil && metav1.GetControllerOfNoCopy(req.Object) != nil
}

// sameTemplate says whether a change leaves the template of an object as it was.
func sameTemplate(before, after map[string]any) bool {
	old, _, _ := unstructured.NestedFieldNoCopy(before, "spec", "template") // what is no map has none
	now, _, _ := unstructured.NestedFieldNoCopy(after, "spec", "template")
	return patch.Equal(old, now)
}
