// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// review wraps a verdict for the API server that asked, with the patch that leads from
// the object of the request to that of the verdict.
func review(req *request.Request, answer *verdict.Verdict) (*admissionv1.AdmissionReview, error) {
	changes, err := jsonPatch(req, answer)
	if err != nil {
		return nil, err
	}
	out := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{
			UID:              req.UID,
			Allowed:          answer.Allowed,
			Result:           answer.ReviewStatus(),
			Warnings:         answer.Warnings,
			AuditAnnotations: auditAnnotations(answer.AuditAnnotations),
		},
	}
	if changes != nil {
		kind := admissionv1.PatchTypeJSONPatch
		out.Response.Patch, out.Response.PatchType = changes, &kind
	}
	return out, nil
}

// jsonPatch returns nil when nothing has changed, or nobody gets what has.
func jsonPatch(req *request.Request, answer *verdict.Verdict) ([]byte, error) {
	if !answer.Allowed || answer.Object == nil || req.Object == nil {
		return nil, nil
	}
	operations := patch.Diff(req.Object.Object, answer.Object.Object)
	if len(operations) == 0 {
		return nil, nil
	}
	changes, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode what policies have changed: %w", err)
	}
	return changes, nil
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
