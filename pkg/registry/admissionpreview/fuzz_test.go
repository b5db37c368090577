// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

// denyAll is a set with one policy, which denies whatever it is asked about.
func denyAll(f *testing.F) *policy.Set {
	f.Helper()
	languages := dialect.All()
	objects := []runtime.Object{
		&policyapi.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "deny-all"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{"*"},
							Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
						},
					}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: "object == null && oldObject == null && false", Message: "refused"}},
			},
		},
		&policyapi.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "deny-all"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "deny-all", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
	units := make([]*policy.Unit, 0, len(objects))
	for _, object := range objects {
		unit, _ := languages[0].Compile(f.Context(), object)
		units = append(units, unit)
	}
	return (&policy.Set{}).Edit(nil, units)
}

// FuzzPreview asks anything of the door behind which everything is denied. It
// must not crash, must give a reason for each refusal, and must call nothing
// admitted but what no policy may judge.
func FuzzPreview(f *testing.F) {
	const (
		head       = "apiVersion: policy.portcullis.dev/v1alpha1\nkind: AdmissionPreview\nspec:\n"
		deployment = "  request:\n    object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: nginx, namespace: test}, spec: {replicas: 6}}\n"
	)
	for _, seed := range []string{
		head, head + deployment, head + deployment + "  storedPolicies: Ignore\n",
		head + deployment + `  policies:
  - apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingAdmissionPolicy
    metadata: {name: p}
    spec:
      paramKind: {apiVersion: v1, kind: Secret}
      matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
      matchConditions: [{name: c, expression: "request.userInfo.username != 'x'"}]
      variables: [{name: v, expression: "object.spec.?replicas.orValue(0)"}]
      validations: [{expression: "variables.v < 5 && authorizer.group('').resource('pods').check('get').allowed()", messageExpression: "string(variables.v) + params.data.a"}]
  - apiVersion: policy.portcullis.dev/v1alpha1
    kind: ValidatingAdmissionPolicyBinding
    metadata: {name: b}
    spec: {policyName: p, validationActions: [Warn, Audit], paramRef: {selector: {}, parameterNotFoundAction: Deny}}
  cluster:
  - {apiVersion: v1, kind: Namespace, metadata: {name: test}}
  - {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: test}, data: {a: Yg==}}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}
`,
		head + deployment + `  policies:
  - apiVersion: policy.portcullis.dev/v1alpha1
    kind: ValidatingAdmissionPolicy
    metadata: {name: p}
    spec:
      matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
      variables: [{name: a, expression: dyn(1)}, {name: b, expression: variables.a}, {name: a, expression: dyn(variables.b)}]
      validations: [{expression: variables.a == 1}]
  - {apiVersion: policy.portcullis.dev/v1alpha1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: p, validationActions: [Deny]}}
`,
		head + "  request:\n    operation: DELETE\n    userInfo: {username: a, groups: [b], extra: {c: [d]}}\n    oldObject: {apiVersion: v1, kind: Pod, metadata: {name: nginx}}\n",
		head + "  request: {operation: CONNECT, subResource: exec, kind: {version: v1, kind: Pod}, resource: {version: v1, resource: pods}, object: {a: 1}}\n",
		`{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"AdmissionPreview","spec":{"request":{"object":{"apiVersion":"v1","kind":"Pod"}},"cluster":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true}]}},{"apiVersion":"b.c/v1","kind":"A","metadata":{"name":"x"}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	door, decoder := closedDoor(f)
	ctx := genericapirequest.WithUser(f.Context(), &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	f.Fuzz(func(t *testing.T, body []byte) {
		object, _, err := decoder.Decode(body, nil, nil)
		if err != nil {
			return // the API server refuses it
		}
		if preview, ok := object.(*policyapi.AdmissionPreview); ok {
			refused(ctx, t, door, preview)
		}
	})
}

// FuzzPreviewParts fills the fields of a well-formed preview with anything: a
// candidate with expressions of all sorts, beside the policy that denies
// everything.
func FuzzPreviewParts(f *testing.F) {
	const object = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"n","namespace":"default","labels":{"a":"b"}},"data":{"a":"Yg=="}}`
	f.Add("CREATE", "object.data.a == 'Yg=='", "object.metadata.name", "variables.v + string(object.data.size())", "has(object.data)", "a", "ada", []byte(object), []byte(`null`), []byte(object))
	f.Add("UPDATE", "object.metadata.labels.all(k, k in oldObject.metadata.labels && params.data[k] != '')", "object.?spec.?x.orValue(1)", "'x'", "request.userInfo.groups.exists(g, g == 'a')", "b", "system:serviceaccount:a:b", []byte(object), []byte(object), []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`))
	for _, circle := range []string{"dyn(variables).v", "dyn(variables)['v']", "dyn([variables])[0].v", "dyn(variables).all(k, true)", "[1].all(variables, .variables.v == 1)", "[{'v': 1}].all(variables, variables.v == 1)"} {
		f.Add("CREATE", "variables.v == 1", circle, "string(variables.v)", "true", "a", "ada", []byte(object), []byte(`null`), []byte(object))
	}
	f.Add("DELETE", "authorizer.group('').resource('pods').namespace('n').check('get').allowed()", "[1,2,3].map(x, x * 2)", "string(oldObject.metadata.name)", "true", "k", "", []byte(`null`), []byte(object), []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`))
	door, _ := closedDoor(f)
	ctx := genericapirequest.WithUser(f.Context(), &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	f.Fuzz(func(t *testing.T, operation, expression, variable, message, condition, selector, name string, object, oldObject, inCluster []byte) {
		preview := &policyapi.AdmissionPreview{Spec: policyapi.AdmissionPreviewSpec{
			StoredPolicies: policyapi.IncludeStoredPolicies,
			Request: &policyapi.PreviewRequest{
				Operation: operation, UserInfo: &authenticationv1.UserInfo{Username: name, Groups: []string{name}},
				Object: rawOrNil(object), OldObject: rawOrNil(oldObject),
			},
			Policies: anyPolicy(t, expression, variable, message, condition, selector),
			Cluster:  []runtime.RawExtension{{Raw: inCluster}},
		}}
		refused(ctx, t, door, preview)
	})
}

func rawOrNil(data []byte) *runtime.RawExtension {
	if string(data) == "null" {
		return nil
	}
	return &runtime.RawExtension{Raw: data}
}

func anyPolicy(t *testing.T, expression, variable, message, condition, selector string) []runtime.RawExtension {
	t.Helper()
	objects := []any{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: "candidate"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"},
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "skip-" + selector, Operator: metav1.LabelSelectorOpDoesNotExist}}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{"*"},
							Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
						},
					}},
				},
				MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "c", Expression: condition}},
				Variables:        []admissionregistrationv1.Variable{{Name: "v", Expression: variable}},
				Validations:      []admissionregistrationv1.Validation{{Expression: expression, MessageExpression: message}},
				AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "k", ValueExpression: message}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "candidate"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "candidate", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit},
				ParamRef: &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction)},
			},
		},
	}
	policies := make([]runtime.RawExtension, len(objects))
	for i, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		policies[i].Raw = data
	}
	return policies
}

