// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// configMapPolicy has validations that read fields of ConfigMaps.
func configMapPolicy(fields ...string) *policyapi.ValidatingAdmissionPolicy {
	p := &policyapi.ValidatingAdmissionPolicy{}
	p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
		}},
	}}}
	for _, field := range fields {
		p.Spec.Validations = append(p.Spec.Validations, admissionregistrationv1.Validation{Expression: "object." + field + " == {}"})
	}
	return p
}

func TestTypeWarnings(t *testing.T) {
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	types := newTypes(func() cluster.View { return view })
	if got := types.warnings(t.Context(), configMapPolicy("data")); len(got) != 0 {
		t.Errorf("a policy that fits: %q", got)
	}
	got := types.warnings(t.Context(), configMapPolicy("data", "dota", strings.Repeat("x", 500)))
	if want := "spec.validations[1].expression: /v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'dota'"; len(got) != 2 || got[0] != want {
		t.Errorf("two wrong fields: %q, want %q first", got, want)
	}
	if len(got[1]) != maxWarningBytes || !strings.HasSuffix(got[1], "xxx ...") {
		t.Errorf("a long warning has %d bytes: %q", len(got[1]), got[1])
	}

	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("x%d", i))
	}
	got = types.warnings(t.Context(), configMapPolicy(many...))
	if want := "20 more warnings on types: see the condition TypeChecked of the stored policy"; len(got) != maxWarnings+1 || got[maxWarnings] != want {
		t.Errorf("30 wrong fields: %q, want %q last", got, want)
	}
}

// TestTypeWarningsWithoutTime: a write does not wait for other writes, nor for ever.
func TestTypeWarningsWithoutTime(t *testing.T) {
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	types := newTypes(func() cluster.View { return view })
	for range warningChecks {
		types.turns <- struct{}{}
	}
	const want = "[types are not checked within 250ms: see status.typeChecking and the condition TypeChecked of the stored policy]"
	if got := fmt.Sprint(types.warnings(t.Context(), configMapPolicy("dota"))); got != want {
		t.Errorf("all turns are taken: %s, want %s", got, want)
	}
	<-types.turns
	if got := fmt.Sprint(types.warnings(t.Context(), configMapPolicy("dota", strings.Repeat("x", warningWork)))); got != want {
		t.Errorf("a very long expression: %s, want %s", got, want)
	}
	ended, end := context.WithTimeout(t.Context(), 0)
	defer end()
	if got := fmt.Sprint(types.warnings(ended, configMapPolicy("dota"))); got != want {
		t.Errorf("the request is out of time: %s, want %s", got, want)
	}
	if got := len(types.warnings(t.Context(), configMapPolicy("dota"))); got != 1 || len(types.turns) != warningChecks-1 {
		t.Errorf("%d warnings and %d turns afterwards", got, len(types.turns))
	}
}
