// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// frame holds what expressions see of a request. One evaluation uses it at a time,
// and another after it: the values of the request and of the Namespace keep what
// has been looked up in them, which is not safe for concurrent use.
type frame struct {
	version  *version
	resource schema.GroupVersionResource

	request, originalRequest ref.Val // nil until someone looks
	namespace                namespaceValues
	parts                    objectParts // of its objects
	sizes                    bound.Sizes // of all but params and the Namespace
	evaluation               evaluation  // what the last one has left, to be used again
}

// requestAs returns the request with the resource that request.resource names. See
// CreateAdmissionRequest in k8s.io/apiserver/pkg/admission/plugin/cel.
func (f *frame) requestAs(resource schema.GroupVersionResource) ref.Val {
	value := &f.request
	if resource != f.resource {
		value = &f.originalRequest
	}
	if *value == nil {
		attributes := f.version.attributes
		*value = common.SchemalessTypedToVal(plugincel.CreateAdmissionRequest(attributes.Attributes,
			metav1.GroupVersionResource(resource), metav1.GroupVersionKind(attributes.VersionedKind)))
	}
	return *value
}

// namespaceValues are those of a Namespace, or null ones.
type namespaceValues struct {
	of         *corev1.Namespace
	whole, cut ref.Val // nil until someone looks
}

// set says which Namespace is meant.
func (n *namespaceValues) set(namespace *corev1.Namespace) {
	if n.of != namespace {
		*n = namespaceValues{of: namespace}
	}
}

// value returns what expressions see as namespaceObject. Those of audit annotations
// see the whole; others see what CreateNamespaceObject in
// k8s.io/apiserver/pkg/admission/plugin/cel leaves of it.
func (n *namespaceValues) value(whole bool) ref.Val {
	switch {
	case whole && n.whole == nil:
		n.whole = common.SchemalessTypedToVal(n.of)
	case !whole && n.cut == nil:
		n.cut = common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(n.of))
	}
	if whole {
		return n.whole
	}
	return n.cut
}
