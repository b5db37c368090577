// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
)

// newScheme returns a scheme with every version of the API group, the reviews that are
// POSTed to two of its resources, and the meta types that a generic API server expects
// beside them.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the API group: %w", err)
	}
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", admissionv1.SchemeGroupVersion, err)
	}
	// The generic server wants an internal version of what a resource takes.
	scheme.AddKnownTypes(schema.GroupVersion{Group: admissionv1.GroupName, Version: runtime.APIVersionInternal}, &admissionv1.AdmissionReview{})
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
	return scheme, nil
}

// newCodecs returns the codecs of a scheme.
func newCodecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON())
}

// withoutProtobuf serves a group whose types have no protobuf form. A client that
// would rather have protobuf, and takes JSON too, is then answered in JSON
// instead of being refused.
type withoutProtobuf struct {
	runtime.NegotiatedSerializer
}

// SupportedMediaTypes returns JSON and YAML.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	all := s.NegotiatedSerializer.SupportedMediaTypes()
	supported := make([]runtime.SerializerInfo, 0, len(all))
	for _, info := range all {
		if info.MediaType != runtime.ContentTypeProtobuf {
			supported = append(supported, info)
		}
	}
	return supported
}
