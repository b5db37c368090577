// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// stored returns a policy on every resource with the given spec.
func stored(spec admissionregistrationv1.ValidatingAdmissionPolicySpec) *policyapi.ValidatingAdmissionPolicy {
	spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector:    &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			},
		}},
	}
	return &policyapi.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}
}

func validating(expression string) *policyapi.ValidatingAdmissionPolicy {
	return stored(admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionregistrationv1.Validation{{Expression: expression}},
	})
}

func deployment() *request.Request {
	return request.New(request.Fields{
		UID: "u", Name: "nginx", Namespace: "default", Operation: admission.Create,
		Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "nginx", "namespace": "default"},
			"spec":     map[string]any{"replicas": int64(6)},
		}},
	})
}

func emptyCluster(t testing.TB) cluster.View {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestSuite(t *testing.T) {
	dialecttest.Run(t, dialecttest.Suite{
		Dialect: cel.New(),
		Request: func() *request.Request {
			fields := deployment().Fields
			fields.Namespace = "absent"
			return request.New(fields)
		},
		View:       emptyCluster(t),
		Allowing:   validating("object.spec.replicas <= 6"),
		Denying:    validating("object.spec.replicas <= 5"),
		Failing:    validating("object.spec.paused == true"),
		Reading:    validating("namespaceObject.metadata.name == 'absent'"),
		Exhausting: validating("[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, object.spec.replicas + a + b + c + d + e + f + g > 0)))))))"),
		Broken:     validating("object.spec.replicas <="),
	})
}

// TestFindings holds what each part of a policy leads to.
func TestFindings(t *testing.T) {
	forbidden := metav1.StatusReasonForbidden
	denied := func(message string) verdict.Finding {
		return verdict.Finding{Kind: verdict.Fail, Rule: "validations[0]", Expression: "false", Message: message, Reason: metav1.StatusReasonInvalid}
	}
	tests := []struct {
		name string
		spec spec
		want []verdict.Finding
	}{
		{
			name: "two validations",
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "true"}, {Expression: "false", Reason: &forbidden, Message: " no "}}},
			want: []verdict.Finding{
				{Kind: verdict.Pass, Rule: "validations[0]", Expression: "true"},
				{Kind: verdict.Fail, Rule: "validations[1]", Expression: "false", Index: 1, Message: "no", Reason: forbidden},
			},
		},
		{
			name: "message expression",
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "m", MessageExpression: "'replicas: ' + string(object.spec.replicas)"}}},
			want: []verdict.Finding{denied("replicas: 6")},
		},
		{
			name: "message expression that fails",
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "m", MessageExpression: "string(object.absent)"}}},
			want: []verdict.Finding{denied("m")},
		},
		{
			name: "no message",
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "false"}}},
			want: []verdict.Finding{denied("failed expression: false")},
		},
		{
			name: "a match condition that is false",
			spec: spec{
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "error", Expression: "object.absent == 1"}, {Name: "false", Expression: "false"}},
				Validations:     []admissionregistrationv1.Validation{{Expression: "false"}},
			},
			want: []verdict.Finding{{
				Kind: verdict.NotMatched, Rule: "matchConditions[1]", Index: 1, Expression: "false",
			}},
		},
		{
			name: "a match condition that fails",
			spec: spec{
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "error", Expression: "object.absent == 1"}},
				Validations:     []admissionregistrationv1.Validation{{Expression: "true"}},
			},
			want: []verdict.Finding{{Kind: verdict.Error, Rule: "matchConditions", Message: "expression 'object.absent == 1' resulted in error: no such key: absent"}},
		},
		{
			name: "variables",
			spec: spec{
				Variables:   []admissionregistrationv1.Variable{{Name: "n", Expression: "object.spec.replicas"}, {Name: "twice", Expression: "variables.n * 2"}},
				Validations: []admissionregistrationv1.Validation{{Expression: "variables.twice == 12"}},
			},
			want: []verdict.Finding{{Kind: verdict.Pass, Rule: "validations[0]", Expression: "variables.twice == 12"}},
		},
		{
			name: "audit annotations",
			spec: spec{AuditAnnotations: []admissionregistrationv1.AuditAnnotation{
				{Key: "kept", ValueExpression: "' six '"}, {Key: "left-out", ValueExpression: "''"}, {Key: "failed", ValueExpression: "string(object.absent)"},
			}},
			want: []verdict.Finding{
				{Kind: verdict.Annotation, Rule: "auditAnnotations[0]", Expression: "' six '", Key: "kept", Value: "six"},
				{Kind: verdict.Misconfigured, Rule: "auditAnnotations[2]", Expression: "string(object.absent)", Index: 2, Message: "expression 'string(object.absent)' resulted in error: no such key: absent"},
			},
		},
		{
			name: "the namespace",
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "namespaceObject.metadata.name == 'default'"}}},
			want: []verdict.Finding{{Kind: verdict.Pass, Rule: "validations[0]", Expression: "namespaceObject.metadata.name == 'default'"}},
		},
	}
	dialect := cel.New()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := evaluate(t, dialect, stored(test.spec), deployment())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnknownNamespace: a namespace that the cluster does not have is an error
