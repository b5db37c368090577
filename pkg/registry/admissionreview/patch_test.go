// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestPatch: what policies have changed is answered as a JSON patch, unless nothing has
// changed or nobody gets it.
func TestPatch(t *testing.T) {
	changed := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n", "labels": map[string]any{"a/b": "c"}}}}
	same := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}}}
	tests := []struct {
		name   string
		answer verdict.Verdict
		want   string
	}{
		{name: "changed", answer: verdict.Verdict{Allowed: true, Object: changed}, want: `[{"op":"add","path":"/metadata/labels","value":{"a/b":"c"}}]`},
		{name: "nothing has changed", answer: verdict.Verdict{Allowed: true}},
		{name: "it is as it was", answer: verdict.Verdict{Allowed: true, Object: same}},
		{name: "denied", answer: verdict.Verdict{Object: changed}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := post(t, &judge{answer: test.answer}, strings.NewReader(fmt.Sprintf(envelope, valid)))
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d, %v: %s", w.Code, err, w.Body)
			}
			if got := string(review.Response.Patch); got != test.want {
				t.Errorf("got the patch %s, want %s", got, test.want)
			}
			if typed := review.Response.PatchType; (typed != nil) != (test.want != "") || typed != nil && *typed != admissionv1.PatchTypeJSONPatch {
				t.Errorf("got the type %v", typed)
			}
			if review.Response.Allowed != test.answer.Allowed {
				t.Errorf("allowed: %v", review.Response.Allowed)
			}
		})
	}
}
