// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

type spec = admissionregistrationv1.ValidatingAdmissionPolicySpec

// asking is a policy with what it is judged with.
type asking struct {
	policy  *policyapi.ValidatingAdmissionPolicy
	request *request.Request
	param   *unstructured.Unstructured
	explain *policy.Explain
	view    cluster.View // an empty one when nil
}

func (a asking) findings(t testing.TB) []verdict.Finding {
	t.Helper()
	return a.with(t, compiled(t, cel.New(), a.policy).Policy.Program)
}

func (a asking) with(t testing.TB, program policy.Program) []verdict.Finding {
	t.Helper()
	if a.view == nil {
		a.view = emptyCluster(t)
	}
	return program.Evaluate(t.Context(), policy.Input{
		Request: a.request, Param: a.param, Explain: a.explain, View: a.view,
		Matched: cluster.Equivalent{Resource: a.request.RequestResource, Kind: a.request.RequestKind},
	})
}

// traceless returns the findings as they are without an explanation.
func traceless(findings []verdict.Finding) []verdict.Finding {
	plain := slices.Clone(findings)
	for i := range plain {
		plain[i].Trace = nil
	}
	return plain
}

func marshalled(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// web is an update of a Deployment with something to look at.
func web() *request.Request {
	object := func(replicas int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{
				"name": "web", "namespace": "default", "labels": map[string]any{"app": "web", "a/b": "<c>"},
				"annotations": map[string]any{"size": "2Gi"},
			},
			"spec": map[string]any{
				"replicas": replicas, "paused": false, "ratio": 0.5,
				"containers": []any{map[string]any{"name": "a", "image": "docker.io/a"}, map[string]any{"name": "b", "image": "docker.io/b"}},
			},
		}}
	}
	return request.New(request.Fields{
		UID: "u", Name: "web", Namespace: "default", Operation: admission.Update,
		Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		User:     &user.DefaultInfo{Name: "jane", Groups: []string{"dev"}},
		Object:   object(6), OldObject: object(5),
	})
}

// mayReadAll lets an explanation show everything.
func mayReadAll() *policy.Explain {
	return &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }}
}

func limit() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "limit", "namespace": "default"},
		"maxReplicas": int64(3), "registry": "docker.io/", "index": int64(1),
	}}
}

// withVariables returns a policy with a param and variables that others refer to.
func withVariables(validations ...admissionregistrationv1.Validation) *policyapi.ValidatingAdmissionPolicy {
	return stored(spec{
		ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		Variables: []admissionregistrationv1.Variable{
			{Name: "containers", Expression: "object.spec.containers"},
			{Name: "twice", Expression: "object.spec.replicas * 2"},
			{Name: "tooMany", Expression: "variables.twice > params.maxReplicas"},
			{Name: "size", Expression: "quantity(object.metadata.annotations.size)"},
			{Name: "broken", Expression: "object.spec.absent + 1"},
			{Name: "maybe", Expression: "object.?spec.absent"},
		},
		Validations: validations,
	})
}