// for the policies that look at it, and for no others.
func TestUnknownNamespace(t *testing.T) {
	elsewhere := deployment().Fields
	elsewhere.Namespace = "elsewhere"
	for expression, want := range map[string]verdict.Finding{
		"true":                    {Kind: verdict.Pass, Rule: "validations[0]", Expression: "true"},
		"namespaceObject == null": {Kind: verdict.Misconfigured, Message: `failed to configure binding: namespaces "elsewhere" not found`},
	} {
		got := evaluate(t, cel.New(), validating(expression), request.New(elsewhere))
		if diff := cmp.Diff([]verdict.Finding{want}, got); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", expression, diff)
		}
	}
}

// TestUnknownAuthorizer: where the view cannot tell what a user may do, neither
// yes nor no is assumed.
func TestUnknownAuthorizer(t *testing.T) {
	for _, expression := range []string{
		"authorizer.group('').resource('pods').check('get').allowed()",
		"!authorizer.group('').resource('pods').check('get').allowed()",
	} {
		got := asking{policy: validating(expression), request: deployment(), view: withoutAuthorizer{emptyCluster(t)}}.findings(t)
		if len(got) != 1 || got[0].Kind != verdict.Error {
			t.Errorf("%s: got %+v, want an error", expression, got)
		}
	}
}

type withoutAuthorizer struct{ cluster.View }

func (withoutAuthorizer) Authorizer() authorizer.UnconditionalAuthorizer { return nil }

// TestUnusableParams: validation refuses these; should one be stored
// nevertheless, it does not pass for "no params".
func TestUnusableParams(t *testing.T) {
	allow := admissionregistrationv1.AllowAction
	for want, ref := range map[string]admissionregistrationv1.ParamRef{
		"one of name or selector must be provided":                   {ParameterNotFoundAction: &allow},
		"paramRef.name and paramRef.selector are mutually exclusive": {ParameterNotFoundAction: &allow, Name: "a", Selector: &metav1.LabelSelector{}},
		`"Around" is not a valid label selector operator`: {ParameterNotFoundAction: &allow, Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Around"}},
		}},
	} {
		unit, errs := cel.New().Compile(t.Context(), &policyapi.ValidatingAdmissionPolicyBinding{
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{ParamRef: &ref},
		})
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if err := unit.Binding.Params.Err; err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestBinding(t *testing.T) {
	deny := admissionregistrationv1.DenyAction
	unit, errs := cel.New().Compile(t.Context(), &policyapi.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        "p",
			ParamRef:          &admissionregistrationv1.ParamRef{Name: "limit", Namespace: "ns", ParameterNotFoundAction: &deny},
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit, "Future"},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if want := (policy.ID{Kind: "ValidatingAdmissionPolicy", Name: "p"}); unit.Binding.Policy != want {
		t.Errorf("policy %v, want %v", unit.Binding.Policy, want)
	}
	if diff := cmp.Diff(&policy.Params{Name: "limit", Namespace: "ns"}, unit.Binding.Params); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]verdict.Action{verdict.Warn, verdict.Audit, verdict.Deny}, unit.Binding.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func evaluate(t *testing.T, dialect *cel.Dialect, obj *policyapi.ValidatingAdmissionPolicy, req *request.Request) []verdict.Finding {
	t.Helper()
	unit, errs := dialect.Compile(t.Context(), obj)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return unit.Policy.Program.Evaluate(t.Context(), policy.Input{
		Request: req,
		Matched: cluster.Equivalent{Resource: req.RequestResource, Kind: req.RequestKind},
		View:    emptyCluster(t),
	})
}
