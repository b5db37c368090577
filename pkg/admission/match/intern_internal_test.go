// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInternSelectors: selectors of different policies are one when they select the
// same by the same terms, in whatever order and for whatever they are used.
func TestInternSelectors(t *testing.T) {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	selecting := func(terms ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: terms}
	}
	var interner Interner
	compiled := func(namespaces, objects *metav1.LabelSelector) *Criteria {
		c := Compile(&admissionregistrationv1.MatchResources{NamespaceSelector: namespaces, ObjectSelector: objects})
		before := *c
		shared := interner.Criteria(c)
		if c.namespaces != before.namespaces || c.objects != before.objects {
			t.Error("the criteria were changed")
		}
		return shared
	}
	ab := compiled(selecting(in("app", "a", "b"), in("env", "prod")), &metav1.LabelSelector{})
	again := compiled(selecting(in("env", "prod"), in("app", "b", "a")), selecting(in("app", "a", "b"), in("env", "prod")))
	other := compiled(selecting(in("app", "a", "b")), nil)
	if ab.namespaces.parsed != again.namespaces.parsed || ab.namespaces.parsed != again.objects.parsed {
		t.Error("equal selectors are not one")
	}
	if ab.namespaces.parsed == other.namespaces.parsed {
		t.Error("different selectors are one")
	}
	if ab.objects.parsed != nil || other.objects.err == nil {
		t.Error("a selector of everything, or a missing one, has become another")
	}
	if interner.Criteria(nil) != nil {
		t.Error("no criteria have become some")
	}
}
