// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// counting returns a policy that finds something about its param, and how often it
// was asked.
func counting(t *testing.T, kind *schema.GroupVersionKind) (*policy.Unit, *int) {
	t.Helper()
	asked := 0
	p := toy(t, "p", "zebra")
	p.Policy.NeedsBinding, p.Policy.ParamKind = true, kind
	p.Policy.Program = programFunc(func(_ context.Context, in policy.Input) []verdict.Finding {
		asked++
		name := "no param"
		if in.Param != nil {
			name = in.Param.GetName()
		}
		return []verdict.Finding{
			{Kind: verdict.Fail, Rule: "validations[0]", Message: name},
			{Kind: verdict.Pass, Rule: "validations[1]", Index: 1},
			{Kind: verdict.Annotation, Key: "seen", Value: name},
		}
	})
	return p, &asked
}

// TestBindingsShareFindings: a policy is asked once for each param, and what is
// recorded is what would be if it were asked each time.
func TestBindingsShareFindings(t *testing.T) {
	configMap := &schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	v := view(t,
		object("v1", "ConfigMap", "default", "one", map[string]string{"app": "x"}),
		object("v1", "ConfigMap", "default", "two", map[string]string{"app": "x"}),
		object("v1", "ConfigMap", "default", "three", nil))
	for _, test := range []struct {
		name     string
		kind     *schema.GroupVersionKind
		params   []*policy.Params // of each binding
		asked    int
		findings int
	}{
		{name: "no params", params: []*policy.Params{nil, nil, nil}, asked: 1, findings: 6},
		{name: "the same param", kind: configMap, params: []*policy.Params{{Name: "one"}, {Name: "one"}, {Name: "one"}}, asked: 1, findings: 6},
		{name: "different params", kind: configMap, params: []*policy.Params{{Name: "one"}, {Name: "two"}, nil, nil}, asked: 3, findings: 8},
		{
			name: "params that overlap", kind: configMap, asked: 3, findings: 2 * (2 + 1 + 3),
			params: []*policy.Params{{Selector: labels.SelectorFromSet(labels.Set{"app": "x"})}, {Name: "one"}, {Selector: labels.Everything()}},
		},
		{
			name: "a param that is not there", kind: configMap, asked: 1, findings: 2*2 + 2,
			params: []*policy.Params{{Name: "absent"}, {Name: "one"}, {Name: "absent"}, {Name: "one"}, {Name: "absent", AllowAbsent: true}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, asked := counting(t, test.kind)
			var bindings []*policy.Unit
			for i, params := range test.params {
				bindings = append(bindings, &policy.Unit{
					ID: policy.ID{Kind: "ToyBinding", Name: fmt.Sprint("b", i)},
					Binding: &policy.Binding{
						Policy: p.ID, Criteria: match.Compile(nil), Params: params,
						Actions: []verdict.Action{[]verdict.Action{verdict.Deny, verdict.Warn, verdict.Audit}[i%3]},
					},
				})
			}
			got := evaluated(t, append(bindings, p), v, nil)
			if *asked != test.asked || len(got) != test.findings {
				t.Errorf("the policy was asked %d times for %d findings, want %d and %d", *asked, len(got), test.asked, test.findings)
			}
			var want []verdict.Evaluation
			for _, binding := range bindings { // one alone shares nothing
				want = append(want, evaluated(t, []*policy.Unit{p, binding}, v, nil)...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-each binding alone +together)\n%s", diff)
			}
			*asked = 0
			explained := evaluated(t, append(bindings, p), v, &policy.Explain{})
			explained = slices.DeleteFunc(explained, func(e verdict.Evaluation) bool { return e.Outcome == verdict.Skipped })
			if diff := cmp.Diff(want, explained); diff != "" || *asked < test.asked {
				t.Errorf("asked %d times (-alone +explained)\n%s", *asked, diff)
			}
		})
	}
}

// TestExplanationsAreNotShared: each finding has a trace of its own.
func TestExplanationsAreNotShared(t *testing.T) {
	p, asked := counting(t, nil)
	units := []*policy.Unit{p, unbounded(p.ID, "a"), unbounded(p.ID, "b")}
	if evaluated(t, units, view(t), &policy.Explain{}); *asked != 2 {
		t.Errorf("the policy was asked %d times, want once for each binding", *asked)
	}
}

// TestMemoIsBounded: beyond the bound params are selected and judged again, with
// the same outcome.
func TestMemoIsBounded(t *testing.T) {
	const params, bindings = 5_500, 3
	objects := make([]*unstructured.Unstructured, params)
	for i := range objects {
		objects[i] = object("v1", "ConfigMap", "default", fmt.Sprintf("c%04d", i), nil)
	}
	p, asked := counting(t, &schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	units := []*policy.Unit{p}
	for i := range bindings {
		binding := unbounded(p.ID, fmt.Sprint("b", i))
		binding.Binding.Params = &policy.Params{Selector: labels.Everything()}
		units = append(units, binding)
	}
	got := evaluated(t, units, view(t, objects...), nil)
	if len(got) != 2*params*bindings || *asked <= params || *asked >= params*bindings {
		t.Errorf("asked %d times for %d findings, want fewer than %d times for %d", *asked, len(got), params*bindings, 2*params*bindings)
	}
	if last := got[len(got)-2]; last.Finding.Message != "c5499" || !strings.HasSuffix(last.Binding, "2") {
		t.Errorf("the last finding is %+v", last)
	}
}

// unbounded returns a binding for all requests.
func unbounded(target policy.ID, name string) *policy.Unit {
	return &policy.Unit{
		ID:      policy.ID{Kind: "ToyBinding", Name: name},
		Binding: &policy.Binding{Policy: target, Criteria: match.Compile(nil)},
	}
}

// evaluated returns what is recorded, without times.
func evaluated(t *testing.T, units []*policy.Unit, v cluster.View, explain *policy.Explain) []verdict.Evaluation {
	t.Helper()
	set := (&policy.Set{}).Edit(nil, units)
	got, err := judging(set).Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: v, Explain: explain})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Evaluations {
		got.Evaluations[i].Took = 0
	}
	return got.Evaluations
}