// TestExplainMessage: a rule that fails shows what its message was made of.
func TestExplainMessage(t *testing.T) {
	rule := admissionregistrationv1.Validation{MessageExpression: "'at most ' + string(params.maxReplicas)"}
	for expression, want := range map[string]string{
		"object.spec.replicas == 5": `{"object.spec.replicas":6,"params.maxReplicas":3}`,
		"object.spec.replicas == 6": `{"object.spec.replicas":6}`,
	} {
		rule.Expression = expression
		findings := asking{policy: withVariables(rule), request: web(), param: limit(), explain: mayReadAll()}.findings(t)
		if got := marshalled(t, findings[0].Trace.Values); got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
}

func TestExplainConditionsAndAnnotations(t *testing.T) {
	type condition = admissionregistrationv1.MatchCondition
	annotations := []admissionregistrationv1.AuditAnnotation{
		{Key: "none", ValueExpression: "null"},
		{Key: "name", ValueExpression: "string(object.metadata.name)"},
		{Key: "broken", ValueExpression: "string(object.absent)"},
	}
	for name, test := range map[string]struct {
		spec spec
		want []string // rule, values
	}{
		"a false one": {
			spec: spec{MatchConditions: []condition{{Name: "a", Expression: "request.name == 'web'"}, {Name: "b", Expression: "object.spec.paused == true"}}},
			want: []string{`matchConditions[1] {"object.spec.paused":false}`},
		},
		"one that is false after one that fails": {
			spec: spec{MatchConditions: []condition{{Name: "a", Expression: "object.absent == 1"}, {Name: "b", Expression: "object.spec.paused == true"}}},
			want: []string{`matchConditions[1] {"object.spec.paused":false}`},
		},
		"some that fail": {
			spec: spec{MatchConditions: []condition{{Name: "a", Expression: "object.absent == 1"}, {Name: "b", Expression: "object.spec.paused == false"}}},
			want: []string{`matchConditions {"object.absent":{"error":"no such key: absent"},"object.spec.paused":false}`},
		},
		"no namespace there": {
			spec: spec{MatchConditions: []condition{{Name: "a", Expression: "namespaceObject != null"}}},
			want: []string{`matchConditions[0] {"namespaceObject":null}`},
		},
		"annotations": {
			spec: spec{AuditAnnotations: annotations},
			want: []string{`auditAnnotations[1] {"object.metadata.name":"web"}`, `auditAnnotations[2] {"object.absent":{"error":"no such key: absent"}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range (asking{policy: stored(test.spec), request: web(), explain: mayReadAll()}).findings(t) {
				got = append(got, finding.Rule+" "+marshalled(t, finding.Trace.Values))
				if finding.Trace.Cost == 0 || finding.Trace.Took <= 0 {
					t.Errorf("%s: cost %d, time %s", finding.Rule, finding.Trace.Cost, finding.Trace.Took)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplainChangesNothing: what is found is the same, byte for byte.
func TestExplainChangesNothing(t *testing.T) {
	var rules []admissionregistrationv1.Validation
	for expression := range valuesOf() {
		rules = append(rules, admissionregistrationv1.Validation{Expression: expression, MessageExpression: "'got ' + string(variables.twice) + string(object.spec.absent)"})
	}
	obj := withVariables(rules...)
	obj.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "k", ValueExpression: "string(variables.twice)"}, {Key: "e", ValueExpression: "string(variables.broken)"}}
	program := compiled(t, cel.New(), obj).Policy.Program
	plain := asking{request: web(), param: limit()}
	explained := asking{request: web(), param: limit(), explain: mayReadAll()}
	want := marshalled(t, plain.with(t, program))
	for range 3 {
		got := explained.with(t, program)
		for _, finding := range got {
			if finding.Trace == nil {
				t.Errorf("%s has no trace", finding.Rule)
			}
		}
		if marshalled(t, traceless(got)) != want {
			t.Fatalf("(-without +with):\n%s", cmp.Diff(plain.with(t, program), traceless(got)))
		}
	}
}

// TestExplainIsBounded: values that are many, large, or of many evaluations.
func TestExplainIsBounded(t *testing.T) {
	large := web().Fields
	large.Object = large.Object.DeepCopy()
	fields := map[string]any{}
	var terms []string
	for i := range 100 {
		name := fmt.Sprintf("f%03d", i)
		fields[name] = strings.Repeat("x", 5000)
		terms = append(terms, "object.large."+name+" != ''")
	}
	large.Object.Object["large"] = fields
	manyAndLarge := strings.Join(terms, " && ")
	rules := slices.Repeat([]admissionregistrationv1.Validation{{Expression: manyAndLarge}}, 3)
	rules = append(rules, admissionregistrationv1.Validation{Expression: "object." + strings.Repeat("a", 300) + " == object"})
	ask := asking{policy: withVariables(rules...), request: request.New(large), explain: mayReadAll()}
	findings := ask.findings(t)
	total := 0
	for _, finding := range findings {
		if len(finding.Trace.Values) > 33 {
			t.Errorf("%d values", len(finding.Trace.Values))
		}
		for text, value := range finding.Trace.Values {
			if len(value) > 1<<10 || !json.Valid(value) {
				t.Errorf("%s: %d bytes, or no JSON: %s", text, len(value), value)
			}
			total += len(text) + len(value)
		}
		if finding.Trace.Cost == 0 || finding.Trace.Took == 0 {
			t.Errorf("%s: cost %d, time %s", finding.Rule, finding.Trace.Cost, finding.Trace.Took)
		}
	}
	if total < 15<<10 || total > 17<<10 {
		t.Errorf("all values have %d bytes, want about 16 KiB", total)
	}
	if got, want := marshalled(t, findings[3].Trace.Values), `{"...":"2 more"}`; got != want {
		t.Errorf("got %s, want %s: one has no room and the other no short text", got, want)
	}
	ask.request = request.New(large)
	if again := ask.findings(t); marshalled(t, values(again)) != marshalled(t, values(findings)) {
		t.Error("other values the second time")
	}
}

func values(findings []verdict.Finding) []map[string]json.RawMessage {
	var all []map[string]json.RawMessage
	for _, finding := range findings {
		all = append(all, finding.Trace.Values)
	}
	return all
}

// TestExplainBeyondLimits: what enforcement gives up is not evaluated without
// limits.
func TestExplainBeyondLimits(t *testing.T) {
	list := "[" + strings.Repeat("1,", 199) + "1]"
	expression := list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c + object.spec.replicas > 0)))"
	findings := asking{policy: validating(expression), request: web(), explain: mayReadAll()}.findings(t)
	if len(findings) != 1 || findings[0].Kind != verdict.Error || findings[0].Trace == nil || findings[0].Trace.Values != nil {
		t.Errorf("got %+v, want an error with a trace without values", findings)
	}
}

// TestExplainWhatDoesNotCompile: a policy that has any fault is not explained with
// values.
func TestExplainWhatDoesNotCompile(t *testing.T) {
	unit, errs := cel.New().Compile(t.Context(), stored(spec{
		Variables:   []admissionregistrationv1.Variable{{Name: "v", Expression: "1 +"}},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.replicas =="}, {Expression: "variables.v == 1 || object.spec.paused == true"}, {Expression: "object.spec.paused == true"}},
	}))
	if len(errs) == 0 {
		t.Fatal("it compiles")
	}
	findings := asking{request: web(), explain: mayReadAll()}.with(t, unit.Policy.Program)
	if got, want := marshalled(t, values(findings)), `[null,null,null]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestExplainConcurrently is for the race detector.
func TestExplainConcurrently(t *testing.T) {
	var rules []admissionregistrationv1.Validation
	for expression := range valuesOf() {
		rules = append(rules, admissionregistrationv1.Validation{Expression: expression})
	}
	program := compiled(t, cel.New(), withVariables(rules...)).Policy.Program
	ask := asking{request: web(), param: limit(), explain: mayReadAll()}
	want := marshalled(t, values(asking{request: web(), param: limit(), explain: mayReadAll()}.with(t, program)))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if got := marshalled(t, values(ask.with(t, program))); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	group.Wait()
}
