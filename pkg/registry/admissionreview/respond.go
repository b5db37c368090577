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

const (
	// maxKeyBytes is the longest name part of a qualified name.
	maxKeyBytes = 63
	hashBytes   = 10
)

// auditAnnotations renames keys to what an API server takes from a webhook: it
// puts "<webhook>/" in front and drops a key that holds a second slash or whose
// name part is too long. Distinct keys stay distinct.
func auditAnnotations(in map[string]string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	sharing := make(map[string]int, len(in))
	for key := range in {
		sharing[plainName(key)]++
	}
	out := make(map[string]string, len(in))
	for key, value := range in {
		name := plainName(key)
		if len(name) > maxKeyBytes || sharing[name] > 1 {
			name = hashedName(key)
		}
		out[name] = value
	}
	return out
}

func plainName(key string) string { return strings.ReplaceAll(key, "/", ".") }

// hashedName cuts the name and tells it from others by a hash of the key.
func hashedName(key string) string {
	sum := sha256.Sum256([]byte(key))
	suffix := "-" + hex.EncodeToString(sum[:hashBytes])
	name := plainName(key)
	return name[:min(len(name), maxKeyBytes-len(suffix))] + suffix
}
