// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// costLimit ends evaluations that would take too long to wait for.
const costLimit = 2_000_000

// environmentOf declares what admission expressions read as the admission plugins of
// Kubernetes do, but variables as one value of any type.
func environmentOf(t testing.TB) *cel.Env {
	t.Helper()
	env, err := sharedEnvironment()
	if err != nil {
		t.Fatalf("build the environment: %v", err)
	}
	return env
}

// sharedEnvironment is built once: it takes longer than the tests.
var sharedEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	declarations := []cel.EnvOption{
		cel.Variable("authorizer", library.AuthorizerType),
		cel.Variable("authorizer.requestResource", library.ResourceCheckType),
	}
	for _, name := range []string{"object", "oldObject", "request", "params", "namespaceObject", "variables"} {
		declarations = append(declarations, cel.Variable(name, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: declarations},
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []cel.EnvOption{library.JSONPatch()},
		},
	)
	if err != nil {
		return nil, err
	}
	return set.Env(environment.StoredExpressions)
})

// checked returns the type-checked source, or an error.
func checked(t testing.TB, source string) (*cel.Ast, error) {
	t.Helper()
	ast, issues := environmentOf(t).Compile(source)
	return ast, issues.Err()
}

// analyzed returns what is known of source.
func analyzed(t testing.TB, source string, variables map[string]*bound.Expression) *bound.Expression {
	t.Helper()
	ast, err := checked(t, source)
	if err != nil {
		t.Fatalf("compile %s: %v", source, err)
	}
	return bound.Analyze(ast.NativeRep(), variables)
}

// evaluate returns the result of program and its cost under the cost model of
// Kubernetes.
func evaluate(t testing.TB, program cel.Program, data map[string]any) (result ref.Val, cost uint64, err error) {
	t.Helper()
	result, details, err := program.Eval(data)
	if details == nil || details.ActualCost() == nil {
		t.Fatalf("the evaluation was not tracked: %v", err)
	}
	return result, *details.ActualCost(), err
}

// planned returns the program of source, or an error where it has a fault.
func planned(t testing.TB, source string) (*cel.Ast, cel.Program, error) {
	t.Helper()
	ast, err := checked(t, source)
	if err != nil {
		return nil, nil, err
	}
	program, err := environmentOf(t).Program(ast, cel.CostLimit(costLimit))
	return ast, program, err
}
