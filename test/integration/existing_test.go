// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// listers let jane preview, write policies, and list Deployments; the user local may
// list them in the namespace shop alone.
const listers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: author}
rules:
- {apiGroups: [policy.portcullis.dev], resources: ['*'], verbs: [create, update, patch, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: author}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: author}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: local}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lister}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lister}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lister}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lister, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lister}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: local}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {environment: test}}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden, namespace: shop}
`

// existingDeployments returns 30 Deployments in each of two namespaces, with 0 to 29
// replicas, of which every other one has the label even.
func existingDeployments() string {
	var text strings.Builder
	for _, namespace := range []string{"shop", "default"} {
		for i := range 30 {
			fmt.Fprintf(&text, "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d%02d, namespace: %s, labels: {even: '%v'}}, spec: {replicas: %d}}\n", i, namespace, i%2 == 0, i)
		}
	}
	return text.String()
}

// TestExisting runs every test below on one server that has existing objects.
func TestExisting(t *testing.T) {
	objects, files := t.TempDir(), t.TempDir()
	writeFile(t, objects, "listers.yaml", listers+existingDeployments())
	tokens := writeFile(t, files, "tokens.csv", "jane-token,jane,1\nlocal-token,local,2\n")
	a := newAPI(t, harness.WithObjects(objects), harness.WithUsers("", tokens))
	tests := []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"Preview", testPreviewExisting},
		{"Rights", testPreviewExistingRights},
		{"Refused", testPreviewExistingRefused},
		{"Documented", testExistingDocumented},
		{"DryRun", testForecast},
		{"DryRunRights", testForecastRights},
		{"Kubectl", testForecastByKubectl},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.reset(t)
			a.settle(t)
			test.run(t, a)
		})
	}
}

func deploymentObjects() *v1alpha1.PreviewObjects {
	return &v1alpha1.PreviewObjects{Resource: v1alpha1.GroupVersionResource{Group: "apps", Resource: "deployments"}}
}

func testPreviewExisting(t *testing.T, a *api) {
	candidates := []any{newPolicy("p"), newBinding("b", "p")}
	inShop := deploymentObjects()
	inShop.Namespace, inShop.Limit = "shop", 10
	even := deploymentObjects()
	even.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"even": "true"}}
	updates := deploymentObjects()
	updates.Operation = "UPDATE"
	tests := []struct {
		name    string
		objects *v1alpha1.PreviewObjects
		want    string // counts, then how many failures and the first
	}{
		{"all", deploymentObjects(), "60 judged, 12 allowed, 48 denied, 0 error, 0 changed, 20: default/d06"},
		{"of a namespace, as many as may be", inShop, "10 judged, 6 allowed, 4 denied, 0 error, 0 changed, truncated, 4: shop/d06"},
		{"by label", even, "30 judged, 6 allowed, 24 denied, 0 error, 0 changed, 20: default/d06"},
		{"another operation", updates, "60 judged, 60 allowed, 0 denied, 0 error, 0 changed"},
	}
	for _, test := range tests {
		spec := v1alpha1.AdmissionPreviewSpec{Objects: test.objects}
		for _, candidate := range candidates {
			spec.Policies = append(spec.Policies, *raw(string(encode(t, candidate))))
		}
		status := a.preview(t, spec)
		got := status.Objects
		text := fmt.Sprintf("%d judged, %d allowed, %d denied, %d error, %d changed", got.Judged, got.Allowed, got.Denied, got.Error, got.Changed)
		if got.Truncated {
			text += ", truncated"
		}
		if len(got.Failures) > 0 {
			text += fmt.Sprintf(", %d: %s/%s", len(got.Failures), got.Failures[0].Object.Namespace, got.Failures[0].Object.Name)
		}
		if text != test.want || status.Allowed != (got.Denied == 0) {
			t.Errorf("%s: got allowed %v: %s, want %s", test.name, status.Allowed, text, test.want)
		}
		if got.Denied > 0 && (len(got.Failures[0].Evaluations) != 1 || string(got.Failures[0].Evaluations[0].Values["object.spec.replicas"].Raw) != "6") {
			t.Errorf("%s: the first is not explained: %+v", test.name, got.Failures[0])
		}
	}

	// The same for stored ones, of a namespace that is laid over the cluster, too.
	a.createPolicy(t, newPolicy("stored"))
	a.createBinding(t, newBinding("stored", "stored"))
	a.waitForCondition(t, "stored", "Ready", inForce)
	laid := deploymentObjects()
	laid.Namespace = "laid"
	status := a.preview(t, v1alpha1.AdmissionPreviewSpec{Objects: laid, Cluster: []runtime.RawExtension{
		*raw(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"laid","namespace":"laid"},"spec":{"replicas":6}}`),
		*raw(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"laid"}}`),
	}})
	const message = "ValidatingAdmissionPolicy 'stored' with binding 'stored' denied request: too many"
	if got := status.Objects; got.Judged != 1 || len(got.Failures) != 1 || got.Failures[0].Message != message {
		t.Errorf("got %+v, want the message %q", got, message)
	}
}

func (a *api) withToken(t *testing.T, token string) versioned.Interface {
	t.Helper()
	return a.as(t, a.As(token))
}

func testPreviewExistingRights(t *testing.T, a *api) {
	of := func(resource, namespace string) *v1alpha1.PreviewObjects {
		group := ""
		if resource == "deployments" {
			group = "apps"
		}
		return &v1alpha1.PreviewObjects{Resource: v1alpha1.GroupVersionResource{Group: group, Resource: resource}, Namespace: namespace}
	}
	tests := []struct {
		token     string
		objects   *v1alpha1.PreviewObjects
		forbidden string
	}{
		{"jane-token", of("deployments", ""), ""},
		{"jane-token", of("secrets", ""), `secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope: needed to have the existing objects judged`},
		{"jane-token", of("secrets", "shop"), `secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "shop": needed to have the existing objects judged`},
		{"local-token", of("deployments", "shop"), ""},
		{"local-token", of("deployments", ""), `deployments.apps is forbidden: User "local" cannot list resource "deployments" in API group "apps" at the cluster scope: needed to have the existing objects judged`},
	}
	for _, test := range tests {
		answer, err := a.withToken(t, test.token).PolicyV1alpha1().AdmissionPreviews().Create(t.Context(),
			&v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{Objects: test.objects}}, metav1.CreateOptions{})
		switch {
		case test.forbidden == "" && (err != nil || answer.Status.Objects.Judged == 0):
			t.Errorf("%s: got %v, %v", test.token, answer, err)
		case test.forbidden != "" && (!apierrors.IsForbidden(err) || err.Error() != test.forbidden):
			t.Errorf("%s: got %v, want %s", test.token, err, test.forbidden)
		}
	}
}

func testPreviewExistingRefused(t *testing.T, a *api) {
	negative, unknown, selecting := deploymentObjects(), deploymentObjects(), deploymentObjects()
	negative.Limit = -1
	unknown.Resource.Resource = "widgets"
	selecting.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	tests := []struct {
		spec v1alpha1.AdmissionPreviewSpec
		want string
	}{
		{v1alpha1.AdmissionPreviewSpec{Objects: negative}, "spec.objects.limit: Invalid value: -1: must be between 1 and 5000"},
		{v1alpha1.AdmissionPreviewSpec{Objects: unknown}, `spec.objects.resource: Invalid value: "widgets.apps": the cluster has no widgets.apps`},
		{v1alpha1.AdmissionPreviewSpec{Objects: selecting}, `spec.objects.labelSelector.matchLabels: Invalid value: "a b": name part must consist of`},
		{v1alpha1.AdmissionPreviewSpec{Objects: deploymentObjects(), Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}}, "spec.objects: Forbidden: ask about one request, or about existing objects"},
		{v1alpha1.AdmissionPreviewSpec{}, "spec.request: Required value: say which request to judge, an object at least; or with objects, which existing ones"},
	}
	for _, test := range tests {
		_, err := a.client.PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{Spec: test.spec}, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// testExistingDocumented: kubectl explain knows every field, and none is required.
func testExistingDocumented(t *testing.T, a *api) {
	schemas := a.openAPI(t).Components.Schemas
	for _, name := range []string{"PreviewObjects", "ObjectsStatus", "ObjectFailure"} {
		schema, ok := schemas[schemaPrefix+name]
		if !ok || len(schema.Required) > 0 {
			t.Errorf("%s: found %v, required %v", name, ok, schema)
			continue
		}
		for field, property := range schema.Properties {
			if property.Description == "" {
				t.Errorf("%s.%s has no documentation", name, field)
			}
		}
	}
}

// warned keeps the warnings that a client is given.
type warned []string

func (w *warned) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

func (a *api) warnedClient(t *testing.T, config *rest.Config) (versioned.Interface, *warned) {
	t.Helper()
	heard := &warned{}
	config = rest.CopyConfig(config)
	config.WarningHandler = heard
	return a.as(t, config), heard
}

func testForecast(t *testing.T, a *api) {
	client, heard := a.warnedClient(t, a.Config)
	policies, bindings := client.PolicyV1alpha1().ValidatingAdmissionPolicies(), client.PolicyV1alpha1().ValidatingAdmissionPolicyBindings()
	dry := []string{metav1.DryRunAll}
	wantWarnings := func(what string, err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !slices.Equal(*heard, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(*heard, "\n"), strings.Join(want, "\n"))
		}
		*heard = nil
	}
	const (
		everywhere = "no stored binding names the policy: existing objects are judged as if one did, everywhere, with the action Deny"
		denied     = "48 of 60 existing deployments.apps would be denied, the first: default/d06: too many"
	)
	_, err := policies.Create(t.Context(), newPolicy("p"), metav1.CreateOptions{DryRun: dry})
	wantWarnings("a policy without a binding", err, everywhere, denied)
	_, err = bindings.Create(t.Context(), newBinding("b", "p"), metav1.CreateOptions{DryRun: dry})
	wantWarnings("a binding without a policy", err, `existing objects are not looked at: the policy "p" is not stored`)

	_, err = policies.Create(t.Context(), newPolicy("p"), metav1.CreateOptions{})
	wantWarnings("a policy that is stored", err)
	b := newBinding("b", "p")
	b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "test"}}}
	_, err = bindings.Create(t.Context(), b, metav1.CreateOptions{DryRun: dry})
	wantWarnings("a binding for less", err, "24 of 60 existing deployments.apps would be denied, the first: shop/d06: too many")
	_, err = bindings.Create(t.Context(), b, metav1.CreateOptions{})
	wantWarnings("a binding that is stored", err)
	a.waitForCondition(t, "p", "Ready", inForce)
	a.waitForCondition(t, "p", "TypeChecked", "True NoWarnings ") // nobody has anything left to write

	changed, err := policies.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed.Spec.Validations[0].Expression = "object.spec.replicas <= 28"
	_, err = policies.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: dry})
	wantWarnings("a change", err, "1 of 60 existing deployments.apps would be denied, the first: shop/d29: too many")
	changed.Spec.Validations[0].Expression = "object.spec.replicas <= 29"
	_, err = policies.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: dry})
	wantWarnings("a change that denies nothing", err, "none of 60 existing deployments.apps would be denied")
	applied := a.do(t, request{
		method: http.MethodPatch, path: policiesPath + "/p?fieldManager=test&force=true&dryRun=All", contentType: "application/apply-patch+yaml",
		body: encode(t, newPolicy("p")),
	})
	if got, want := applied.header.Values("Warning"), []string{`299 - "24 of 60 existing deployments.apps would be denied, the first: shop/d06: too many"`}; !slices.Equal(got, want) {
		t.Errorf("an apply: got %q, want %q", got, want)
	}
	refused := newPolicy("q")
	refused.Spec.Validations[0].Expression = "object.spec.replicas <= five"
	if _, err = policies.Create(t.Context(), refused, metav1.CreateOptions{DryRun: dry}); !apierrors.IsInvalid(err) || len(*heard) > 0 {
		t.Errorf("a policy that is refused: got %v and %q", err, *heard)
	}
	if names := a.policyNames(t, metav1.ListOptions{}); !slices.Equal(names, []string{"p"}) {
		t.Errorf("stored are %q", names)
	}
}

// testForecastRights: a writer hears nothing of objects that they may not list.
func testForecastRights(t *testing.T, a *api) {
	p := newPolicy("p")
	p.Spec.MatchConstraints.ResourceRules[0].Rule = admissionregistrationv1.Rule{
		APIGroups: []string{"apps", ""}, APIVersions: []string{"v1"}, Resources: []string{"deployments", "secrets"},
	}
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.kind != 'Secret' && object.spec.replicas <= 5", MessageExpression: "'it is ' + object.metadata.name"}}
	tests := []struct {
		token, want string
	}{
		{"jane-token", "48 of 60 existing deployments.apps would be denied, the first: default/d06: it is d06|existing objects not looked at: secrets (you may not list them)"},
		{"local-token", "existing objects not looked at: deployments.apps (you may not list them), secrets (you may not list them)"},
	}
	for _, test := range tests {
		client, heard := a.warnedClient(t, a.As(test.token))
		if _, err := client.PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("%s: %v", test.token, err)
		}
		if got := strings.Join(*heard, "|"); !strings.HasSuffix(got, test.want) || strings.Contains(got, "hidden") {
			t.Errorf("%s: got %s\nwant %s", test.token, got, test.want)
		}
	}
}

func testForecastByKubectl(t *testing.T, a *api) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, encode(t, newPolicy("p")), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), kubectl, "create", "--dry-run=server", "-f", file, "--kubeconfig", a.Kubeconfig)
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if want := "Warning: 48 of 60 existing deployments.apps would be denied, the first: default/d06: too many\n"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: kubectl says\n%s\nwant\n%s", err, out, want)
	}
	explain := exec.CommandContext(t.Context(), kubectl, "explain", "admissionpreviews.spec.objects.limit", "--kubeconfig", a.Kubeconfig)
	explain.Env = command.Env
	if out, err = explain.CombinedOutput(); err != nil || !strings.Contains(string(out), "500 when absent") {
		t.Errorf("%v: kubectl explains\n%s", err, out)
	}
}
