// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestTypesOfDefinitions: expressions are checked against the schemas that the cluster
// has at the time, of what is judged and of params.
func TestTypesOfDefinitions(t *testing.T) {
	const name, group = "types.example.com", "types.example.com"
	define(t, group, "v1")
	policy := newPolicy(t, name, `{paramKind: {apiVersion: `+group+`/v1, kind: Limit},
	  matchConstraints: {resourceRules: [{apiGroups: [`+group+`], apiVersions: [v1], operations: [CREATE], resources: [limits]}]},
	  validations: [{expression: "object.spec.max < 10"}, {expression: "object.spec.least > 1"}, {expression: "params.spec.names.exists(n, n == 1)"}]}`)
	const undefined = "spec.validations[1].expression: " + group + "/v1, Kind=Limit: ERROR: <input>:1:12: undefined field 'least'"
	eventually(t, "warnings of a write", func(ctx context.Context) error {
		warnings, err := hear(admin, func(p *person) error {
			_, err := p.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
		if err != nil {
			return err
		}
		for _, part := range []string{undefined, "spec.validations[2].expression", "no matching overload for '_==_' applied to '(string, int)'"} {
			if !strings.Contains(strings.Join(warnings, "\n"), part) {
				return fmt.Errorf("got\n%s\nwant also %q", strings.Join(warnings, "\n"), part)
			}
		}
		return nil
	})

	storePolicy(t, policy)
	checked := func(status metav1.ConditionStatus, parts ...string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the condition TypeChecked to be %s with %q", status, parts), func(ctx context.Context) error {
			got, err := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			condition := meta.FindStatusCondition(got.Status.Conditions, "TypeChecked")
			if condition == nil || condition.Status != status {
				return fmt.Errorf("got %+v", condition)
			}
			for _, part := range parts {
				if !strings.Contains(condition.Message, part) {
					return fmt.Errorf("got %s", condition.Message)
				}
			}
			if status == metav1.ConditionTrue && len(got.Status.TypeChecking.ExpressionWarnings) > 0 {
				return fmt.Errorf("got %+v", got.Status.TypeChecking)
			}
			return nil
		})
	}
	checked(metav1.ConditionFalse, undefined, "spec.validations[2]")
	schema := "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	patch := `[{"op": "add", "path": "` + schema + `least", "value": {"type": "integer"}}, {"op": "replace", "path": "` + schema + `names/items/type", "value": "integer"}]`
	if _, err := admin.objects.Resource(definitions).Patch(t.Context(), "limits."+group, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	checked(metav1.ConditionTrue)
	patch = `[{"op": "remove", "path": "` + schema + `max"}]`
	if _, err := admin.objects.Resource(definitions).Patch(t.Context(), "limits."+group, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	checked(metav1.ConditionFalse, "undefined field 'max'")
}

// warnings keeps the warnings of kube-apiserver.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// hear does something as p and returns the warnings.
func hear(p *person, do func(*person) error) ([]string, error) {
	heard := &warnings{}
	config := rest.CopyConfig(p.config)
	config.WarningHandler = heard
	listening, err := newPerson(config, p.kubeconfig)
	if err != nil {
		return nil, err
	}
	err = do(listening)
	return heard.texts, err
}

// TestExplain: kubectl explains our kinds from the schemas that the aggregator has, and
// those of the cluster go on being explained.
func TestExplain(t *testing.T) {
	const group = "explain.example.com"
	define(t, group, "v1")
	for path, parts := range map[string][]string{
		"pvap":                                 {"KIND:       ValidatingAdmissionPolicy", "GROUP:      policy.portcullis.dev", "VERSION:    v1alpha1", "spec\t<"},
		"pvap.spec.failurePolicy":              {"FIELD: failurePolicy <string>", "Ignore"},
		"pvap.spec.matchConstraints":           {"resourceRules\t<[]"},
		"pvapb.spec.paramRef":                  {"parameterNotFoundAction"},
		"admissionpreviews.spec.objects":       {"FIELD: objects <", "labelSelector", "limit\t<integer>"},
		"validatingadmissionpolicies":          {"GROUP:      admissionregistration.k8s.io"},
		"limits." + group + ".spec":            {"What is allowed."},
		"deployments.spec.replicas":            {"FIELD: replicas <integer>"},
		"admissionpreviews.status.evaluations": {"whyNot"},
	} {
		eventually(t, "kubectl explain "+path, func(ctx context.Context) error {
			command := shared.Kubectl(ctx, admin.kubeconfig, "explain", path)
			command.Env = append(command.Env, "KUBECACHEDIR="+t.TempDir()) // kubectl remembers the kinds of earlier tests
			said, err := command.CombinedOutput()
			for _, part := range parts {
				if err != nil || !strings.Contains(string(said), part) {
					return fmt.Errorf("%w: got\n%s\nwant also %q", err, said, part)
				}
			}
			return nil
		})
	}
	for _, review := range []string{"validations", "mutations"} {
		if said, err := shared.Run(t.Context(), admin.kubeconfig, "explain", review+".policy.portcullis.dev"); err == nil {
			t.Errorf("%s are explained, although their kind is one of another group: %s", review, said)
		}
	}
}
