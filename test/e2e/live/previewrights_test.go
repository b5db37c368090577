// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const hiddenNamespace = "hidden"

// TestPreviewReadsAsItsCaller: who may preview, and nothing else, is shown nothing of the
// cluster that they may not read: no params, no Namespace, no other user's rights, no
// objects. Who has the rights is shown everything.
func TestPreviewReadsAsItsCaller(t *testing.T) {
	newNamespace(t, hiddenNamespace, map[string]string{"secret": "label"})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hidden-secret"}, StringData: map[string]string{"value": "changeme-" + hiddenNamespace}}
	stored, err := admin.kube.CoreV1().Secrets(hiddenNamespace).Create(t.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(stored.Data["value"]) // as expressions see it
	if err != nil {
		t.Fatal(err)
	}
	letRead(t, "hidden-params", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}})
	enforce(t, hiddenNamespace+".example.com", `{paramKind: {apiVersion: v1, kind: Secret}, matchConstraints: `+onJudged+`,
	  validations: [{expression: "params.data.value == object.metadata.name"}]}`, `{paramRef: {name: hidden-secret, parameterNotFoundAction: Deny}}`)

	previews := rbacv1.PolicyRule{APIGroups: []string{oursVersion.Group}, Resources: []string{"admissionpreviews"}, Verbs: []string{"create"}}
	reads := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "namespaces"}, Verbs: []string{"get", "list"}}
	impersonates := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"someone"}, Verbs: []string{"impersonate"}}
	grant(t, "", "hidden-pat", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "pat"}, previews)
	grant(t, "", "hidden-rita", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "rita"}, previews, reads, impersonates)
	pat, rita := user(t, "pat"), user(t, "rita")
	mayPreview := &authorizationv1.ResourceAttributes{Verb: "create", Group: oursVersion.Group, Resource: "admissionpreviews"}
	waitMay(t, pat, mayPreview)
	waitMay(t, rita, mayPreview)

	for _, test := range hiddenQuestions(t) {
		t.Run(test.name, func(t *testing.T) {
			for who, p := range map[string]*person{"pat": pat, "rita": rita} {
				status, err := preview(t.Context(), p, &v1alpha1.AdmissionPreview{Spec: test.spec})
				expected := map[string]string{"pat": test.pat, "rita": test.rita}[who]
				said := answerOf(t, status, err)
				if !strings.Contains(said, expected) {
					t.Errorf("%s: got\n%s\nwant %s", who, said, expected)
				}
				if who == "pat" && strings.Contains(said, strings.Trim(string(value), `"`)) || who == "pat" && test.secret != "" && strings.Contains(said, test.secret) {
					t.Errorf("%s is shown what is hidden: %s", who, said)
				}
			}
		})
	}
}

// answerOf is all that is said, as text.
func answerOf(t *testing.T, status *v1alpha1.AdmissionPreviewStatus, err error) string {
	t.Helper()
	if err != nil {
		return answer(err)
	}
	encoded, err := json.MarshalIndent(status, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// hiddenQuestion is a preview, what is said to two callers, and what pat is never told.
type hiddenQuestion struct {
	name      string
	spec      v1alpha1.AdmissionPreviewSpec
	pat, rita string
	secret    string
}

func hiddenQuestions(t *testing.T) []hiddenQuestion {
	t.Helper()
	request := func() *v1alpha1.PreviewRequest {
		return &v1alpha1.PreviewRequest{Object: raw(t, judged(hiddenNamespace, "any"))}
	}
	as := func(name string) *v1alpha1.PreviewRequest {
		changed := request()
		changed.UserInfo = &authenticationv1.UserInfo{Username: name}
		return changed
	}
	candidates := func(request *v1alpha1.PreviewRequest, policy, binding string) v1alpha1.AdmissionPreviewSpec {
		spec := v1alpha1.AdmissionPreviewSpec{Request: request, StoredPolicies: v1alpha1.IgnoreStoredPolicies}
		if policy != "" {
			spec.Policies = append(spec.Policies, *raw(t, made(t, oursVersion, policyKind, "candidate", policy)))
		}
		spec.Policies = append(spec.Policies, *raw(t, made(t, oursVersion, bindingKind, "candidate", binding)))
		return spec
	}
	const bound = `{policyName: candidate, validationActions: [Deny]}`
	const toSecret = `, validationActions: [Deny], paramRef: {name: hidden-secret, namespace: ` + hiddenNamespace + `, parameterNotFoundAction: Deny}}`
	const boundToSecret = `{policyName: candidate` + toSecret
	stored := candidates(request(), "", `{policyName: `+hiddenNamespace+`.example.com`+toSecret)
	stored.StoredPolicies = v1alpha1.IncludeStoredPolicies
	simple := func(expression string) string {
		return `{matchConstraints: ` + onJudged + `, validations: [{expression: "` + expression + `"}]}`
	}
	ofSecrets := `{paramKind: {apiVersion: v1, kind: Secret}, matchConstraints: ` + onJudged + `, validations: [{expression: "params.data.value == ''"}]}`
	forbidden := func(what string) string {
		return fmt.Sprintf(`User \"pat\" cannot %s`, what)
	}
	sweep := v1alpha1.AdmissionPreviewSpec{Objects: &v1alpha1.PreviewObjects{Resource: v1alpha1.GroupVersionResource{Resource: "secrets"}, Namespace: hiddenNamespace}}
	everywhere := v1alpha1.AdmissionPreviewSpec{Objects: &v1alpha1.PreviewObjects{Resource: v1alpha1.GroupVersionResource{Resource: "secrets"}}}
	refused := fmt.Sprintf(`"code": %d`, http.StatusForbidden)
	return []hiddenQuestion{
		{"values of a stored policy's Secret", v1alpha1.AdmissionPreviewSpec{Request: request()}, `"concealed"`, `"params.data.value": "`, ""},
		{"a candidate that reads Secrets", candidates(request(), ofSecrets, boundToSecret), refused, `"allowed": false`, ""},
		{"why a candidate may not", candidates(request(), ofSecrets, boundToSecret), forbidden(`get resource \"secrets\" in API group \"\" in the namespace \"*\"`), `"outcome": "Denied"`, ""},
		{"a candidate that has a stored policy read a Secret", stored, forbidden(`get resource \"secrets\" in API group \"\" in the namespace \"hidden\"`), `"binding": "candidate"`, ""},
		{"a candidate that reads the Namespace", candidates(request(), simple("namespaceObject.metadata.labels.secret == 'x'"), bound), forbidden(`get resource \"namespaces\"`), `"namespaceObject.metadata.labels.secret": "label"`, `"label"`},
		{"a candidate that asks about another user", candidates(request(), simple("authorizer.serviceAccount('kube-system', 'x').group('').resource('pods').check('get').allowed()"), bound), forbidden(`impersonate resource \"serviceaccounts\"`), `"message"`, ""},
		{"a request of another user", v1alpha1.AdmissionPreviewSpec{Request: as("someone")}, forbidden(`impersonate resource \"users\"`), `"allowed": false`, ""},
		{"existing Secrets of a namespace", sweep, forbidden(`list resource \"secrets\" in API group \"\" in the namespace \"hidden\"`), `"judged": 1`, "hidden-secret"},
		{"existing Secrets", everywhere, forbidden(`list resource \"secrets\" in API group \"\" at the cluster scope`), `"judged"`, "hidden-secret"},
	}
}
