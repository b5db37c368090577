// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/validation"
)

// newDecoder returns a decoder that refuses unknown and duplicate fields, sets
// defaults and converts to the internal types.
func newDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(policy.SchemeGroupVersion())
}

func validate(object runtime.Object) (field.ErrorList, error) {
	switch object := object.(type) {
	case *policy.ValidatingAdmissionPolicy:
		return validation.ValidateValidatingAdmissionPolicy(object), nil
	case *policy.ValidatingAdmissionPolicyBinding:
		return validation.ValidateValidatingAdmissionPolicyBinding(object), nil
	case *policy.ClusterPolicy:
		return validation.ValidateClusterPolicy(object), nil
	default:
		return nil, fmt.Errorf("no validation for %T", object)
	}
}

func TestPoliciesDecodeAndAreValid(t *testing.T) {
	decoder := newDecoder(t)
	for _, ex := range mustLoadExamples(t) {
		t.Run(ex.name, func(t *testing.T) {
			for i, raw := range ex.policies {
				object, err := runtime.Decode(decoder, raw.Raw)
				if err != nil {
					t.Errorf("document %d: %v", i+1, err)
					continue
				}
				errs, err := validate(object)
				if err != nil || len(errs) > 0 {
					t.Errorf("document %d: %v", i+1, errors.Join(err, errs.ToAggregate()))
				}
			}
		})
	}
}

// A binding that names another policy would judge nothing, and its cases would
// show nothing.
func TestBindingsNamePoliciesOfTheirExample(t *testing.T) {
	for _, ex := range mustLoadExamples(t) {
		t.Run(ex.name, func(t *testing.T) {
			names := map[string]bool{}
			bound := map[string]bool{}
			for _, raw := range ex.policies {
				var object struct {
					metav1.TypeMeta   `json:",inline"`
					metav1.ObjectMeta `json:"metadata"`
					Spec              struct {
						PolicyName string `json:"policyName"`
					} `json:"spec"`
				}
				if err := json.Unmarshal(raw.Raw, &object); err != nil {
					t.Fatal(err)
				}
				if object.APIVersion != v1alpha1.SchemeGroupVersion.String() {
					t.Errorf("%s %s has apiVersion %s", object.Kind, object.Name, object.APIVersion)
				}
				switch {
				case object.Kind == clusterPolicyKind: // needs no binding
				case object.Spec.PolicyName != "":
					bound[object.Spec.PolicyName] = true
				default:
					names[object.Name] = true
				}
			}
			for name := range bound {
				if !names[name] {
					t.Errorf("a binding names %s, which is not in %s", name, policiesFile)
				}
			}
			for name := range names {
				if !bound[name] {
					t.Errorf("policy %s has no binding", name)
				}
			}
		})
	}
}

func TestRefusedObjectsAreNotValid(t *testing.T) {
	decoder := newDecoder(t)
	for _, ex := range mustLoadExamples(t) {
		for _, r := range ex.refusals {
			t.Run(ex.name+"/"+r.name, func(t *testing.T) {
				object, err := runtime.Decode(decoder, r.object)
				if r.want.Code == http.StatusBadRequest {
					if err == nil || !strings.Contains(err.Error(), r.want.Message) {
						t.Errorf("decoded with error %v, want %s", err, r.want.Message)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				errs, err := validate(object)
				if err != nil {
					t.Fatal(err)
				}
				if len(errs) == 0 {
					t.Fatal("is valid")
				}
				if message := errs.ToAggregate().Error(); !strings.Contains(message, r.want.Message) {
					t.Errorf("refused with:\n%s\nwant:\n%s", message, r.want.Message)
				}
			})
		}
	}
}
