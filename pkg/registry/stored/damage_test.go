// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// by is the context of a request with a verb.
func by(t *testing.T, verb string) context.Context {
	t.Helper()
	return genericapirequest.WithRequestInfo(t.Context(), &genericapirequest.RequestInfo{Verb: verb})
}

// TestWritesOverDamage: what is shown of a damaged object is never stored as if
// it were the whole, and the mark is never taken from a client.
func TestWritesOverDamage(t *testing.T) {
	kind := validatingAdmissionPolicies()
	read, _ := newSalvager(t, kind).read(t, "p", change(wholePolicy, "v1alpha1", "v9"))
	writes := strategy{kind: kind}
	old, ok := read.(*policy.ValidatingAdmissionPolicy)
	if !ok {
		t.Fatalf("got a %T", read)
	}

	mend := func(p *policy.ValidatingAdmissionPolicy) {
		p.Annotations = nil
		p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "true"}}
	}
	for name, test := range map[string]struct {
		ctx   context.Context
		write func(*policy.ValidatingAdmissionPolicy)
	}{
		"a change of labels":          {by(t, "update"), func(p *policy.ValidatingAdmissionPolicy) { p.Labels = map[string]string{"c": "d"} }},
		"what is shown":               {by(t, "update"), func(p *policy.ValidatingAdmissionPolicy) { p.Annotations = nil }},
		"a change of what is shown":   {by(t, "update"), func(p *policy.ValidatingAdmissionPolicy) { mend(p); p.Annotations = old.Annotations }},
		"a patch":                     {by(t, "patch"), mend},
		"a write of nobody knows who": {t.Context(), mend},
	} {
		written := old.DeepCopy()
		test.write(written)
		writes.PrepareForUpdate(test.ctx, written, old)
		errs := writes.ValidateUpdate(test.ctx, written, old)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "replace the whole object (kubectl replace) or delete it") {
			t.Errorf("%s: %v", name, errs)
		}
	}

	reported := old.DeepCopy()
	reported.Status.Conditions = nil
	statusStrategy{writes}.PrepareForUpdate(t.Context(), reported, old)
	if errs := (statusStrategy{writes}).ValidateUpdate(t.Context(), reported, old); len(errs) != 1 {
		t.Errorf("a write of the status: %v", errs)
	}

	repaired := old.DeepCopy()
	mend(repaired)
	writes.PrepareForUpdate(by(t, "update"), repaired, old)
	if errs := writes.ValidateUpdate(by(t, "update"), repaired, old); len(errs) != 0 {
		t.Errorf("a repair: %v", errs)
	}
	if Damage(repaired) != nil || repaired.Annotations != nil || repaired.Status.Conditions != nil || repaired.Generation != 4 || repaired.UID != "u" {
		t.Errorf("repaired is %+v", repaired)
	}

	forged := policyWith(1, "true", 0, "")
	forged.Annotations = map[string]string{UndecodableAnnotation: "x", "a": "b"}
	writes.PrepareForCreate(t.Context(), forged)
	if Damage(forged) != nil || forged.Annotations["a"] != "b" {
		t.Errorf("created with annotations %v", forged.Annotations)
	}
	forged.Annotations[UndecodableAnnotation] = "x"
	writes.PrepareForUpdate(t.Context(), forged, policyWith(1, "true", 0, ""))
	if Damage(forged) != nil {
		t.Errorf("updated with annotations %v", forged.Annotations)
	}
}
