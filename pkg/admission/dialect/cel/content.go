// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What follows is data as JSON has it, for nothing but to measure it.

// requestContent returns what expressions can find in a request.
func requestContent(req *admissionv1.AdmissionRequest) any {
	extra := make(map[string]any, len(req.UserInfo.Extra))
	for key, values := range req.UserInfo.Extra {
		extra[key] = texts(values)
	}
	// One for all kinds and resources, as long as any of them.
	named := map[string]any{
		"group":    longest(req.Kind.Group, req.Resource.Group, req.RequestKind.Group, req.RequestResource.Group),
		"version":  longest(req.Kind.Version, req.Resource.Version, req.RequestKind.Version, req.RequestResource.Version),
		"resource": longest(req.Kind.Kind, req.Resource.Resource, req.RequestKind.Kind, req.RequestResource.Resource),
	}
	content := map[string]any{
		"kind": named, "resource": named, "requestKind": named, "requestResource": named,
		"subResource":        req.SubResource,
		"requestSubResource": req.RequestSubResource,
		"name":               req.Name,
		"namespace":          req.Namespace,
		"operation":          string(req.Operation),
		"dryRun":             true,
		"userInfo": map[string]any{
			"username": req.UserInfo.Username, "uid": req.UserInfo.UID,
			"groups": texts(req.UserInfo.Groups), "extra": extra,
		},
	}
	switch options := req.Options.Object.(type) {
	case nil:
	case *unstructured.Unstructured:
		content["options"] = options.Object
	default:
		content["options"] = options // cannot be measured
	}
	return content
}

// namespaceContent returns what expressions can find in a Namespace, or what cannot
// be measured.
func namespaceContent(namespace *corev1.Namespace) any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(namespace)
	if err != nil {
		return err
	}
	return content
}

func texts(list []string) []any {
	content := make([]any, len(list))
	for i := range list {
		content[i] = list[i]
	}
	return content
}

func longest(list ...string) string {
	return slices.MaxFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}
