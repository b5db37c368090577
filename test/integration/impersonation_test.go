// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// impersonators let the group ops impersonate bob, the group devs, the service
// account ci/builder and the scope view, and read ConfigMaps and one Secret.
const impersonators = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ops}
rules:
- {apiGroups: [''], resources: [users], resourceNames: [bob], verbs: [impersonate]}
- {apiGroups: [''], resources: [groups], resourceNames: [devs], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [userextras/scopes], resourceNames: [view], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [uids], resourceNames: [u-1], verbs: [impersonate]}
- {apiGroups: [''], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ops}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: ops}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ci, namespace: ci}
rules:
- {apiGroups: [''], resources: [serviceaccounts], resourceNames: [builder], verbs: [impersonate]}
- {apiGroups: [''], resources: [secrets], resourceNames: [key], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ci, namespace: ci}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ci}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: ops}
---
apiVersion: v1
kind: Namespace
metadata: {name: ci}
`

// TestAsWhom: previews give nobody a right that they do not have.
func TestAsWhom(t *testing.T) {
	objects, files := t.TempDir(), t.TempDir()
	writeFile(t, objects, "roles.yaml", roles+impersonators)
	// Ann may preview and impersonate, jane may preview only.
	tokens := writeFile(t, files, "tokens.csv", "ann-token,ann,2,\"devs,ops\"\njane-token,jane,1,devs\n")
	a := newAPI(t, harness.WithObjects(objects), harness.WithUsers("", tokens))
	t.Run("UserInfo", func(t *testing.T) { testUserInfo(t, a) })
	t.Run("Headers", func(t *testing.T) { testImpersonationHeaders(t, a) })
	t.Run("Params", func(t *testing.T) { testParamRights(t, a) })
	t.Run("AskTheAuthorizer", func(t *testing.T) { testAskTheAuthorizer(t, a) })
	t.Run("NoRightsFromThePreview", func(t *testing.T) { testNoRightsFromThePreview(t, a) })
}

// tellUser is a policy, with its binding, that denies with the name, the groups
// and the scopes of the user.
func tellUser(t *testing.T) v1alpha1.AdmissionPreviewSpec {
	t.Helper()
	policy := newPolicy("tell")
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "false",
		MessageExpression: "request.userInfo.username + ' in ' + request.userInfo.groups.join(',') + " +
			"(has(request.userInfo.extra) && 'scopes' in request.userInfo.extra ? ' may ' + request.userInfo.extra['scopes'].join(',') : '')",
	}}
	return v1alpha1.AdmissionPreviewSpec{
		Request:  &v1alpha1.PreviewRequest{Object: raw(deployment)},
		Policies: candidates(t, policy, newBinding("tell", "tell")),
	}
}

func candidates(t *testing.T, policies ...any) []runtime.RawExtension {
	t.Helper()
	var list []runtime.RawExtension
	for _, policy := range policies {
		list = append(list, *raw(string(encode(t, policy))))
	}
	return list
}

func (a *api) as(t *testing.T, config *rest.Config) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// told is what the policy of tellUser says, or the error of the preview.
func told(t *testing.T, client versioned.Interface, spec v1alpha1.AdmissionPreviewSpec) (string, error) {
	t.Helper()
	answer, err := client.PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if answer.Status.Result == nil {
		return "", nil
	}
	_, message, _ := strings.Cut(answer.Status.Result.Message, "denied request: ")
	return message, nil
}

func testUserInfo(t *testing.T, a *api) {
	tests := []struct {
		token    string
		userInfo *authenticationv1.UserInfo
		told     string
		refused  string // the begin of the message
	}{
		{token: "jane-token", told: "jane in devs,system:authenticated"},
		{
			token:    "jane-token",
			userInfo: &authenticationv1.UserInfo{Username: "jane", UID: "1", Groups: []string{"devs", "system:authenticated"}},
			told:     "jane in devs,system:authenticated",
		},
		{
			token: "jane-token", userInfo: &authenticationv1.UserInfo{Username: "bob"},
			refused: `users "bob" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope: needed for spec.request.userInfo.username; `,
		},
		{token: "ann-token", userInfo: &authenticationv1.UserInfo{Username: "bob", Groups: []string{"devs"}}, told: "bob in devs"},
		{
			token:    "ann-token",
			userInfo: &authenticationv1.UserInfo{Username: "bob", UID: "u-1", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"view"}}},
			told:     "bob in devs may view",
		},
		{
			token:    "ann-token",
			userInfo: &authenticationv1.UserInfo{Username: "bob", Extra: map[string]authenticationv1.ExtraValue{"scopes": {"view", "edit"}}},
			refused:  `userextras.authentication.k8s.io "edit" is forbidden: User "ann" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope: `,
		},
		{
			token: "ann-token", userInfo: &authenticationv1.UserInfo{Username: "bob", UID: "u-2"},
			refused: `uids.authentication.k8s.io "u-2" is forbidden: User "ann" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope: `,
		},
		{
			token: "ann-token", userInfo: &authenticationv1.UserInfo{Username: "bob", Groups: []string{"devs", "system:masters"}},
			refused: `groups "system:masters" is forbidden: User "ann" cannot impersonate resource "groups" in API group "" at the cluster scope: needed for spec.request.userInfo.groups[1]; `,
		},
		{token: "ann-token", userInfo: &authenticationv1.UserInfo{Username: "system:serviceaccount:ci:builder", Groups: []string{"devs"}}, told: "system:serviceaccount:ci:builder in devs"},
		{
			token: "ann-token", userInfo: &authenticationv1.UserInfo{Username: "system:serviceaccount:prod:builder"},
			refused: `serviceaccounts "builder" is forbidden: User "ann" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "prod": `,
		},
	}
	for _, test := range tests {
		spec := tellUser(t)
		spec.Request.UserInfo = test.userInfo
		got, err := told(t, a.as(t, a.As(test.token)), spec)
		if test.refused == "" {
			if err != nil || got != test.told {
				t.Errorf("%s as %v: got %q and error %v, want %q", test.token, test.userInfo, got, err, test.told)
			}
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), test.refused) {
			t.Errorf("%s as %v: got error\n%v\nwant\n%s", test.token, test.userInfo, err, test.refused)
		}
	}
	everyone := tellUser(t)
	everyone.Request.UserInfo = &authenticationv1.UserInfo{Username: "system:kube-controller-manager", Groups: []string{"system:masters"}}
	if got, err := told(t, a.client, everyone); err != nil || got != "system:kube-controller-manager in system:masters" {
		t.Errorf("the administrator: got %q and error %v", got, err)
	}
}

// testImpersonationHeaders does what kubectl --as does: the caller of a preview
// is then the impersonated user, with the rights of that user.
func testImpersonationHeaders(t *testing.T, a *api) {
	tests := []struct {
		as      rest.ImpersonationConfig
		told    string
		refused string
	}{
		{as: rest.ImpersonationConfig{UserName: "bob", Groups: []string{"devs"}}, told: "bob in devs,system:authenticated"},
		{
			as:      rest.ImpersonationConfig{UserName: "bob"},
			refused: `admissionpreviews.policy.portcullis.dev is forbidden: User "bob" cannot create resource "admissionpreviews"`,
		},
		{
			as:      rest.ImpersonationConfig{UserName: "mallory", Groups: []string{"devs"}},
			refused: `users "mallory" is forbidden: User "ann" cannot impersonate resource "users"`,
		},
	}
	for _, test := range tests {
		config := a.As("ann-token")
		config.Impersonate = test.as
		got, err := told(t, a.as(t, config), tellUser(t))
		if test.refused == "" {
			if err != nil || got != test.told {
				t.Errorf("as %v: got %q and error %v, want %q", test.as, got, err, test.told)
			}
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), test.refused) {
			t.Errorf("as %v: got error\n%v\nwant\n%s", test.as, err, test.refused)
		}
	}
	config := a.As("ann-token")
	config.Impersonate = rest.ImpersonationConfig{UserName: "bob", Groups: []string{"devs"}}
	spec := tellUser(t)
	spec.Request.UserInfo = &authenticationv1.UserInfo{Username: "ann"}
	if _, err := told(t, a.as(t, config), spec); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), `users "ann" is forbidden: User "bob" cannot impersonate`) {
		t.Errorf("back to the user behind the headers: got error %v, want that bob may not", err)
	}
}

// testParamRights: candidates read no param that their author may not read.
func testParamRights(t *testing.T, a *api) {
	paramKind := func(kind string) *v1alpha1.ValidatingAdmissionPolicy {
		policy := newPolicy("p")
		policy.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: kind}
		return policy
	}
	paramRef := func(namespace, name string) *v1alpha1.ValidatingAdmissionPolicyBinding {
		binding, notFound := newBinding("b", "p"), admissionregistrationv1.AllowAction
		binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{Namespace: namespace, Name: name, ParameterNotFoundAction: &notFound}
		return binding
	}
	tests := []struct {
		name       string
		stored     string // the paramKind of the stored policy
		candidates []any
		refused    string
	}{
		{name: "a kind that ann may read", candidates: []any{paramKind("ConfigMap"), paramRef("ci", "a")}},
		{
			name: "a kind that ann may not read", candidates: []any{paramKind("Secret")},
			refused: `secrets "*" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p"`,
		},
		{name: "the object of a stored kind", stored: "Secret", candidates: []any{paramRef("ci", "key")}},
		{
			name: "another object of a stored kind", stored: "Secret", candidates: []any{paramRef("ci", "other")},
			refused: `secrets "other" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "ci": needed for the paramRef of ValidatingAdmissionPolicyBinding "b"`,
		},
		{
			name: "of an unknown policy", candidates: []any{paramRef("ci", "key")},
			refused: `*.* "key" is forbidden: User "ann" cannot get resource "*" in API group "*" in the namespace "ci": needed for the paramRef of ValidatingAdmissionPolicyBinding "b", for all resources: `,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.reset(t)
			spec := v1alpha1.AdmissionPreviewSpec{
				Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}, Policies: candidates(t, test.candidates...),
			}
			if test.stored != "" {
				a.createPolicy(t, paramKind(test.stored))
			}
			ann, got := a.as(t, a.As("ann-token")), error(nil)
			// What is stored counts once it is in force.
			err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
				_, got = told(t, ann, spec)
				if test.refused == "" {
					return got == nil, nil
				}
				return apierrors.IsForbidden(got) && strings.HasPrefix(got.Error(), test.refused), nil
			})
			if err != nil {
				t.Errorf("the error stays\n%v\nwant\n%s", got, test.refused)
			}
		})
	}
}

