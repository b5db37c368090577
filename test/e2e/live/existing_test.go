// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// existingNamespaces are those of the objects of furnish.
var existingNamespaces = []string{"existing-a", "existing-b"}

// furnish makes, in each of two namespaces, 12 ConfigMaps, of which every third is
// large, 4 Deployments with 0 to 3 replicas, and 3 Pods, one of them privileged.
func furnish(t *testing.T) {
	t.Helper()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	store := func(resource schema.GroupVersionResource, namespace, text string) {
		t.Helper()
		if _, err := admin.objects.Resource(resource).Namespace(namespace).Create(t.Context(), objectOf(t, text), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range existingNamespaces {
		newNamespace(t, namespace, nil)
		eventually(t, "the service account of Pods", func(ctx context.Context) error {
			_, err := admin.kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		for i := range 12 {
			store(configMaps, namespace, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c%02d, labels: {existing: 'yes', third: '%t'}}, data: {size: '%d'}}`, i, i%3 == 0, i))
		}
		for i := range 4 {
			store(deployments, namespace, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d%d, labels: {existing: 'yes'}},
			  spec: {replicas: %d, paused: true, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`, i, i))
		}
		for i := range 3 {
			store(pods, namespace, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p%d, labels: {existing: 'yes'}},
			  spec: {containers: [{name: c, image: i, securityContext: {privileged: %t}}]}}`, i, i == 1))
		}
	}
}

// existingPolicy is about ConfigMaps, Deployments and Pods.
const existingPolicy = `{matchConstraints: {objectSelector: {matchLabels: {existing: 'yes'}}, resourceRules: [
    {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps, pods]},
    {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]},
  validations: [
    {expression: "object.kind != 'ConfigMap' || object.metadata.labels.third == 'false'", message: every third is too large},
    {expression: "object.kind != 'Deployment' || object.spec.replicas < 2", messageExpression: "string(object.spec.replicas) + ' are too many'"},
    {expression: "object.kind != 'Pod' || !object.spec.containers.exists(c, c.securityContext.?privileged.orValue(false))", message: privileged}]}`

// existingBinding binds it where the objects are.
const existingBinding = `{policyName: existing.example.com, validationActions: [Deny],
  matchResources: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [existing-a, existing-b]}]}}}`

// TestExistingObjects: a preview of objects that exist counts what becomes of those
// that its caller may list, and a dry run of a policy or binding tells of them.
func TestExistingObjects(t *testing.T) {
	furnish(t)
	author := func(name string, more ...rbacv1.PolicyRule) *person {
		rules := append([]rbacv1.PolicyRule{
			{APIGroups: []string{oursVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{APIGroups: []string{"authors.example.com"}, Resources: []string{name}, Verbs: []string{"get"}},
		}, more...)
		grant(t, "", "existing-"+name, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}, rules...)
		p := user(t, name)
		waitMay(t, p, &authorizationv1.ResourceAttributes{Verb: "get", Group: "authors.example.com", Resource: name})
		return p
	}
	lists := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list"}}
	}
	lister := author("lister", lists("", "configmaps", "pods"), lists("apps", "deployments"))
	local := author("local", lists("apps", "deployments"))
	grant(t, existingNamespaces[1], "local", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "local"}, lists("", "configmaps"))
	waitMay(t, local, &authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: existingNamespaces[1]})

	t.Run("Counts", func(t *testing.T) { testCounts(t, lister, local) })
	t.Run("DryRun", func(t *testing.T) { testDryRun(t, lister, local) })
	t.Run("Kubectl", func(t *testing.T) { testDryRunByKubectl(t, lister) })
}

func testCounts(t *testing.T, lister, local *person) {
	candidates := []string{existingPolicy, existingBinding}
	tests := []struct {
		name    string
		asker   *person
		objects string
		want    string
	}{
		{"ConfigMaps", lister, `{resource: {resource: configmaps}, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 24, allowed 16, denied 8, first existing-a/c00: every third is too large"},
		{"ConfigMaps of a namespace", lister, `{resource: {resource: configmaps}, namespace: existing-b, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 12, allowed 8, denied 4, first existing-b/c00: every third is too large"},
		{"some ConfigMaps", lister, `{resource: {resource: configmaps}, namespace: existing-b, labelSelector: {matchLabels: {third: 'true'}}}`, "judged 4, allowed 0, denied 4, first existing-b/c00: every third is too large"},
		{"as many as may be", lister, `{resource: {resource: configmaps}, limit: 5, namespace: existing-a, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 5, allowed 3, denied 2, truncated, first existing-a/c00: every third is too large"},
		{"exactly as many", lister, `{resource: {resource: configmaps}, limit: 12, namespace: existing-a, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 12, allowed 8, denied 4, first existing-a/c00: every third is too large"},
		{"Deployments", lister, `{resource: {group: apps, resource: deployments}, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 8, allowed 4, denied 4, first existing-a/d2: 2 are too many"},
		{"Deployments that go", lister, `{resource: {group: apps, resource: deployments}, operation: DELETE, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 8, allowed 8, denied 0"},
		{"Deployments that are updated", lister, `{resource: {group: apps, version: v1, resource: deployments}, operation: UPDATE, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 8, allowed 4, denied 4, first existing-a/d2: 2 are too many"},
		{"Pods", lister, `{resource: {resource: pods}, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 6, allowed 4, denied 2, first existing-a/p1: privileged"},
		{"none", lister, `{resource: {resource: pods}, labelSelector: {matchLabels: {existing: 'no'}}}`, "judged 0, allowed 0, denied 0"},
		{"all of what may be listed in one namespace", local, `{resource: {resource: configmaps}}`, `configmaps is forbidden: User "local" cannot list resource "configmaps" in API group "" at the cluster scope: needed to have the existing objects judged`},
		{"what may be listed in one namespace", local, `{resource: {resource: configmaps}, namespace: existing-b, labelSelector: {matchLabels: {existing: 'yes'}}}`, "judged 12, allowed 8, denied 4, first existing-b/c00: every third is too large"},
		{"what the server may not list", admin, `{resource: {group: rbac.authorization.k8s.io, resource: roles}}`, `the existing roles.rbac.authorization.k8s.io cannot be listed: listing Role: roles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:portcullis-system:portcullis" cannot list resource "roles" in API group "rbac.authorization.k8s.io" at the cluster scope; grant this server get, list and watch on roles.rbac.authorization.k8s.io`},
		{"too many", lister, `{resource: {resource: configmaps}, limit: 5001}`, `AdmissionPreview.policy.portcullis.dev "" is invalid: spec.objects.limit: Invalid value: 5001: must be between 1 and 5000`},
		{"what is not served", lister, `{resource: {resource: gadgets}}`, `AdmissionPreview.policy.portcullis.dev "" is invalid: spec.objects.resource: Invalid value: "gadgets": the cluster has no gadgets`},
		{"what is not stored", lister, `{resource: {group: authorization.k8s.io, resource: subjectaccessreviews}}`, `AdmissionPreview.policy.portcullis.dev "" is invalid: spec.objects.resource: Invalid value: "subjectaccessreviews.authorization.k8s.io": no policy judges`},
	}
	for _, test := range tests {
		question := &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{StoredPolicies: v1alpha1.IgnoreStoredPolicies, Objects: &v1alpha1.PreviewObjects{}}}
		decode(t, test.objects, question.Spec.Objects)
		for i, kind := range []string{policyKind, bindingKind} {
			question.Spec.Policies = append(question.Spec.Policies, *raw(t, made(t, oursVersion, kind, "existing.example.com", candidates[i])))
		}
		status, err := preview(t.Context(), test.asker, question)
		got := told(err)
		if err == nil {
			got = counts(status)
		}
		if !strings.HasPrefix(got, test.want) || err == nil && got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

func counts(status *v1alpha1.AdmissionPreviewStatus) string {
	of := status.Objects
	text := fmt.Sprintf("judged %d, allowed %d, denied %d", of.Judged, of.Allowed, of.Denied)
	for name, count := range map[string]int32{"error": of.Error, "changed": of.Changed, "remaining": of.Remaining} {
		if count > 0 {
			text += fmt.Sprintf(", %s %d", name, count)
		}
	}
	if of.Truncated {
		text += ", truncated"
	}
	if len(of.Failures) > 0 {
		first := of.Failures[0]
		_, message, _ := strings.Cut(first.Message, "denied request: ")
		text += fmt.Sprintf(", first %s/%s: %s", first.Object.Namespace, first.Object.Name, message)
	}
	return text
}

// testDryRun: what a dry run says about objects that exist is what their writer may
// list, and writes nothing.
func testDryRun(t *testing.T, lister, local *person) {
	t.Helper()
	const name = "existing.example.com"
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	ofPolicy := func(p *person) error {
		policy := &v1alpha1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		decode(t, existingPolicy, &policy.Spec)
		_, err := p.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), policy, dry)
		return err
	}
	ofBinding := func(p *person) error {
		binding := &v1alpha1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		decode(t, existingBinding, &binding.Spec)
		_, err := p.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, dry)
		return err
	}
	expect := func(what string, p *person, write func(*person) error, parts ...string) {
		t.Helper()
		heard, err := hear(p, write)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, part := range parts {
			if !strings.Contains(strings.Join(heard, "\n"), part) {
				t.Errorf("%s: got\n%s\nwant %s", what, strings.Join(heard, "\n"), part)
			}
		}
	}
	const remark = "no stored binding names the policy: existing objects are judged as if one did, everywhere, with the action Deny"
	expect("a policy", lister, ofPolicy, remark,
		"8 of ", " existing configmaps would be denied, the first: existing-a/c00: every third is too large",
		" existing pods would be denied, the first: existing-a/p1: privileged",
		" existing deployments.apps would be denied, the first: existing-a/d2: 2 are too many")
	expect("a policy of who may list Deployments", local, ofPolicy, remark, "4 of ", " existing deployments.apps would be denied",
		"existing objects not looked at: configmaps (you may not list them), pods (you may not list them)")
	expect("a binding of no policy", lister, ofBinding, `existing objects are not looked at: the policy "existing.example.com" is not stored`)
	storePolicy(t, newPolicy(t, name, existingPolicy))
	expect("a binding", lister, ofBinding, "8 of ", " existing configmaps would be denied, the first: existing-a/c00", "2 of ", " existing pods would be denied", "4 of ", " existing deployments.apps would be denied")
	if _, err := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		t.Error("a dry run has stored the binding")
	}
	if heard, err := hear(lister, func(p *person) error {
		binding := newBinding(t, "existing-nowhere.example.com", `{policyName: existing.example.com}`)
		_, err := p.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
		t.Cleanup(func() {
			ignoreAbsence(t, admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{}))
		})
		return err
	}); err != nil || strings.Contains(strings.Join(heard, ""), "existing") {
		t.Errorf("a write that is none: got %q, %v, want no look at existing objects", heard, err)
	}
}

// testDryRunByKubectl: kubectl shows the warnings of a dry run.
func testDryRunByKubectl(t *testing.T, lister *person) {
	t.Helper()
	manifest := made(t, oursVersion, policyKind, "existing-kubectl.example.com", existingPolicy)
	text, err := yaml.Marshal(manifest.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range [][]string{{"create"}, {"apply"}, {"apply", "--server-side"}} {
		command := shared.Kubectl(t.Context(), lister.kubeconfig, append(verb, "--dry-run=server", "-f", "-")...)
		command.Stdin = strings.NewReader(string(text))
		said, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "existing pods would be denied, the first: existing-a/p1: privileged") || !strings.Contains(string(said), "(server dry run)") {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(verb, " "), err, said)
		}
	}
}
