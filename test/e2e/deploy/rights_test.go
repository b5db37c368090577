// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

const serviceAccount = "system:serviceaccount:portcullis-system:portcullis"

// TestRights: the servers ask for nothing that they may not do, and of what the
// manifests allow them they need every resource, name and verb.
func TestRights(t *testing.T) {
	client, err := kubernetes.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	e := newEmergency(t, shared)
	e.breakGlass("+1 day")
	e.restored("refused")
	askDirectly(t)
	preview(t)
	if output, err := shell(t, shared.ControlPlane, e.kubeconfig, "kubectl get pvap"); err == nil || !strings.Contains(output, "cannot list") {
		t.Errorf("an operator reads policies: error %v: %s", err, output)
	}
	restart(t, shared)

	var own []auditv1.Event
	for _, event := range audited(t, shared.ControlPlane) {
		if event.User.Username != serviceAccount {
			continue
		}
		own = append(own, event)
		if event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s", event.Verb, event.RequestURI)
		}
	}
	for _, replica := range shared.Replicas {
		if log, err := os.ReadFile(replica.LogFile()); err != nil || bytes.Contains(log, []byte("forbidden")) {
			t.Errorf("the log of %s tells of what is forbidden, error %v", replica.Identity, err)
		}
	}
	rules := rulesOf(t, client)
	for role, rules := range rules {
		for _, rule := range rules {
			for _, problem := range unused(rule, own) {
				t.Errorf("%s: of the rule %s nobody needs %s", role, encoded(t, rule), problem)
			}
		}
	}
	for _, resource := range []string{"tokenreviews", "subjectaccessreviews"} {
		if !slices.ContainsFunc(own, func(event auditv1.Event) bool { return event.ObjectRef != nil && event.ObjectRef.Resource == resource }) {
			t.Errorf("system:auth-delegator: nobody needs %s", resource)
		}
	}
	t.Logf("%d requests of the servers against %d roles", len(own), len(rules))
}

// preview asks about what the servers do not hold in memory: a Namespace that is not
// there, and an object of a custom kind that is not in the cluster.
func preview(t *testing.T) {
	t.Helper()
	makeKind(t, shared.ControlPlane, "cert-manager.io", "issuers", "Namespaced")
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"nowhere"}}`
	output := must(t, shared.ControlPlane, `{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"AdmissionPreview","spec":{"request":{"object":`+configMap+`},
"cluster":[{"apiVersion":"cert-manager.io/v1","kind":"Issuer","metadata":{"name":"limit","namespace":"default"}}],
"policies":[{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"p"},"spec":{
"matchConstraints":{"namespaceSelector":{"matchLabels":{"a":"b"}},"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
"validations":[{"expression":"true"}]}},
{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}},
{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"q"},"spec":{"paramKind":{"apiVersion":"cert-manager.io/v1","kind":"Issuer"},
"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},"validations":[{"expression":"params.metadata.name == 'limit'"}]}},
{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"q"},"spec":{"policyName":"q","validationActions":["Deny"],
"paramRef":{"name":"limit","namespace":"default","parameterNotFoundAction":"Deny"}}}]}}`, "create", "-o", "json", "-f", "-")
	if !strings.Contains(output, `namespaces \"nowhere\" not found`) {
		t.Errorf("nobody has asked for the Namespace: %s", output)
	}
}

// askDirectly asks a replica on its own port, with a token.
func askDirectly(t *testing.T) {
	t.Helper()
	config := &rest.Config{Host: "https://" + shared.Replicas[0].Address, BearerToken: "unknown", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	direct, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := direct.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token that nobody knows: got %s, error %v: %s", response.Status, err, body)
	}
}

// rulesOf are those of the roles that the manifests give to the service account alone.
// Leases are not in the audit log, and the processes of the tests reach their etcd
// without certificates.
func rulesOf(t *testing.T, client kubernetes.Interface) map[string][]rbacv1.PolicyRule {
	t.Helper()
	all := map[string][]rbacv1.PolicyRule{}
	for _, name := range []string{"portcullis:server", "portcullis:serving-certificate"} {
		wide, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		narrow, err := client.RbacV1().Roles(cluster.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all["ClusterRole "+name] = wide.Rules
		all["Role "+name] = slices.DeleteFunc(narrow.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") })
	}
	return all
}

// unused are the parts of a rule that no event needs.
func unused(rule rbacv1.PolicyRule, events []auditv1.Event) (parts []string) {
	needed := map[string]bool{}
	for _, event := range events {
		ref := event.ObjectRef
		if ref == nil || !slices.Contains(rule.APIGroups, ref.APIGroup) || !slices.Contains(rule.Resources, ref.Resource) || !slices.Contains(rule.Verbs, event.Verb) {
			continue
		}
		name := ref.Name
		if _, selected, found := strings.Cut(event.RequestURI, "fieldSelector=metadata.name%3D"); found && name == "" {
			name, _, _ = strings.Cut(selected, "&")
		}
		if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, name) {
			continue
		}
		for _, part := range []string{ref.APIGroup, ref.Resource, event.Verb, name} {
			needed[part] = true
		}
		// What a watch begins with is a list for an older kube-apiserver, and when it fails.
		needed["list"] = needed["list"] || event.Verb == "watch" && strings.Contains(event.RequestURI, "sendInitialEvents=true")
	}
	for _, part := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames) {
		if !needed[part] {
			parts = append(parts, part)
		}
	}
	return parts
}

// TestRightsToWrite: what the servers may write is theirs, and they make and delete
// nothing but leases.
func TestRightsToWrite(t *testing.T) {
	kubeconfig, err := shared.ServiceAccountKubeconfig(t.Context(), cluster.Namespace, cluster.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	everywhere := []string{
		// What everybody may ask.
		"create authentication.k8s.io/selfsubjectreviews", "create authorization.k8s.io/selfsubjectaccessreviews", "create authorization.k8s.io/selfsubjectrulesreviews",
		"create authentication.k8s.io/tokenreviews", "create authorization.k8s.io/subjectaccessreviews",
		"patch apiregistration.k8s.io/apiservices/v1alpha1.policy.portcullis.dev",
		"patch admissionregistration.k8s.io/validatingwebhookconfigurations/portcullis", "patch admissionregistration.k8s.io/validatingwebhookconfigurations/portcullis-direct",
		"patch admissionregistration.k8s.io/mutatingwebhookconfigurations/portcullis", "patch admissionregistration.k8s.io/mutatingwebhookconfigurations/portcullis-direct",
	}
	at := map[string][]string{
		"default": everywhere, "kube-system": everywhere,
		cluster.Namespace: append(slices.Clone(everywhere),
			"create coordination.k8s.io/leases", "update coordination.k8s.io/leases", "delete coordination.k8s.io/leases",
			"update /secrets/portcullis-serving", "update /secrets/portcullis-etcd"),
	}
	for namespace, want := range at {
		review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := writes(review.Status.ResourceRules)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("in %s: got\n%s\nwant\n%s", namespace, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// writes are what rules allow besides reading.
func writes(rules []authorizationv1.ResourceRule) (all []string) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			if verb == "get" || verb == "list" || verb == "watch" {
				continue
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s/%s/%s", verb, group, resource, name), "/"))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