// testAskTheAuthorizer: by a candidate nobody finds out what those may do whom
// they may not impersonate. By a stored policy everybody is told what it says.
func testAskTheAuthorizer(t *testing.T, a *api) {
	const key = ".group('').resource('secrets').namespace('ci').name('key').check('get')"
	const forbidden = `resulted in error: serviceaccounts "builder" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ci": ` +
		`needed by the candidates to ask the authorizer about "system:serviceaccount:ci:builder"`
	const builder = "authorizer.serviceAccount('ci', 'builder')" + key
	ignore := admissionregistrationv1.Ignore
	tests := []struct {
		token, expression string
		failurePolicy     *admissionregistrationv1.FailurePolicyType
		told              string // the end; empty when the request is admitted
	}{
		{token: "jane-token", expression: builder + ".allowed()", told: forbidden},
		{token: "jane-token", expression: "!" + builder + ".allowed()", told: forbidden},
		{token: "jane-token", expression: builder + ".reason() == ''", told: forbidden},
		{token: "jane-token", expression: builder + ".allowed() || true", told: forbidden},
		{token: "jane-token", expression: "!" + builder + ".allowed()", failurePolicy: &ignore},
		{token: "jane-token", expression: "!authorizer" + key + ".allowed()"},
		{token: "ann-token", expression: "!" + builder + ".allowed()"},
		{token: "ann-token", expression: builder + ".allowed()", told: "failed expression: " + builder + ".allowed()"},
		{token: "ann-token", expression: "authorizer" + key + ".allowed()"},
	}
	a.reset(t)
	policy := newPolicy("ask")
	for _, test := range tests {
		policy.Spec.FailurePolicy = test.failurePolicy
		policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: test.expression}}
		got, err := told(t, a.as(t, a.As(test.token)), v1alpha1.AdmissionPreviewSpec{
			Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}, Policies: candidates(t, policy, newBinding("ask", "ask")),
		})
		if err != nil || !strings.HasSuffix(got, test.told) || (got == "") != (test.told == "") {
			t.Errorf("%s asks %s: got %q and error %v, want %q", test.token, test.expression, got, err, test.told)
		}
	}
	policy.Spec.FailurePolicy = nil
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: builder + ".allowed()"}}
	a.createPolicy(t, policy)
	if _, err := a.bindings().Create(t.Context(), newBinding("ask", "ask"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	jane, got := a.as(t, a.As("jane-token")), ""
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		var err error
		got, err = told(t, jane, v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}})
		return got == "failed expression: "+builder+".allowed()", err
	})
	if err != nil {
		t.Errorf("the stored policy says %q: %v", got, err)
	}
	a.reset(t)
}

// testNoRightsFromThePreview: RBAC objects that a preview brings give its caller
// nothing.
func testNoRightsFromThePreview(t *testing.T, a *api) {
	spec := tellUser(t)
	spec.Request.UserInfo = &authenticationv1.UserInfo{Username: "bob"}
	spec.Cluster = append(spec.Cluster, *raw(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"jane"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`))
	_, err := told(t, a.as(t, a.As("jane-token")), spec)
	if !apierrors.IsForbidden(err) {
		t.Errorf("got error %v, want Forbidden", err)
	}
}
