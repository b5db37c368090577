// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// attributesKey names the attributes of a request as upstream's evaluators take
// them, shared by all CEL policies.
var attributesKey = request.NewKey[*attributes]("cel attributes")

// attributes holds a request in the kinds in which policies have matched it.
type attributes struct {
	original admission.Attributes

	mu       sync.Mutex
	versions map[schema.GroupVersionKind]*admission.VersionedAttributes
}

// versionedAttributes returns the request with its objects in the kind under
// which the policy has matched.
func versionedAttributes(in policy.Input) (*admission.VersionedAttributes, error) {
	shared, err := request.Derive(in.Request, attributesKey, newAttributes)
	if err != nil {
		return nil, err
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	versioned, ok := shared.versions[in.Matched.Kind]
	if !ok {
		if versioned, err = shared.convert(in); err != nil {
			return nil, err
		}
		shared.versions[in.Matched.Kind] = versioned
	}
	// Upstream's evaluators write to what they are given.
	own := *versioned
	return &own, nil
}

func newAttributes(req *request.Request) (*attributes, error) {
	return &attributes{
		original: req.Attributes(),
		versions: map[schema.GroupVersionKind]*admission.VersionedAttributes{},
	}, nil
}

func (a *attributes) convert(in policy.Input) (*admission.VersionedAttributes, error) {
	object, err := inKind(in, in.Request.Object)
	if err != nil {
		return nil, err
	}
	oldObject, err := inKind(in, in.Request.OldObject)
	if err != nil {
		return nil, err
	}
	versioned := &admission.VersionedAttributes{
		Attributes:         a.original,
		VersionedKind:      in.Matched.Kind,
		VersionedObject:    admission.NewLazyObject(object),
		VersionedOldObject: admission.NewLazyObject(oldObject),
	}
	// The CEL values are cached on first use, which is not safe for concurrent
	// use: this is the first use.
	if _, err := versioned.VersionedObject.CELValue(); err != nil {
		return nil, err
	}
	if _, err := versioned.VersionedOldObject.CELValue(); err != nil {
		return nil, err
	}
	return versioned, nil
}

// inKind returns obj in the kind under which the policy has matched. An object
// of a kind that the request does not declare (the body of a CONNECT, say) is
// taken as it is.
func inKind(in policy.Input, obj *unstructured.Unstructured) (runtime.Object, error) {
	if obj == nil {
		return nil, nil //nolint:nilnil // no object, and that is no error
	}
	if in.Matched.Kind == in.Request.Kind {
		return obj, nil
	}
	return in.View.Convert(obj, in.Matched.Kind)
}
