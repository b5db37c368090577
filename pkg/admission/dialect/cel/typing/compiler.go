// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"fmt"

	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compiler checks the expressions of one policy against one type. Variables must
// be checked before what reads them.
type compiler struct {
	composited *plugincel.CompositedCompiler
	env        *cel.Env
}

func newCompiler(typed *environment.EnvSet) (*compiler, error) {
	composited, err := plugincel.NewCompositedCompilerForTypeChecking(typed)
	if err != nil {
		return nil, fmt.Errorf("declare the variables of the policy: %w", err)
	}
	env, err := composited.Env(environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	return &compiler{composited: composited, env: env}, nil
}

// check returns what is wrong with an expression, and an empty text when nothing
// is. What an expression returns does not matter.
func (c *compiler) check(e *expression) (problem string) {
	var output *cel.Type
	ast, issues := c.env.Compile(e.text)
	if len(issues.Errors()) > 0 {
		problem = bounded(issues.String(), maxIssueBytes)
	} else {
		output = ast.OutputType()
	}
	if e.variable != "" {
		c.composited.Compiler = compiled{output: output}
		c.composited.CompileAndStoreVariable(named{e}, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	}
	return problem
}

// compiled stands for a compiler that has done its work: CompileAndStoreVariable
// declares a variable as what it returns, any type when that is nil.
type compiled struct{ output *cel.Type }

// CompileCELExpression implements plugincel.Compiler.
func (c compiled) CompileCELExpression(plugincel.ExpressionAccessor, plugincel.OptionalVariableDeclarations, environment.Type) plugincel.CompilationResult {
	return plugincel.CompilationResult{OutputType: c.output}
}

// named is the definition of a variable.
type named struct{ *expression }

// GetName implements plugincel.NamedExpressionAccessor.
func (n named) GetName() string { return n.variable }

// GetExpression implements plugincel.ExpressionAccessor.
func (n named) GetExpression() string { return n.text }

// ReturnTypes implements plugincel.ExpressionAccessor.
func (named) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }
