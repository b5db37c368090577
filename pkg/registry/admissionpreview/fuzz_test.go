// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

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
		deployment = "  request:\n    object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: n, namespace: test}, spec: {replicas: 6}}\n"
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
		head + "  request:\n    operation: DELETE\n    userInfo: {username: a, groups: [b], extra: {c: [d]}}\n    oldObject: {apiVersion: v1, kind: Pod, metadata: {name: n}}\n",
		head + "  request: {operation: CONNECT, subResource: exec, kind: {version: v1, kind: Pod}, resource: {version: v1, resource: pods}, object: {a: 1}}\n",
		`{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"AdmissionPreview","spec":{"request":{"object":{"apiVersion":"v1","kind":"Pod"}},"cluster":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true}]}},{"apiVersion":"b.c/v1","kind":"A","metadata":{"name":"x"}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	set := denyAll(f)
	judge, err := plugin.NewRegistered(dialect.All(), chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		f.Fatal(err)
	}
	door, decoder := newDoor(f, judge, admissionpreview.Access{
		Authorizer:   authorizerfactory.NewAlwaysAllowAuthorizer(),
		StoredPolicy: func(policy.ID) *policy.Unit { return nil },
	})
	ctx := genericapirequest.WithUser(f.Context(), &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	f.Fuzz(func(t *testing.T, body []byte) {
		object, _, err := decoder.Decode(body, nil, nil)
		if err != nil {
			return // the API server refuses it
		}
		preview, ok := object.(*policyapi.AdmissionPreview)
		if !ok {
			return
		}
		asked := preview.DeepCopy()
		answered, err := door.Create(ctx, preview, nil, &metav1.CreateOptions{})
		if err != nil {
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Message == "" || status.Status().Code < 400 || status.Status().Code >= 500 && status.Status().Code != 503 {
				t.Errorf("refused without a reason: %v", err)
			}
			return
		}
		preview, ok = answered.(*policyapi.AdmissionPreview)
		if !ok {
			t.Fatalf("answered with %T", answered)
		}
		if preview.Status.Allowed && !mayBeAllowed(asked) {
			t.Errorf("allowed: %s", body)
		}
		if !preview.Status.Allowed && (preview.Status.Result == nil || preview.Status.Result.Message == "") {
			t.Errorf("denied without a reason: %+v", preview.Status)
		}
	})
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
