// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// review wraps a verdict for the API server that asked.
func review(req *request.Request, answer *verdict.Verdict) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{
			UID:              req.UID,
			Allowed:          answer.Allowed,
			Result:           answer.ReviewStatus(),
			Warnings:         answer.Warnings,
			AuditAnnotations: auditAnnotations(answer.AuditAnnotations),
		},
	}
}

// maxKeyBytes is the longest name part of a qualified name.
const maxKeyBytes = 63

// auditAnnotations renames keys to what an API server takes from a webhook: it
// puts "<webhook>/" in front and drops a key that holds a second slash or whose
// name part is too long.
func auditAnnotations(in map[string]string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for key, value := range in {
		out[annotationKey(key)] = value
	}
	return out
}

func annotationKey(key string) string {
	name := strings.ReplaceAll(key, "/", ".")
	if len(name) <= maxKeyBytes {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return name[:maxKeyBytes-len(suffix)] + suffix
}
