// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/utils/lru"
)

// maxReady bounds the programs that are kept and count what they cost: about 75 MB.
const maxReady = 4_096

// planner makes checked expressions ready to run. It is safe for concurrent use.
type planner struct {
	ready   *lru.Cache // cel.Program by weak.Pointer[expression]
	env     *cel.Env   // for what the declarations of an expression do not matter
	plain   interpreter.Interpreter
	options []interpreter.PlannerOption
}

// newPlanner puts together what newProgram in github.com/google/cel-go/cel puts
// together anew for each program: a table of all functions above all, which is
// larger than the program of an expression.
func newPlanner(base *cel.Env) (*planner, error) {
	env, err := declare(base, noVariables(), declarations{HasParams: true, HasAuthorizer: true})
	if err != nil {
		return nil, err
	}
	functions := interpreter.NewDispatcher()
	for name, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err == nil {
			err = functions.Add(bindings...)
		}
		if err != nil {
			return nil, fmt.Errorf("adding the function %s: %w", name, err)
		}
	}
	adapter, provider := env.CELTypeAdapter(), env.CELTypeProvider()
	attributes := interpreter.NewAttributeFactory(env.Container, adapter, provider)
	return &planner{
		ready: lru.New(maxReady),
		env:   env,
		plain: interpreter.NewInterpreter(functions, env.Container, provider, adapter, attributes),
		// In this order: an option sees what those before it have made of a step.
		options: []interpreter.PlannerOption{
			interpreter.CustomDecoratorV2(alternatives),
			interpreter.CustomDecoratorV2(newAppends()),
			interpreter.CustomDecoratorV2(keepsParts),
			interpreter.InterruptableEval(),
			interpreter.Optimize(),
			interpreter.CompileRegexConstants(library.FindRegexOptimization, library.FindAllRegexOptimization, interpreter.MatchesRegexOptimization),
		},
	}, nil
}

// lean returns a program that does what that of upstream does and does not count
// what it costs: there is no limit to it.
func (p *planner) lean(checked *celast.AST) (interpreter.InterpretableV2, error) {
	return p.plain.NewInterpretable(checked, p.options...)
}

// tracked returns the program of upstream.
func (p *planner) tracked(checked *celast.AST, options ...cel.ProgramOption) (cel.Program, error) {
	return p.env.PlanProgram(checked, append(options, cel.InterruptCheckFrequency(celconfig.CheckFrequency))...)
}
