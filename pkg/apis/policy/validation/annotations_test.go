// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateAuditAnnotations(t *testing.T) {
	type annotation = admissionregistrationv1.AuditAnnotation
	const path = "spec.auditAnnotations[0].valueExpression"
	numbered := func(count int) []annotation {
		annotations := make([]annotation, 0, count)
		for i := range count {
			annotations = append(annotations, annotation{Key: fmt.Sprintf("k%d", i), ValueExpression: "'a'"})
		}
		return annotations
	}
	var printed []string
	for i := range 21 {
		printed = append(printed, fmt.Sprintf(`{"Key":"k%d","ValueExpression":"'a'"}`, i))
	}
	literal := func(bytes int) string { return "'" + strings.Repeat("a", bytes-2) + "'" }
	tests := []struct {
		name        string
		policyName  string
		annotations []annotation
		want        []string
	}{
		{name: "string and null", annotations: []annotation{{Key: "a", ValueExpression: "string(object.x)"}, {Key: "b", ValueExpression: "null"}}},
		{name: "not a string", annotations: []annotation{{Key: "a", ValueExpression: " true"}}, want: []string{
			path + `: Invalid value: " true": must evaluate to one of [string null_type] but got bool`,
		}},
		{name: "columns do not count white space", annotations: []annotation{{Key: "a", ValueExpression: "  'x"}}, want: []string{
			path + ": Invalid value: \"  'x\": compilation failed: ERROR: <input>:1:1: Syntax error: token recognition error at: ''x'\n | 'x\n | ^" +
				"\nERROR: <input>:1:3: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 'x\n | ..^",
		}},
		{name: "blank", annotations: []annotation{{Key: "a", ValueExpression: " "}}, want: []string{
			path + `: Required value: valueExpression is not specified`,
		}},
		{name: "longest expression", annotations: []annotation{{Key: "a", ValueExpression: " " + literal(5120) + " "}}},
		{name: "expression too long", annotations: []annotation{{Key: "a", ValueExpression: literal(5121)}}, want: []string{
			path + `: Required value: must not exceed 5120 bytes in length`,
		}},
		{name: "key", annotations: []annotation{{Key: "a b", ValueExpression: "'b'"}}, want: []string{
			`spec.auditAnnotations[0].key: Invalid value: "replicas.example.com/a b": ` + qualifiedName,
		}},
		{name: "no key", annotations: []annotation{{ValueExpression: "'b'"}}, want: []string{
			`spec.auditAnnotations[0].key: Invalid value: "replicas.example.com/": name part must be non-empty`,
			`spec.auditAnnotations[0].key: Invalid value: "replicas.example.com/": ` + qualifiedName,
		}},
		{name: "key too long", annotations: []annotation{{Key: strings.Repeat("k", 64), ValueExpression: "'b'"}}, want: []string{
			`spec.auditAnnotations[0].key: Invalid value: "replicas.example.com/` + strings.Repeat("k", 64) + `": name part must be no more than 63 bytes`,
		}},
		{name: "key twice", annotations: []annotation{{Key: "a", ValueExpression: "'b'"}, {Key: "a", ValueExpression: "'b'"}}, want: []string{
			`spec.auditAnnotations[1].key: Duplicate value: "a"`,
		}},
		{name: "policy name", policyName: "no!", annotations: []annotation{{Key: "a", ValueExpression: "'b'"}}, want: []string{
			`metadata.name: Invalid value: "no!": ` + dns1123Subdomain,
			`spec.auditAnnotations[0].key: Invalid value: "no!/a": prefix part ` + dns1123Subdomain,
		}},
		{name: "20", annotations: numbered(20)},
		{name: "21", annotations: numbered(21), want: []string{
			`spec.auditAnnotations: Invalid value: [` + strings.Join(printed, ",") + `]: must not have more than 20 auditAnnotations`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) { s.AuditAnnotations = test.annotations })
			if test.policyName != "" {
				p.Name = test.policyName
			}
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestValidateAuditAnnotationsWithoutPolicyName(t *testing.T) {
	p := validPolicy(func(s *policySpec) {
		s.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "'b'"}}
	})
	p.ObjectMeta = metav1.ObjectMeta{}
	expectErrors(t, ValidateValidatingAdmissionPolicy(p), []string{
		`metadata.name: Required value: name or generateName is required`,
		`spec.auditAnnotations[0].key: Invalid value: "a": requires metadata.name be non-empty`,
	})
}
