// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// exempt says why no rule of any policy changes the object of a request, or nothing.
//
// A ReplicaSet that something else controls is compared by that with its own template,
// field for field: with another one than asked for, it is one too many, and the next is
// made, without end. Kyverno leaves all ReplicaSets alone, in the filters that it is
// installed with. An object that is being deleted is written to let it go. A change of it
// that the API server refuses would keep it for ever.
func exempt(req *request.Request) string {
	object := req.Object
	if object == nil {
		return ""
	}
	if req.Kind.Group == "apps" && req.Kind.Kind == "ReplicaSet" {
		if owner := metav1.GetControllerOf(object); owner != nil {
			return fmt.Sprintf("no rule changes a ReplicaSet that has a controller, here a %s: it would be made again and again. Change what controls it", owner.Kind)
		}
	}
	if req.Operation == admission.Update && object.GetDeletionTimestamp() != nil {
		return "no rule changes an object that is being deleted"
	}
	return ""
}
