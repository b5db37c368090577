// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
)

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: string}
              max: {type: integer}
              port: {x-kubernetes-int-or-string: true}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {length: {type: integer}}}
`

// world has the built-in kinds and Gadgets.
func world(t testing.TB) *offline.View {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(gadgets), definition); err != nil {
		t.Fatal(err)
	}
	view, err := offline.New([]*unstructured.Unstructured{definition})
	if err != nil {
		t.Fatal(err)
	}
	return view
}

type policySpec = admissionregistrationv1.ValidatingAdmissionPolicySpec

func rule(groups, versions, resources string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Rule: admissionregistrationv1.Rule{
			APIGroups: strings.Split(groups, ","), APIVersions: strings.Split(versions, ","), Resources: strings.Split(resources, ","),
		},
	}}
}

func deployments() admissionregistrationv1.NamedRuleWithOperations {
	return rule("apps", "v1", "deployments")
}

// policy reads "name: expression" lines, where the name is validation, message,
// match, audit, params or a variable.
func policy(rules []admissionregistrationv1.NamedRuleWithOperations, lines ...string) *policySpec {
	p := &policySpec{MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: rules}}
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ": ")
		switch name {
		case "validation":
			p.Validations = append(p.Validations, admissionregistrationv1.Validation{Expression: text})
		case "message":
			p.Validations[len(p.Validations)-1].MessageExpression = text
		case "match":
			p.MatchConditions = append(p.MatchConditions, admissionregistrationv1.MatchCondition{Name: "m", Expression: text})
		case "audit":
			p.AuditAnnotations = append(p.AuditAnnotations, admissionregistrationv1.AuditAnnotation{Key: "k", ValueExpression: text})
		case "params":
			version, kind, _ := strings.Cut(text, " ")
			p.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: version, Kind: kind}
		default:
			p.Variables = append(p.Variables, admissionregistrationv1.Variable{Name: name, Expression: text})
		}
	}
	return p
}

// on makes a list of rules.
func on(rules ...admissionregistrationv1.NamedRuleWithOperations) []admissionregistrationv1.NamedRuleWithOperations {
	return rules
}

func TestCheck(t *testing.T) {
	view := world(t)
	checker := typing.New()
	for _, test := range rows() {
		result, err := checker.Check(t.Context(), view, test.policy)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var types []string
		for _, kind := range result.Types {
			types = append(types, kind.Kind)
		}
		if got := strings.Join(types, " "); got != test.types {
			t.Errorf("%s: checked against %q, want %q", test.name, got, test.types)
		}
		if got := result.Lines(1000); !slices.Equal(got, test.lines) {
			t.Errorf("%s: got lines\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.lines, "\n"))
		}
		if got, want := strings.Join(fields(result.ExpressionWarnings()), " "), wantListed(test); got != want {
			t.Errorf("%s: status.typeChecking is about %q, want %q", test.name, got, want)
		}
	}
}

func wantListed(test row) string {
	switch test.listed {
	case "-":
		return ""
	case "":
		var all []string
		for _, line := range test.lines {
			field, _, _ := strings.Cut(line, ": ")
			all = append(all, field)
		}
		return strings.Join(slices.Compact(all), " ")
	}
	return test.listed
}

func fields(warnings []admissionregistrationv1.ExpressionWarning) []string {
	var all []string
	for _, warning := range warnings {
		all = append(all, warning.FieldRef)
	}
	return all
}

// TestAsUpstream compares with the type checker of Kubernetes.
func TestAsUpstream(t *testing.T) {
	view := world(t)
	upstream := validating.TypeChecker{SchemaResolver: schemas{view}, RestMapper: view.Mapper()}
	checker := typing.New()
	for _, test := range rows() {
		result, err := checker.Check(t.Context(), view, test.policy)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got := typeNames.ReplaceAllString(fmt.Sprintf("%q", result.ExpressionWarnings()), "$1")
		want := upstreamNames.ReplaceAllString(fmt.Sprintf("%q", upstream.Check(&admissionregistrationv1.ValidatingAdmissionPolicy{Spec: *test.policy})), "$1")
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
	}
}

var (
	// typeNames are those of types in messages; upstream adds a random number.
	typeNames     = regexp.MustCompile(`[a-z.]+/v1\.([A-Z])`)
	upstreamNames = regexp.MustCompile(`\b([A-Z][A-Za-z]+)[0-9]+\b`)
)

// schemas is a resolver.SchemaResolver.
type schemas struct{ typing.Cluster }

func (s schemas) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	return s.Schema(kind)
}

// TestText holds the whole of a warning.
func TestText(t *testing.T) {
	result, err := typing.New().Check(t.Context(), world(t), policy(on(rule("apps", "v1", "deployments,replicasets")), "validation: object.replicas > 1"))
	if err != nil {
		t.Fatal(err)
	}
	want := []admissionregistrationv1.ExpressionWarning{{
		FieldRef: "spec.validations[0].expression",
		Warning: "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n" +
			"\napps/v1, Kind=ReplicaSet: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n",
	}}
	if got := result.ExpressionWarnings(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
