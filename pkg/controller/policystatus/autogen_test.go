// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/fake"
)

// aboutPods returns a spec with some rules about Pods, each of about some bytes.
func aboutPods(rules, bytes int) kyvernov1.Spec {
	var spec kyvernov1.Spec
	for i := range rules {
		spec.Rules = append(spec.Rules, kyvernov1.Rule{
			Name:   fmt.Sprint("r", i),
			Match:  kyvernov1.MatchResources{Any: []kyvernov1.ResourceFilter{{Resources: kyvernov1.ResourceDescription{Kinds: []string{"Pod"}}}}},
			Mutate: &kyvernov1.Mutation{PatchStrategicMerge: &apiextensionsv1.JSON{Raw: []byte(`{"metadata":{"labels":{"a":"` + strings.Repeat("x", bytes) + `"}}}`)}},
		})
	}
	return spec
}

// TestGeneratedRulesHaveRoom: the status of a policy has what is made of its rules, as
// far as that can be stored beside them.
func TestGeneratedRulesHaveRoom(t *testing.T) {
	tests := []struct {
		name           string
		spec           kyvernov1.Spec
		shown, omitted int
	}{
		{"none", kyvernov1.Spec{}, 0, 0},
		{"some", aboutPods(2, 10), 4, 0},
		{"too many", aboutPods(100, 1000), 2 * 100, 2 * 100},
		{"one that is too large", aboutPods(1, maxGeneratedBytes), 0, 2},
		{"beside a spec that is too large", aboutPods(1, maxSpecBytes), 0, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := generatedRules(nil, &test.spec)
			if all := len(got.Rules) + int(got.Omitted); all != 2*len(test.spec.Rules) {
				t.Errorf("%d rules in all, want %d", all, 2*len(test.spec.Rules))
			}
			if test.omitted == 0 && got.Omitted != 0 || test.omitted > 0 && got.Omitted == 0 || len(got.Rules) > test.shown || test.shown > 0 && len(got.Rules) == 0 {
				t.Errorf("%d shown and %d omitted, want up to %d and %d", len(got.Rules), got.Omitted, test.shown, test.omitted)
			}
		})
	}
}

// TestGeneratedRulesAreTold: once, and again when the annotation has changed.
func TestGeneratedRulesAreTold(t *testing.T) {
	stored := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1}, Spec: aboutPods(1, 1)}
	clients := fake.NewClientset(stored)
	api := clients.PolicyV1alpha1().ClusterPolicies()
	id := policy.ID{Kind: reconcile.ClusterPolicy, Name: "p"}
	controller := New(KindsOf(clients.PolicyV1alpha1()), byID{id: catalog.Report{UID: "u", Generation: 1}}, nil)
	for _, want := range []struct {
		controllers string
		names       string
		writes      int
	}{
		{"", "[]", 1},
		{"", "[]", 1},
		{"Job", "[autogen-r0]", 2},
		{"Job", "[autogen-r0]", 2},
		{"CronJob", "[autogen-cronjob-r0]", 3},
	} {
		current, err := api.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		current.Annotations = map[string]string{kyvernov1.AutogenControllersAnnotation: want.controllers}
		if _, err := api.Update(t.Context(), current, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := controller.sync(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if current, err = api.Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for i := range current.Status.Autogen.Rules {
			names = append(names, current.Status.Autogen.Rules[i].Name)
		}
		writes := 0
		for _, action := range clients.Actions() {
			if action.GetVerb() == "update" && action.GetSubresource() == "status" {
				writes++
			}
		}
		if fmt.Sprint(names) != want.names || writes != want.writes {
			t.Errorf("%s: rules %v after %d writes, want %s and %d", want.controllers, names, writes, want.names, want.writes)
		}
	}
}
