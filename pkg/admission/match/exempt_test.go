// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

func TestExempt(t *testing.T) {
	for resource, want := range map[schema.GroupResource]bool{
		{Group: "policy.portcullis.dev", Resource: "validatingadmissionpolicies"}:              true,
		{Group: "policy.portcullis.dev", Resource: "whatevercomesnext"}:                        true,
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       true,
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: true,
		{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         true,
		{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   true,
		{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:                       true,
		{Group: "authentication.k8s.io", Resource: "tokenreviews"}:                             true,
		{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}:                 true,
		{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:                  true,
		{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:                   true,
		{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:                      true,

		{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}: false,
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:   false,
		{Group: "authentication.k8s.io", Resource: "others"}:                                 false,
		{Group: "authorization.k8s.io", Resource: "others"}:                                  false,
		{Group: "", Resource: "tokenreviews"}:                                                false,
		{Group: "", Resource: "pods"}:                                                        false,
		{Group: "policy", Resource: "poddisruptionbudgets"}:                                  false,
	} {
		for _, subresource := range []string{"", "status"} {
			req := request.New(request.Fields{
				RequestResource: resource.WithVersion("v7"), RequestSubResource: subresource,
				Resource: schema.GroupVersionResource{Group: "converted", Resource: "converteds"},
			})
			if got := match.Exempt(req); got != want {
				t.Errorf("%v/%s: got %v, want %v", resource, subresource, got, want)
			}
		}
	}
}
