// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// on returns criteria for all operations on one resource of the core group.
func on(resource string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			},
		}},
	}
}

func bind(to *policy.Unit, name string, criteria *match.Criteria, params *policy.Params) *policy.Unit {
	to.Policy.NeedsBinding = true
	return &policy.Unit{
		ID:      policy.ID{Kind: "ToyBinding", Name: name},
		Binding: &policy.Binding{Policy: to.ID, Criteria: criteria, Params: params},
	}
}

// outcomes returns one line for each evaluation.
func outcomes(v verdict.Verdict) []string {
	var lines []string
	for _, e := range v.Evaluations {
		lines = append(lines, fmt.Sprintf("%s/%s %d %s", e.Policy.Name, e.Binding, e.Outcome, e.Finding.Message))
	}
	return lines
}

func explain(t *testing.T, units []*policy.Unit, req *request.Request, explain *policy.Explain) verdict.Verdict {
	t.Helper()
	got, err := judging((&policy.Set{}).Edit(nil, units)).Run(t.Context(), chain.Trial{
		Request: req, View: view(t, object("v1", "Namespace", "", "team", map[string]string{"env": "test"})), Explain: explain,
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestExplain: everything that is stored has an evaluation, in the order of
// judgement, and the verdict is the one without explanations.
func TestExplain(t *testing.T) {
	elsewhere := toy(t, "a-elsewhere", "nginx")
	elsewhere.Policy.Criteria = match.Compile(on("services"))
	unbound := toy(t, "b-unbound", "nginx")
	unbound.Policy.NeedsBinding = true
	bound := toy(t, "c-bound", "nginx")
	inProd := on("pods")
	inProd.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	configMaps := &schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	bound.Policy.ParamKind = configMaps
	units := []*policy.Unit{
		elsewhere, unbound, bound, toy(t, "d-judging", "zebra"),
		bind(bound, "a", match.Compile(inProd), nil),
		bind(bound, "b", match.Compile(nil), &policy.Params{Name: "absent", AllowAbsent: true}),
		bind(bound, "c", match.Compile(nil), nil),
		bind(&policy.Unit{ID: policy.ID{Kind: "Toy", Name: "e-missing"}, Policy: &policy.Policy{}}, "d", match.Compile(nil), nil),
	}
	got := explain(t, units, pod("nginx", "team"), &policy.Explain{})
	want := []string{
		fmt.Sprintf("a-elsewhere/ %d resource pods (v1) is none of services (v1)", verdict.Unmatched),
		fmt.Sprintf("b-unbound/ %d no binding: a Toy judges only through a binding that names it", verdict.Unmatched),
		fmt.Sprintf("c-bound/a %d namespaceSelector env=prod does not match namespace team (labels: env=test, kubernetes.io/metadata.name=team)", verdict.Unmatched),
		fmt.Sprintf("c-bound/b %d no params found, which the binding allows with the parameterNotFoundAction Allow", verdict.Skipped),
		fmt.Sprintf("c-bound/c %d the name contains \"nginx\"", verdict.Denied),
		fmt.Sprintf("d-judging/ %d ", verdict.Passed),
		fmt.Sprintf("e-missing/ %d no such policy: only bindings name it", verdict.Unmatched),
	}
	if diff := cmp.Diff(want, outcomes(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plain := explain(t, units, pod("nginx", "team"), nil)
	if plain.Allowed != got.Allowed || !slices.Equal(plain.Denials, got.Denials) {
		t.Errorf("the verdict is %+v, and %+v without an explanation", got.Denials, plain.Denials)
	}
	if want := []string{want[4], want[5]}; !slices.Equal(outcomes(plain), want) {
		t.Errorf("got %v without an explanation, want %v", outcomes(plain), want)
	}
}

func TestExplainExempt(t *testing.T) {
	req := request.New(request.Fields{
		Name: "nginx", Operation: admission.Create,
		Kind:     schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"},
		Resource: schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"},
	})
	got := explain(t, []*policy.Unit{toy(t, "a", "nginx")}, req, &policy.Explain{})
	want := []string{fmt.Sprintf("a/ %d exempt: no policy judges subjectaccessreviews.authorization.k8s.io", verdict.Unmatched)}
	if diff := cmp.Diff(want, outcomes(got)); diff != "" || !got.Allowed {
		t.Errorf("allowed %v (-want +got):\n%s", got.Allowed, diff)
	}
}

// TestExplainReachesThePrograms: with it, what it may show; and what a policy
// takes is measured.
func TestExplainReachesThePrograms(t *testing.T) {
	explain := &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }}
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	p := toy(t, "a", "zebra")
	p.Policy.Program = programFunc(func(_ context.Context, in policy.Input) []verdict.Finding {
		clock.SetTime(clock.Now().Add(time.Second))
		if in.Explain != explain {
			t.Errorf("got %v, want the explanation that was asked for", in.Explain)
		}
		return []verdict.Finding{{Kind: verdict.Pass}}
	})
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{p})
	got, err := chain.New(func() *policy.Set { return set }, clock).Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: view(t), Explain: explain})
	if err != nil || len(got.Evaluations) != 1 || got.Evaluations[0].Took != time.Second {
		t.Errorf("got %+v and error %v, want one evaluation of a second", got.Evaluations, err)
	}
}
