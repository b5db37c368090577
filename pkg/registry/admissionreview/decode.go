// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// question is an AdmissionReview whose objects are decoded with it.
type question struct {
	metav1.TypeMeta `json:",inline"`

	Request *request.Review `json:"request,omitempty"`
	// Response must be one where there is one, and is not looked at.
	Response *admissionv1.AdmissionResponse `json:"response,omitempty"`
}

// decode returns the request of a review.
func decode(body []byte) (*request.Request, error) {
	var in question
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		return nil, explain(err)
	}
	if want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"); in.GroupVersionKind() != want {
		return nil, fmt.Errorf("apiVersion %q and kind %q: only %s AdmissionReview is judged; register the webhook with admissionReviewVersions: [%s]",
			in.APIVersion, in.Kind, want.GroupVersion(), want.Version)
	}
	if in.Request == nil {
		return nil, errors.New("request: required: say which request to judge")
	}
	return request.FromReview(in.Request)
}

// explain says in terms of the review, and not of Go, what could not be decoded.
func explain(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		field := wrongType.Field
		if field == "" {
			field = "the body"
		}
		return fmt.Errorf("%s: found JSON %s, want %s", field, wrongType.Value, jsonType(wrongType.Type))
	}
	isSyntax, offset := kjson.SyntaxErrorOffset(err)
	switch {
	case !isSyntax:
		return err
	case strings.HasSuffix(err.Error(), "exceeded max depth"): // the decoder has no type for it
		return fmt.Errorf("nested more than 10000 levels deep at byte %d: flatten the object", offset)
	default:
		return fmt.Errorf("not JSON at byte %d: %w", offset, err)
	}
}

func jsonType(goType reflect.Type) string {
	switch goType.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		return "array"
	case reflect.Bool:
		return "bool"
	default:
		return goType.Kind().String()
	}
}
