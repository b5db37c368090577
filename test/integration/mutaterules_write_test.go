// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	applykyvernov1 "github.com/portcullis-dev/portcullis/pkg/generated/applyconfiguration/kyverno/v1"
	applyv1alpha1 "github.com/portcullis-dev/portcullis/pkg/generated/applyconfiguration/policy/v1alpha1"
)

func testPatchRules(t *testing.T, a *api) {
	a.createClusterPolicy(t, "p", mutateSpec)
	for patchType, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"replace","path":"/spec/rules/1/name","value":"one"}]`,
		types.MergePatchType:          `{"spec":{"applyRules":"One"}}`,
		types.StrategicMergePatchType: `{"spec":{"background":false}}`,
	} {
		if _, err := a.clusterPolicies().Patch(t.Context(), "p", patchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", patchType, err)
		}
	}
	p, err := a.clusterPolicies().Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Generation != 4 || p.Spec.Rules[1].Name != "one" || *p.Spec.ApplyRules != "One" || *p.Spec.Background {
		t.Errorf("patched is generation %d with %+v", p.Generation, p.Spec)
	}
	_, err = a.clusterPolicies().Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"rules":[]}}`), metav1.PatchOptions{})
	wantCauses(t, err, []string{"spec.rules"})
}

func testApplyRules(t *testing.T, a *api) {
	rule := func(name string) *applykyvernov1.RuleApplyConfiguration {
		return applykyvernov1.Rule().WithName(name).
			WithMatch(applykyvernov1.MatchResources().WithAny(applykyvernov1.ResourceFilter().WithResources(applykyvernov1.ResourceDescription().WithKinds("Pod")))).
			WithMutate(applykyvernov1.Mutation().WithPatchesJSON6902("[]"))
	}
	applied := func(rules ...*applykyvernov1.RuleApplyConfiguration) *applyv1alpha1.PolicyApplyConfiguration {
		return applyv1alpha1.Policy("p", "team-a").WithSpec(applykyvernov1.Spec().WithRules(rules...))
	}
	// The order of rules matters, so a list of them has one owner.
	for _, step := range []struct {
		manager string
		force   bool
		config  *applyv1alpha1.PolicyApplyConfiguration
		want    []string // nil is a conflict
	}{
		{"one", false, applied(rule("b"), rule("a")), []string{"b", "a"}},
		{"two", false, applied(rule("c")), nil},
		{"two", true, applied(rule("c")), []string{"c"}},
		{"two", false, applied(rule("c"), rule("a")), []string{"c", "a"}},
	} {
		p, err := a.policiesOf("team-a").Apply(t.Context(), step.config, metav1.ApplyOptions{FieldManager: step.manager, Force: step.force})
		if step.want == nil {
			wantReason(t, err, metav1.StatusReasonConflict)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, rule := range p.Spec.Rules {
			names = append(names, rule.Name)
		}
		if !slices.Equal(names, step.want) {
			t.Errorf("after %s there are the rules %v, want %v", step.manager, names, step.want)
		}
	}
	// Values that are any JSON are applied as they are.
	manifest := manifestOf(t, "ClusterPolicy", "q", mutateSpec)
	for range 2 {
		got := a.do(t, request{method: "PATCH", path: clusterPoliciesPath + "/q?fieldManager=one&fieldValidation=Strict", contentType: "application/apply-patch+yaml", body: manifest})
		if got.code != http.StatusCreated && got.code != http.StatusOK {
			t.Fatalf("%d: %s", got.code, got.body)
		}
	}
	q, err := a.clusterPolicies().Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil || q.Generation != 1 {
		t.Errorf("applied twice: %v, generation %d", err, q.Generation)
	}
}

func testRulesStatus(t *testing.T, a *api) {
	p := clusterPolicy(t, "p", mutateSpec)
	p.Status = v1alpha1.PolicyStatus{ObservedGeneration: 9}
	created, err := a.clusterPolicies().Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil || created.Status.ObservedGeneration == 9 {
		t.Fatalf("%v: created with the status %+v", err, created.Status)
	}
	patch := []byte(`{"status":{"conditions":[{"type":"Example","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]},"spec":{"rules":[]}}`)
	patched, err := a.clusterPolicies().Patch(t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(patched.Status.Conditions, "Example") || len(patched.Spec.Rules) != 2 || patched.Generation != 1 {
		t.Errorf("the status is written as %+v, with %d rules and generation %d", patched.Status, len(patched.Spec.Rules), patched.Generation)
	}
	_, err = a.clusterPolicies().Patch(t.Context(), "p", types.MergePatchType, []byte(`{"status":{"observedGeneration":-1}}`), metav1.PatchOptions{}, "status")
	wantCauses(t, err, []string{"status.observedGeneration"})
}

// testRulesReady: without a binding, too.
func testRulesReady(t *testing.T, a *api) {
	a.createClusterPolicy(t, "p", mutateSpec)
	if _, err := a.policiesOf("team-a").Create(t.Context(), namespacedPolicy(t, "team-a", "p", mutateSpec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await := func(kind string, status func(context.Context) (v1alpha1.PolicyStatus, error)) {
		t.Helper()
		var got v1alpha1.PolicyStatus
		err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(ctx context.Context) (bool, error) {
			var err error
			got, err = status(ctx)
			ready := meta.FindStatusCondition(got.Conditions, "Ready")
			return ready != nil && ready.Status == metav1.ConditionTrue && ready.Message == "its rules apply to the requests that they match" && got.ObservedGeneration == 1, err
		})
		if err != nil {
			t.Errorf("%s: %v: the status stays %+v", kind, err, got)
		}
	}
	await("ClusterPolicy", func(ctx context.Context) (v1alpha1.PolicyStatus, error) {
		p, err := a.clusterPolicies().Get(ctx, "p", metav1.GetOptions{})
		return p.Status, err
	})
	await("Policy", func(ctx context.Context) (v1alpha1.PolicyStatus, error) {
		p, err := a.policiesOf("team-a").Get(ctx, "p", metav1.GetOptions{})
		return p.Status, err
	})
}

func testRulesTables(t *testing.T, a *api) {
	a.createClusterPolicy(t, "p", mutateSpec)
	if _, err := a.policiesOf("team-a").Create(t.Context(), namespacedPolicy(t, "team-a", "p", mutateSpec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{clusterPoliciesPath, clusterPoliciesPath + "/p", namespacedPath, groupPath + "/policies"} {
		var table metav1.Table
		a.do(t, request{method: "GET", path: path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"}).decode(t, &table)
		var columns []string
		for _, column := range table.ColumnDefinitions {
			columns = append(columns, column.Name)
		}
		if want := []string{"Name", "Rules", "Ready", "Age"}; !slices.Equal(columns, want) {
			t.Errorf("%s: columns %v, want %v", path, columns, want)
		}
		if len(table.Rows) != 1 || !slices.Equal(table.Rows[0].Cells[:2], []any{"p", float64(2)}) {
			t.Errorf("%s: rows %+v", path, table.Rows)
		}
	}
}

// testRulesOpenAPI: kubectl explain finds what users look for.
func testRulesOpenAPI(t *testing.T, a *api) {
	schemas := a.openAPI(t).Components.Schemas
	for _, kind := range []string{"ClusterPolicy", "Policy"} {
		schema, ok := schemas[schemaPrefix+kind]
		if !ok || schema.Description == "" {
			t.Fatalf("%s has no schema, or no documentation", kind)
		}
		spec := refTo(t, schemas, schema.Properties["spec"])
		for _, field := range []string{"rules", "applyRules", "failurePolicy", "webhookConfiguration"} {
			if spec.Properties[field].Description == "" {
				t.Errorf("%s: spec.%s has no documentation", kind, field)
			}
		}
		rule := refTo(t, schemas, *spec.Properties["rules"].Items.Schema)
		mutation := refTo(t, schemas, rule.Properties["mutate"])
		for _, field := range []string{"patchStrategicMerge", "patchesJson6902", "foreach"} {
			if mutation.Properties[field].Description == "" {
				t.Errorf("%s: spec.rules.mutate.%s has no documentation", kind, field)
			}
		}
	}
}