// closedDoor is a door behind which everything is denied.
func closedDoor(f *testing.F) (*admissionpreview.REST, runtime.Decoder) {
	f.Helper()
	set := denyAll(f)
	judge, err := plugin.NewRegistered(dialect.All(), chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		f.Fatal(err)
	}
	return newDoor(f, judge, admissionpreview.Access{
		Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		Stored:     func() *policy.Set { return nil },
	})
}

// refused fails the test when the door gives no reason, or calls admitted what
// the policy that denies everything may judge.
func refused(ctx context.Context, t *testing.T, door *admissionpreview.REST, preview *policyapi.AdmissionPreview) {
	t.Helper()
	asked := preview.DeepCopy()
	answered, err := door.Create(ctx, preview, nil, &metav1.CreateOptions{})
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Message == "" || status.Status().Code < 400 || status.Status().Code >= 500 && status.Status().Code != 503 {
			t.Errorf("refused without a reason: %v", err)
		}
		return
	}
	preview, ok := answered.(*policyapi.AdmissionPreview)
	if !ok {
		t.Fatalf("answered with %T", answered)
	}
	if preview.Status.Allowed && !mayBeAllowed(asked) {
		t.Errorf("allowed: %+v", asked.Spec)
	}
	if !preview.Status.Allowed && (preview.Status.Result == nil || preview.Status.Result.Message == "") {
		t.Errorf("denied without a reason: %+v", preview.Status)
	}
	if _, err := json.Marshal(preview.Status); err != nil {
		t.Errorf("the answer cannot be written: %v", err)
	}
}

// mayBeAllowed says whether the stored policy has no part in the preview: it is
// left out, a candidate of its name takes its place, or the request is about a
// group of which some resources are judged by no policy.
func mayBeAllowed(asked *policyapi.AdmissionPreview) bool {
	spec := &asked.Spec
	if spec.StoredPolicies == policyapi.IgnoreStoredPolicies {
		return true
	}
	if slices.ContainsFunc(spec.Policies, func(c runtime.RawExtension) bool { return bytes.Contains(c.Raw, []byte("deny-all")) }) {
		return true
	}
	groups := []string{policyapi.GroupName, "admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}
	if resource := spec.Request.RequestResource; resource != nil {
		return slices.Contains(groups, resource.Group)
	}
	if resource := spec.Request.Resource; resource != nil {
		return slices.Contains(groups, resource.Group)
	}
	for _, object := range []*runtime.RawExtension{spec.Request.Object, spec.Request.OldObject} {
		if object == nil {
			continue
		}
		for _, group := range groups {
			if bytes.Contains(object.Raw, []byte(group)) {
				return true
			}
		}
	}
	return spec.Request.Kind != nil && slices.Contains(groups, spec.Request.Kind.Group)
}
