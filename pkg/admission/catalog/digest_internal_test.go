// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// TestDigest: of a stored kind, the spec counts and the status does not.
func TestDigest(t *testing.T) {
	p := &policyapi.ValidatingAdmissionPolicy{}
	reported, changed := p.DeepCopy(), p.DeepCopy()
	reported.Status.ObservedGeneration = 2
	changed.Spec.Variables = []admissionregistrationv1.Variable{{Name: "v", Expression: "1"}}
	b := &policyapi.ValidatingAdmissionPolicyBinding{}
	bound := b.DeepCopy()
	bound.Spec.PolicyName = "p"
	for _, test := range []struct {
		name string
		a, b runtime.Object
		same bool
	}{
		{"a status", p, reported, true},
		{"a spec", p, changed, false},
		{"a binding", b, bound, false},
	} {
		if got := digestOf(test.a) == digestOf(test.b); got != test.same || !digestOf(test.a).known() {
			t.Errorf("%s: the same is %t, want %t", test.name, got, test.same)
		}
	}
	for _, spec := range []any{math.NaN(), make(chan int)} { // the second one panics when it is copied
		if digestOf(&unstructured.Unstructured{Object: map[string]any{"spec": spec}}).known() {
			t.Errorf("%T, which is no JSON, has a digest", spec)
		}
	}
}
