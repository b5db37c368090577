// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestCostIsUpstreams: an explanation counts what upstream's budget counts.
func TestCostIsUpstreams(t *testing.T) {
	variables := []admissionregistrationv1.Variable{
		{Name: "name", Expression: "string(object.metadata.name)"},
		{Name: "all", Expression: "object.spec.containers.map(c, variables.name + c.name)"},
		{Name: "broken", Expression: "object.absent"},
		{Name: "answer", Expression: "authorizer.group('apps').resource('deployments').check('get')"},
	}
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	in := policy.Input{
		Request: request.New(request.Fields{
			UID: "u", Name: "web", Namespace: "default", Operation: admission.Create,
			Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Object: &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "web"},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}},
			}},
		}),
		View: view, Explain: &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }},
		Param: &unstructured.Unstructured{Object: map[string]any{"a": "b"}},
	}
	in.Matched = cluster.Equivalent{Resource: in.Request.Resource, Kind: in.Request.Kind}
	for _, expression := range []string{
		"true",
		"object.metadata.name == params.a",
		"has(object.metadata.labels) || has(object.spec) && object.spec.containers.all(c, c.name in ['a', 'b'])",
		"variables.name.contains('we') && variables.name.matches('^w.*$')",
		"variables.all.exists(n, n == 'webb') || variables.all[0] == variables.name",
		"variables.broken == 1",
		"object.?spec.absent.orValue('x') == request.name && request.userInfo.groups.size() == 0",
		"!variables.answer.allowed() && authorizer.requestResource.check('get').reason() == ''",
		"namespaceObject.metadata.name.startsWith('def') ? quantity('1Gi').isInteger() : url('https://a').getHost() == ''",
		"object.spec.containers.filter(c, c.name != variables.name).map(c, c.name).join(',') == 'a,b'",
	} {
		spec := &admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}, Variables: variables,
			Validations: []admissionregistrationv1.Validation{{Expression: expression}},
		}
		p, errs := newCompiler().compile(spec)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		findings := p.evaluate(t.Context(), in)
		if len(findings) != 1 || findings[0].Trace == nil {
			t.Fatalf("%s: got %+v", expression, findings)
		}
		if want := upstreamCost(t, spec, in); findings[0].Trace.Cost != want {
			t.Errorf("%s: cost %d, upstream counts %d", expression, findings[0].Trace.Cost, want)
		}
	}
}

func upstreamCost(t *testing.T, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, in policy.Input) uint64 {
	t.Helper()
	left, err := upstreamValidations(t, spec, in)(celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(celconfig.RuntimeCELCostBudget - left)
}

// upstreamValidations returns what evaluates the validations with upstream's engine, and
// returns what is left of a budget.
func upstreamValidations(t *testing.T, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, in policy.Input) func(budget int64) (left int64, err error) {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	for _, v := range spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, declared, environment.StoredExpressions)
	}
	accessors := make([]plugincel.ExpressionAccessor, len(spec.Validations))
	for i, v := range spec.Validations {
		accessors[i] = &validating.ValidationCondition{Expression: v.Expression}
	}
	evaluator := compiler.CompileCondition(accessors, declared, environment.StoredExpressions)
	attributes := attributesOf(t, in)
	namespace, err := in.View.Namespace(t.Context(), in.Request.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	req := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(in.Matched.Resource), metav1.GroupVersionKind(in.Matched.Kind))
	var param runtime.Object
	if in.Param != nil {
		param = in.Param
	}
	return func(budget int64) (int64, error) {
		_, left, err := evaluator.ForInput(t.Context(), attributes, req,
			plugincel.OptionalVariableBindings{VersionedParams: param, Authorizer: in.View.Authorizer()}, namespace, budget)
		return left, err
	}
}

// TestTracersAreBounded: of policies that several requests have explained, the last
// ones are kept ready, and no others.
func TestTracersAreBounded(t *testing.T) {
	compiler := newCompiler()
	policies := func(n int) []*program {
		programs := make([]*program, n)
		for i := range programs {
			p, errs := compiler.compile(&admissionregistrationv1.ValidatingAdmissionPolicySpec{Validations: []admissionregistrationv1.Validation{{Expression: "true"}}})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			programs[i] = p
		}
		return programs
	}
	trace := compiler.tracing.tracer
	stored := policies(maxTracers + 1)
	for _, p := range stored {
		trace(p)
	}
	if n := compiler.tracing.ready.Len(); n != 0 {
		t.Errorf("%d tracers are kept after one request", n)
	}
	for _, p := range stored {
		if second := trace(p); trace(p) != second {
			t.Fatal("another tracer for a third request at once")
		}
	}
	if n := compiler.tracing.ready.Len(); n != maxTracers {
		t.Errorf("%d tracers are kept, want %d", n, maxTracers)
	}
	last := stored[len(stored)-1]
	ready := trace(last)
	for _, candidate := range policies(maxTracers) {
		trace(candidate)
	}
	if trace(last) != ready {
		t.Error("candidates push out what is stored")
	}
}
