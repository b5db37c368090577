// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// Exempt says that no policy may judge the request, so that nobody can lock
// themselves out and the cluster can always authenticate and authorize. Exempt
// are
//   - our own API group,
//   - the CEL policies and bindings of kube-apiserver: admissionResources in
//     k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go,
//   - reviews that are never stored: Excluded in
//     k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion.
//
// All versions and subresources are treated the same. Webhook configurations
// are not exempt: CEL policies judge them in kube-apiserver too.
func Exempt(req *request.Request) bool {
	resource := req.RequestResource.Resource
	switch req.RequestResource.Group {
	case policy.GroupName:
		return true
	case "admissionregistration.k8s.io":
		switch resource {
		case "validatingadmissionpolicies", "validatingadmissionpolicybindings",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings":
			return true
		}
	case "authentication.k8s.io":
		switch resource {
		case "selfsubjectreviews", "tokenreviews":
			return true
		}
	case "authorization.k8s.io":
		switch resource {
		case "localsubjectaccessreviews", "selfsubjectaccessreviews",
			"selfsubjectrulesreviews", "subjectaccessreviews":
			return true
		}
	}
	return false
}
