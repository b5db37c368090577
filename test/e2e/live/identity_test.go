// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// previewers lets everybody preview.
func previewers(t *testing.T, name string) {
	t.Helper()
	grant(t, "", name, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"},
		rbacv1.PolicyRule{APIGroups: []string{oursVersion.Group}, Resources: []string{"admissionpreviews"}, Verbs: []string{"create"}})
}

// TestIdentity: the server is asked as whom kube-apiserver takes its caller for, with
// groups, uid and extra, by certificate, token and impersonation.
func TestIdentity(t *testing.T) {
	previewers(t, "identity-previewers")
	account := robot(t)
	people := map[string]*person{
		"certificate":   user(t, "ida", "team-a", "team-b"),
		"token":         account,
		"impersonation": impersonating(t, rest.ImpersonationConfig{UserName: "Jane Doe/ü", Groups: []string{"one", "Two,Three"}, UID: "u-7", Extra: map[string][]string{"example.com/scope": {"a", "b,c"}, "odd%key": {"x"}}}),
	}
	for how, p := range people {
		mine, err := p.kube.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		expected := fmt.Sprintf("%+v", mine.Status.UserInfo)
		eventually(t, how+" to arrive", func(ctx context.Context) error { return want(whoIs(ctx, t, p), expected) })
	}
}

// robot is a service account.
func robot(t *testing.T) *person {
	t.Helper()
	kubeconfig, err := shared.ServiceAccountKubeconfig(t.Context(), "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(admin.config)
	token, err := admin.kube.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token.Status.Token
	p, err := newPerson(config, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// whoIs has a policy say as whom a preview of p is judged.
func whoIs(ctx context.Context, t *testing.T, p *person) string {
	t.Helper()
	question := previewOf(t, judged("default", "any"))
	question.Spec.StoredPolicies = v1alpha1.IgnoreStoredPolicies
	question.Spec.Policies = append(question.Spec.Policies,
		*raw(t, made(t, oursVersion, policyKind, "who", `{matchConstraints: `+onJudged+`, validations: [{expression: "dyn(request.userInfo) == null", message: somebody}]}`)),
		*raw(t, made(t, oursVersion, bindingKind, "who", `{policyName: who, validationActions: [Deny]}`)))
	status, err := preview(ctx, p, question)
	if err != nil {
		return err.Error()
	}
	for _, one := range status.Evaluations {
		for expression, value := range one.Values {
			if strings.Contains(expression, "request.userInfo") {
				var who authenticationv1.UserInfo
				decode(t, string(value.Raw), &who)
				return fmt.Sprintf("%+v", who)
			}
		}
	}
	return "nobody has said"
}

// TestNobodySpeaksForOthers: headers that name a user are believed of kube-apiserver
// alone.
func TestNobodySpeaksForOthers(t *testing.T) {
	spoofed := transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper { return spoofing{next} })
	eve := user(t, "eve")
	for i, replica := range shared.Replicas {
		config := rest.CopyConfig(eve.config)
		config.Host = "https://" + replica.Address
		config.CAData, config.Insecure = nil, true
		config.Wrap(spoofed)
		p, err := newPerson(config, "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
		if err := want(told(err), `validatingadmissionpolicies.policy.portcullis.dev is forbidden: User "eve" cannot list resource "validatingadmissionpolicies" in API group "policy.portcullis.dev" at the cluster scope`); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
	}
	config := rest.CopyConfig(eve.config)
	config.Wrap(spoofed)
	p, err := newPerson(config, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	if !strings.Contains(told(err), `User "eve" cannot list`) {
		t.Errorf("through kube-apiserver: got %v", err)
	}
}

// spoofing says to be the administrator.
type spoofing struct{ http.RoundTripper }

func (s spoofing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	return s.RoundTripper.RoundTrip(request)
}

// TestRefusals: who has no right is told the same of our kinds as of kube-apiserver's,
// for each verb, and so is who has some.
func TestRefusals(t *testing.T) {
	const spec = `{matchConstraints: {resourceRules: [{apiGroups: [nowhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: 'true'}]}`
	for _, version := range []schema.GroupVersion{oursVersion, theirsVersion} {
		store(t, version, policyKind, "refusals", spec)
	}
	reads := rbacv1.PolicyRule{APIGroups: []string{oursVersion.Group, theirsVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	named := rbacv1.PolicyRule{APIGroups: []string{oursVersion.Group, theirsVersion.Group}, Resources: []string{"*"}, ResourceNames: []string{"refusals"}, Verbs: []string{"patch", "update"}}
	grant(t, "", "refusals-reader", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "reader"}, reads)
	grant(t, "", "refusals-named", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "named"}, named)
	people := map[string]*person{"nobody": user(t, "nobody"), "reader": user(t, "reader"), "named": user(t, "named")}
	waitMay(t, people["reader"], &authorizationv1.ResourceAttributes{Verb: "list", Group: oursVersion.Group, Resource: "validatingadmissionpolicies"})
	waitMay(t, people["named"], &authorizationv1.ResourceAttributes{Verb: "patch", Group: oursVersion.Group, Resource: "validatingadmissionpolicies", Name: "refusals"})
	refused := 0
	for who, p := range people {
		for verb, do := range verbs(t, spec) {
			answers := map[schema.GroupVersion]string{}
			for _, version := range []schema.GroupVersion{oursVersion, theirsVersion} {
				answers[version] = answer(do(t.Context(), p, resourceOf(version, policyKind)))
			}
			if err := want(answers[oursVersion], ours(answers[theirsVersion])); err != nil {
				t.Errorf("%s, %s: %v", who, verb, err)
			}
			if strings.Contains(answers[oursVersion], `"code": 403`) {
				refused++
			}
		}
	}
	if want := 11 + 7 + 8; refused != want {
		t.Errorf("%d were refused, want %d", refused, want)
	}
}

// verbs are what can be done with the policy refusals and with all policies.
func verbs(t *testing.T, spec string) map[string]func(context.Context, *person, schema.GroupVersionResource) error {
	t.Helper()
	body := []byte(`{"metadata": {"labels": {"a": "b"}}}`)
	return map[string]func(context.Context, *person, schema.GroupVersionResource) error{
		"get": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Get(ctx, "refusals", metav1.GetOptions{})
			return err
		},
		"get what is not there": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Get(ctx, "none", metav1.GetOptions{})
			return err
		},
		"get status": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Get(ctx, "refusals", metav1.GetOptions{}, "status")
			return err
		},
		"list": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).List(ctx, metav1.ListOptions{})
			return err
		},
		"watch": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			watch, err := p.objects.Resource(r).Watch(ctx, metav1.ListOptions{})
			if err == nil {
				watch.Stop()
			}
			return err
		},
		"create": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Create(ctx, made(t, r.GroupVersion(), policyKind, "refused", spec), metav1.CreateOptions{})
			return err
		},
		"patch": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Patch(ctx, "refusals", "application/merge-patch+json", body, metav1.PatchOptions{})
			return err
		},
		"patch status": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Patch(ctx, "refusals", "application/merge-patch+json", body, metav1.PatchOptions{}, "status")
			return err
		},
		"create by server-side apply": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			_, err := p.objects.Resource(r).Apply(ctx, "refused", made(t, r.GroupVersion(), policyKind, "refused", spec), metav1.ApplyOptions{FieldManager: "a"})
			return err
		},
		"delete": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			return p.objects.Resource(r).Delete(ctx, "refusals", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"delete a collection": func(ctx context.Context, p *person, r schema.GroupVersionResource) error {
			return p.objects.Resource(r).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
		},
	}
}
