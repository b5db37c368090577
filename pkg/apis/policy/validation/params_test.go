// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateParamKind(t *testing.T) {
	const path = "spec.paramKind"
	tests := []struct {
		name             string
		apiVersion, kind string
		want             []string
	}{
		{name: "core", apiVersion: "v1", kind: "ConfigMap"},
		{name: "custom", apiVersion: "rules.example.com/v1alpha1", kind: "ReplicaLimit"},
		{name: "empty", want: []string{path + `.apiVersion: Required value`, path + `.kind: Required value`}},
		{name: "slash", apiVersion: "/", kind: "A", want: []string{path + `.apiVersion: Invalid value: "/": version must be specified`}},
		{name: "no version", apiVersion: "a.b/", kind: "A", want: []string{path + `.apiVersion: Invalid value: "a.b/": version must be specified`}},
		{name: "group alone", apiVersion: "test.example.com", kind: "A", want: []string{path + `.apiVersion: Invalid value: "test.example.com": ` + dns1035Label}},
		{name: "two slashes", apiVersion: "a/b/c", kind: "A", want: []string{path + `.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`}},
		{name: "group and version", apiVersion: "Bad_Group/!!!", kind: "A", want: []string{
			path + `.apiVersion: Invalid value: "Bad_Group": ` + dns1123Subdomain,
			path + `.apiVersion: Invalid value: "!!!": ` + dns1035Label,
		}},
		{name: "kind", apiVersion: "v1", kind: "Bad Kind", want: []string{
			path + `.kind: Invalid value: "Bad Kind": may have mixed case, but should otherwise match: ` + dns1035Label,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) {
				s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: test.apiVersion, Kind: test.kind}
			})
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestParamKindDeclaresParams(t *testing.T) {
	p := validPolicy(withParams, func(s *policySpec) {
		s.Variables = []admissionregistrationv1.Variable{{Name: "limit", Expression: "params.data.limit"}}
		s.Validations = []admissionregistrationv1.Validation{{Expression: "params == null", MessageExpression: "string(params.data.a)"}}
		s.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "string(params.data.a)"}}
	})
	expectErrors(t, ValidateValidatingAdmissionPolicy(p), nil)
}

func TestValidateParamRef(t *testing.T) {
	type ref = admissionregistrationv1.ParamRef
	const path = "spec.paramRef"
	allow := new(admissionregistrationv1.AllowAction)
	tests := []struct {
		name string
		ref  ref
		want []string
	}{
		{name: "name", ref: ref{Name: "a", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)}},
		{name: "every object", ref: ref{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: allow}},
		{name: "namespaces are not looked at", ref: ref{Name: "a", Namespace: "No!", ParameterNotFoundAction: allow}},
		{name: "empty", want: []string{
			path + `: Required value: one of name or selector must be specified`,
			path + `.parameterNotFoundAction: Required value`,
		}},
		{name: "both", ref: ref{Name: "a/b", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "!"}}, ParameterNotFoundAction: allow}, want: []string{
			path + `.name: Invalid value: "a/b": may not contain '/'`,
			path + `.name: Forbidden: name and selector are mutually exclusive`,
			path + `.selector.matchLabels: Invalid value: "!": ` + labelValue,
			path + `.selector: Forbidden: name and selector are mutually exclusive`,
		}},
		{name: "empty action", ref: ref{Name: "a", ParameterNotFoundAction: new(admissionregistrationv1.ParameterNotFoundActionType(""))}, want: []string{
			path + `.parameterNotFoundAction: Required value`,
		}},
		{name: "unknown action", ref: ref{Name: "a", ParameterNotFoundAction: new(admissionregistrationv1.ParameterNotFoundActionType("Ignore"))}, want: []string{
			path + `.parameterNotFoundAction: Unsupported value: "Ignore": supported values: "Deny", "Allow"`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := validBinding(func(s *bindingSpec) { s.ParamRef = &test.ref })
			expectErrors(t, ValidateValidatingAdmissionPolicyBinding(b), test.want)
		})
	}
}
