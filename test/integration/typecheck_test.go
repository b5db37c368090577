// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	typedDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.types.example.com}
spec:
  group: types.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s: {type: string}}}}}
`
	untyped = "True NothingToCheck no rule names a type that is known: wildcards, subresources and what nobody serves are not checked"
)

// typed makes a policy on a kind with one expression.
func typed(name, group, resource, expression string) *v1alpha1.ValidatingAdmissionPolicy {
	p := newPolicy(name)
	p.Spec.MatchConstraints.ResourceRules[0].Rule = admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
	}
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: expression}}
	return p
}

// TestTypeChecks runs every test below on one server, and changes the files of
// --objects while it serves.
func TestTypeChecks(t *testing.T) {
	objects := manifests(t.TempDir())
	a := newAPI(t, harness.WithObjects(string(objects)))
	tests := []struct {
		name string
		run  func(*testing.T, *api, manifests)
	}{
		{"Status", testTypeStatus},
		{"Definitions", testTypeDefinitions},
		{"Warnings", testTypeWarnings},
		{"Kubectl", testTypeKubectl},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.reset(t)
			test.run(t, a, objects)
		})
	}
}

func testTypeStatus(t *testing.T, a *api, _ manifests) {
	p := typed("p", "apps", "deployments", "object.replicas > 1")
	p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "m", Expression: "object.metadata.nam == 'x'"}}
	a.createPolicy(t, p)
	const wrong = "False TypeWarnings spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'; " +
		"spec.matchConditions[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:16: undefined field 'nam'"
	got := a.waitForCondition(t, "p", "TypeChecked", wrong)
	// Beyond what kube-controller-manager would write, there is only the condition.
	want := []admissionregistrationv1.ExpressionWarning{{
		FieldRef: "spec.validations[0].expression",
		Warning:  "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n",
	}}
	if got.Status.ObservedGeneration != 1 || got.Status.TypeChecking == nil || !slices.Equal(got.Status.TypeChecking.ExpressionWarnings, want) {
		t.Errorf("the status is %+v, want generation 1 and %v", got.Status, want)
	}
	a.waitForCondition(t, "p", "Ready", unbound) // both writers have written

	a.getAndUpdate(t, "p", func(p *v1alpha1.ValidatingAdmissionPolicy) {
		p.Spec.Validations[0].Expression, p.Spec.MatchConditions = "object.spec.replicas > 1", nil
	})
	got = a.waitForCondition(t, "p", "TypeChecked", "True NoWarnings every expression fits apps/v1, Kind=Deployment")
	if got.Status.ObservedGeneration != 2 || got.Status.TypeChecking == nil || len(got.Status.TypeChecking.ExpressionWarnings) > 0 {
		t.Errorf("the status is %+v, want generation 2 and an empty typeChecking", got.Status)
	}
	a.waitForCondition(t, "p", "Ready", unbound)
}

func testTypeDefinitions(t *testing.T, a *api, objects manifests) {
	a.createPolicy(t, typed("p", "types.example.com", "widgets", "object.spec.size == 'x'"))
	params := typed("params", "apps", "deployments", "params.spec.size == 'x'")
	params.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "types.example.com/v1", Kind: "Widget"}
	a.createPolicy(t, params)
	a.waitForCondition(t, "p", "TypeChecked", untyped)
	a.waitForCondition(t, "params", "TypeChecked", "True NoWarnings ")

	objects.write(t, "widgets.yaml", fmt.Sprintf(typedDefinition, "size"))
	a.waitForCondition(t, "p", "TypeChecked", "True NoWarnings every expression fits types.example.com/v1, Kind=Widget")

	objects.write(t, "widgets.yaml", fmt.Sprintf(typedDefinition, "length"))
	a.waitForCondition(t, "p", "TypeChecked", "False TypeWarnings spec.validations[0].expression: types.example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'size'")
	a.waitForCondition(t, "params", "TypeChecked", "False TypeWarnings spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'size'")

	objects.remove(t, "widgets.yaml")
	a.waitForCondition(t, "p", "TypeChecked", untyped)
	got := a.waitForCondition(t, "params", "TypeChecked", "True NoWarnings ")
	if len(got.Status.TypeChecking.ExpressionWarnings) > 0 {
		t.Errorf("warnings stay: %v", got.Status.TypeChecking)
	}
}

func testTypeWarnings(t *testing.T, a *api, _ manifests) {
	wrong := encode(t, typed("p", "apps", "deployments", "object.replicas > 1 ||\n  object.spec.foo == 'ü'"))
	fits := encode(t, typed("p", "apps", "deployments", "object.spec.replicas > 1"))
	want := []string{`299 - "spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'; ERROR: <input>:2:14: undefined field 'foo'"`}
	const (
		named  = policiesPath + "/p"
		dryRun = "?dryRun=All"
		apply  = "application/apply-patch+yaml"
	)
	tests := []struct {
		name    string
		request request
		want    []string
	}{
		{"dry run", request{method: http.MethodPost, path: policiesPath + dryRun, body: wrong}, want},
		{"dry run of what fits", request{method: http.MethodPost, path: policiesPath + dryRun, body: fits}, nil},
		{"apply", request{method: http.MethodPatch, path: named + "?fieldManager=test", body: wrong, contentType: apply}, want},
		{"apply again", request{method: http.MethodPatch, path: named + "?fieldManager=test", body: wrong, contentType: apply}, want},
		{"status", request{method: http.MethodPatch, path: named + "/status", body: []byte(`{"status":{}}`), contentType: "application/merge-patch+json"}, nil},
		{"label", request{method: http.MethodPatch, path: named, body: []byte(`{"metadata":{"labels":{"a":"b"}}}`), contentType: "application/merge-patch+json"}, want},
		{"dry run of a change", request{method: http.MethodPatch, path: named + dryRun, body: []byte(`{"spec":{"validations":[{"expression":"true"}]}}`), contentType: "application/merge-patch+json"}, nil},
		{"refused", request{method: http.MethodPost, path: policiesPath + dryRun, body: encode(t, typed("q", "apps", "deployments", "object.replicas +"))}, nil},
		{"binding", request{method: http.MethodPost, path: groupPath + "/validatingadmissionpolicybindings" + dryRun, body: encode(t, newBinding("b", "p"))}, nil},
	}
	for _, test := range tests {
		got := a.do(t, test.request)
		if (got.code >= 300) != (test.name == "refused") {
			t.Errorf("%s: HTTP %d: %s", test.name, got.code, got.body)
		}
		if warnings := got.header.Values("Warning"); !slices.Equal(warnings, test.want) {
			t.Errorf("%s: got warnings %q, want %q", test.name, warnings, test.want)
		}
	}
}

func testTypeKubectl(t *testing.T, a *api, _ manifests) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	home := manifests(t.TempDir())
	home.write(t, "policy.json", string(encode(t, typed("p", "apps", "deployments", "object.replicas > 1"))))
	command := exec.CommandContext(t.Context(), kubectl, "create", "--dry-run=server", "-f", string(home)+"/policy.json", "--kubeconfig", a.Kubeconfig)
	command.Env = []string{"HOME=" + string(home)}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const want = "Warning: spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n"
	if !strings.Contains(string(out), want) || !strings.Contains(string(out), "p created (server dry run)") {
		t.Errorf("kubectl says\n%s\nwant\n%s", out, want)
	}
}
