// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateMatchConstraints(t *testing.T) {
	type match = admissionregistrationv1.MatchResources
	const path = "spec.matchConstraints"
	tests := []struct {
		name   string
		change func(*match)
		want   []string
	}{
		{name: "valid", change: func(*match) {}},
		{name: "exact", change: func(m *match) { m.MatchPolicy = new(admissionregistrationv1.Exact) }},
		{
			name:   "without defaults",
			change: func(m *match) { m.MatchPolicy, m.NamespaceSelector, m.ObjectSelector = nil, nil, nil },
			want: []string{
				path + `.matchPolicy: Required value`,
				path + `.namespaceSelector: Required value`,
				path + `.objectSelector: Required value`,
			},
		},
		{
			name:   "unknown match policy",
			change: func(m *match) { m.MatchPolicy = new(admissionregistrationv1.MatchPolicyType("Similar")) },
			want:   []string{path + `.matchPolicy: Unsupported value: "Similar": supported values: "Equivalent", "Exact"`},
		},
		{
			name: "selectors",
			change: func(m *match) {
				m.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "a", Operator: "Equals", Values: []string{"b"}},
					{Key: "a", Operator: metav1.LabelSelectorOpExists, Values: []string{"b"}},
				}}
				m.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}}
			},
			want: []string{
				path + `.namespaceSelector.matchExpressions[0].operator: Invalid value: "Equals": not a valid selector operator`,
				path + ".namespaceSelector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
				path + `.objectSelector.matchLabels: Invalid value: "b c": ` + labelValue,
			},
		},
		{
			name: "a label value that selectors of webhooks accept",
			change: func(m *match) {
				m.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"x y"}},
				}}
			},
			want: []string{path + `.objectSelector.matchExpressions[0].values[0]: Invalid value: "x y": ` + labelValue},
		},
		{
			name: "both lists of rules",
			change: func(m *match) {
				m.ResourceRules = append(m.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{})
				m.ExcludeResourceRules = []admissionregistrationv1.NamedRuleWithOperations{{}}
			},
			want: []string{
				path + `.resourceRules[1].operations: Required value`,
				path + `.resourceRules[1].apiGroups: Required value`,
				path + `.resourceRules[1].apiVersions: Required value`,
				path + `.resourceRules[1].resources: Required value`,
				path + `.excludeResourceRules[0].operations: Required value`,
				path + `.excludeResourceRules[0].apiGroups: Required value`,
				path + `.excludeResourceRules[0].apiVersions: Required value`,
				path + `.excludeResourceRules[0].resources: Required value`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) { test.change(s.MatchConstraints) })
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestValidateRule(t *testing.T) {
	type rule = admissionregistrationv1.NamedRuleWithOperations
	type operations = []admissionregistrationv1.OperationType
	const path = "spec.matchConstraints.resourceRules[0]"
	const supportedOperations = `supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`
	tests := []struct {
		name   string
		change func(*rule)
		want   []string
	}{
		{name: "names", change: func(r *rule) { r.ResourceNames = []string{"a", "system:b"} }},
		{
			name:   "names that are none",
			change: func(r *rule) { r.ResourceNames = []string{"a/b", "a%b", "..", "a", "a"} },
			want: []string{
				path + `.resourceNames[0]: Invalid value: "a/b": may not contain '/'`,
				path + `.resourceNames[1]: Invalid value: "a%b": may not contain '%'`,
				path + `.resourceNames[2]: Invalid value: "..": may not be '..'`,
				path + `.resourceNames[4]: Duplicate value: "a"`,
			},
		},
		{name: "all operations", change: func(r *rule) { r.Operations = operations{"*"} }},
		{name: "every operation", change: func(r *rule) { r.Operations = operations{"CREATE", "UPDATE", "DELETE", "CONNECT"} }},
		{
			name:   "unknown operations",
			change: func(r *rule) { r.Operations = operations{"PATCH", ""} },
			want: []string{
				path + `.operations[0]: Unsupported value: "PATCH": ` + supportedOperations,
				path + `.operations[1]: Unsupported value: "": ` + supportedOperations,
			},
		},
		{
			name:   "all operations and another",
			change: func(r *rule) { r.Operations = operations{"*", "CREATE"} },
			want:   []string{path + `.operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`},
		},
		{name: "core group", change: func(r *rule) { r.APIGroups = []string{""} }},
		{
			name:   "all groups and another",
			change: func(r *rule) { r.APIGroups = []string{"*", "apps"} },
			want:   []string{path + `.apiGroups: Invalid value: ["*","apps"]: if '*' is present, must not specify other API groups`},
		},
		{
			name:   "all versions and an empty one",
			change: func(r *rule) { r.APIVersions = []string{"*", ""} },
			want: []string{
				path + `.apiVersions: Invalid value: ["*",""]: if '*' is present, must not specify other API versions`,
				path + `.apiVersions[1]: Required value`,
			},
		},
		{name: "no scope", change: func(r *rule) { r.Scope = nil }},
		{
			name:   "unknown scope",
			change: func(r *rule) { r.Scope = new(admissionregistrationv1.ScopeType("")) },
			want:   []string{path + `.scope: Unsupported value: "": supported values: "*", "Cluster", "Namespaced"`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) { s.MatchConstraints = validMatch(validRule(test.change)) })
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestValidateResources(t *testing.T) {
	const path = "spec.matchConstraints.resourceRules[0].resources"
	tests := []struct {
		name      string
		resources []string
		want      []string
	}{
		{name: "all", resources: []string{"*"}},
		{name: "all with all subresources", resources: []string{"*/*"}},
		{name: "all and subresources", resources: []string{"*", "a/x", "b/*", "*/y"}},
		{name: "all subresources of a and a", resources: []string{"a/*", "a"}},
		{name: "the same twice", resources: []string{"a", "a"}},
		{name: "more than one slash", resources: []string{"a/b/c"}},
		{name: "a wildcard after what it covers", resources: []string{"a/x", "a/*", "*/x"}, want: nil},
		{name: "resource before the wildcard", resources: []string{"a", "*"}},
		{name: "empty", resources: []string{"a", ""}, want: []string{path + `[1]: Required value`}},
		{name: "all and a resource", resources: []string{"*", "a"}, want: []string{
			path + `: Invalid value: ["*","a"]: if '*' is present, must not specify other resources without subresources`,
		}},
		{name: "all with all subresources and a resource", resources: []string{"*/*", "a"}, want: []string{
			path + `: Invalid value: ["*/*","a"]: if '*/*' is present, must not specify other resources`,
		}},
		{name: "all subresources of a and one", resources: []string{"a/*", "a/x"}, want: []string{
			path + `[1]: Invalid value: "a/x": if 'a/*' is present, must not specify a/x`,
		}},
		{name: "subresource of all and of one", resources: []string{"*/a", "x/a"}, want: []string{
			path + `[1]: Invalid value: "x/a": if '*/a' is present, must not specify x/a`,
		}},
		{name: "covered twice", resources: []string{"a/*", "*/x", "a/x"}, want: []string{
			path + `[2]: Invalid value: "a/x": if 'a/*' is present, must not specify a/x`,
			path + `[2]: Invalid value: "a/x": if '*/x' is present, must not specify a/x`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) { s.MatchConstraints.ResourceRules[0].Resources = test.resources })
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}
