// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// compiler checks the expressions of one policy against one type. Variables must
// be checked before what reads them.
type compiler struct {
	composited *plugincel.CompositedCompiler
	env        *cel.Env
	// full is env with what upstream's type checker forgets, once it was needed.
	full *cel.Env
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

// check returns what is wrong with an expression, and nil when nothing is. What an
// expression returns does not matter.
func (c *compiler) check(e *expression) (*Issue, error) {
	output, listed := compile(c.env, e.text)
	if e.variable != "" {
		c.composited.Compiler = compiled{output: output}
		c.composited.CompileAndStoreVariable(named{e}, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	}
	if listed == "" {
		return nil, nil //nolint:nilnil // No issue is the answer.
	}
	issue := &Issue{Text: listed}
	if e.listed {
		issue.listed = listed
	}
	if strings.Contains(e.text, "requestResource") {
		if c.full == nil {
			full, err := c.env.Extend(cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
			if err != nil {
				return nil, fmt.Errorf("declare %s: %w", plugincel.RequestResourceAuthorizerVarName, err)
			}
			c.full = full
		}
		_, issue.Text = compile(c.full, e.text)
	}
	if issue.Text == "" && issue.listed == "" {
		return nil, nil //nolint:nilnil // No issue is the answer.
	}
	return issue, nil
}

// compile returns the type of an expression, or the errors in it.
func compile(env *cel.Env, text string) (output *cel.Type, problem string) {
	ast, issues := env.Compile(text)
	if len(issues.Errors()) > 0 {
		return nil, bounded(issues.String(), maxIssueBytes)
	}
	return ast.OutputType(), ""
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
