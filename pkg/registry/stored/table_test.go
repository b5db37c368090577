// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func TestColumns(t *testing.T) {
	want := map[string][]string{
		"validatingadmissionpolicies":       {"Name/string/name", "Validations/integer/", "ParamKind/string/", "Ready/string/", "Age/string/"},
		"validatingadmissionpolicybindings": {"Name/string/name", "PolicyName/string/", "ParamRef/string/", "Age/string/"},
		"clusterpolicies":                   {"Name/string/name", "Rules/integer/", "Ready/string/", "Age/string/"},
		"policies":                          {"Name/string/name", "Rules/integer/", "Ready/string/", "Age/string/"},
	}
	for _, kind := range Kinds() {
		table, err := tableConvertor{kind}.ConvertToTable(t.Context(), kind.NewList(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, column := range table.ColumnDefinitions {
			got = append(got, column.Name+"/"+column.Type+"/"+column.Format)
			if column.Description == "" {
				t.Errorf("%s: column %s has no description", kind.Resource, column.Name)
			}
		}
		if !slices.Equal(got, want[kind.Resource]) {
			t.Errorf("%s: columns %v, want %v", kind.Resource, got, want[kind.Resource])
		}
	}
}

func conditioned(generation, observed int64, status metav1.ConditionStatus) *policy.ValidatingAdmissionPolicy {
	p := policyWith(generation, "true", 0, "")
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, ObservedGeneration: observed}}
	return p
}

func TestCells(t *testing.T) {
	binding := func(ref *admissionregistrationv1.ParamRef) *policy.ValidatingAdmissionPolicyBinding {
		b := bindingWith(1, "p")
		b.Spec.ParamRef = ref
		return b
	}
	parameterized := policyWith(1, "true", 0, "")
	parameterized.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	parameterized.CreationTimestamp = metav1.NewTime(time.Now().Add(-90 * time.Minute))

	tests := []struct {
		name string
		obj  runtime.Object
		want []any
	}{
		{"policy", policyWith(1, "true", 0, ""), []any{"p", int64(1), "<unset>", "Unknown", "<unknown>"}},
		{"policy with params and age", parameterized, []any{"p", int64(1), "v1/ConfigMap", "Unknown", "90m"}},
		{"ready policy", conditioned(3, 3, metav1.ConditionTrue), []any{"p", int64(1), "<unset>", "True", "<unknown>"}},
		{"policy that is not ready", conditioned(3, 3, metav1.ConditionFalse), []any{"p", int64(1), "<unset>", "False", "<unknown>"}},
		{"policy whose last generation was ready", conditioned(3, 2, metav1.ConditionTrue), []any{"p", int64(1), "<unset>", "Unknown", "<unknown>"}},
		{"cluster policy", clusterPolicyWith(2), []any{"c", int64(2), "Unknown", "<unknown>"}},
		{"ready namespaced policy", readyPolicyIn("n"), []any{"p", int64(1), "True", "<unknown>"}},
		{"binding", binding(nil), []any{"b", "p", "<unset>", "<unknown>"}},
		{"binding to a param", binding(&admissionregistrationv1.ParamRef{Name: "n", Namespace: "ns"}), []any{"b", "p", "ns/n", "<unknown>"}},
		{"binding to a param anywhere", binding(&admissionregistrationv1.ParamRef{Name: "n"}), []any{"b", "p", "*/n", "<unknown>"}},
		{
			"binding to selected params",
			binding(&admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}),
			[]any{"b", "p", "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}", "<unknown>"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kind := kindOf(t, test.obj)
			table, err := tableConvertor{kind}.ConvertToTable(t.Context(), test.obj, &metav1.TableOptions{NoHeaders: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(table.ColumnDefinitions) != 0 {
				t.Errorf("columns are defined although no headers were wanted")
			}
			if len(table.Rows) != 1 || !slices.Equal(table.Rows[0].Cells, test.want) {
				t.Errorf("rows %v, want one of %v", table.Rows, test.want)
			}
			if len(kind.Columns) != len(test.want) {
				t.Errorf("%d columns for %d cells", len(kind.Columns), len(test.want))
			}
		})
	}
}

func TestTableOfList(t *testing.T) {
	remaining := int64(4)
	list := &policy.ValidatingAdmissionPolicyList{Items: []policy.ValidatingAdmissionPolicy{*policyWith(1, "true", 0, ""), *policyWith(1, "true", 0, "")}}
	list.ListMeta = metav1.ListMeta{ResourceVersion: "9", Continue: "token", RemainingItemCount: &remaining}
	table, err := tableConvertor{validatingAdmissionPolicies()}.ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2 {
		t.Errorf("%d rows, want 2", len(table.Rows))
	}
	if table.ResourceVersion != "9" || table.Continue != "token" || table.RemainingItemCount == nil || *table.RemainingItemCount != remaining {
		t.Errorf("list metadata is lost: %+v", table.ListMeta)
	}
	if _, err := (tableConvertor{validatingAdmissionPolicies()}).ConvertToTable(t.Context(), list, &metav1.Status{}); err == nil {
		t.Error("options of another type are accepted")
	}
}
