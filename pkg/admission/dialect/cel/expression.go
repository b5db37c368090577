// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"weak"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// expressionKey says what an expression is compiled from.
type expressionKey struct {
	source   string
	declared declarations
	sees     string // the types of the variables that it may name
}

// expression is one that compiles, ready to run. Policies share it: it knows
// nothing of the policy but the types of its variables. It is immutable.
type expression struct {
	source  string
	checked *celast.AST
	output  *cel.Type
	planner *planner
	lean    interpreter.InterpretableV2
	cost    *bound.Expression // nil when it depends on the variables
	uses    uses
}

// uses are what matters of an expression to how it is evaluated.
type uses uint8

const (
	// readsVariables: some or all of the variables of the policy.
	readsVariables uses = 1 << iota
	// readsChanging: what is not the same for all expressions of a policy, such as
	// the authorizer, which some have and others have not.
	readsChanging
	// folds: it has a comprehension, and so can be interrupted.
	folds
	// indexes: it looks something up under what it has computed.
	indexes
)

// program returns the program that counts what it costs, made when it is needed: most
// never need it, and it takes up more than all the rest.
func (e *expression) program() (cel.Program, error) {
	key := weak.Make(e)
	if known, ok := e.planner.ready.Get(key); ok {
		if program, ok := known.(cel.Program); ok {
			return program, nil
		}
	}
	program, err := e.planner.tracked(e.checked)
	if err != nil {
		return nil, err
	}
	ready := e.planner.ready
	ready.Add(key, program)
	runtime.AddCleanup(e, func(gone weak.Pointer[expression]) { ready.Remove(gone) }, key)
	return program, nil
}

// evaluate runs the expression without counting its cost. The result is that of
// ContextEval of its program. It looks at the end of ctx only when it is not brief.
func (e *expression) evaluate(ctx context.Context, vars interpreter.Activation, brief bool) (value ref.Val, err error) {
	frame, err := interpreter.NewExecutionFrame(vars)
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	if !brief && e.uses&folds != 0 { // nothing else looks whether it is interrupted
		if err := frame.SetContext(ctx, celconfig.CheckFrequency); err != nil {
			return nil, err
		}
	}
	if value, err = execute(e.lean, frame); err != nil && errors.Is(err, interpreter.InterruptError{}) {
		return value, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return value, err
}

func execute(program interpreter.InterpretableV2, frame *interpreter.ExecutionFrame) (value ref.Val, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if cancelled, ok := cause.(interpreter.EvalCancelledError); ok {
				err = cancelled // as Program.Eval of cel-go does
				return
			}
			err = fmt.Errorf("internal error: %v", cause)
		}
	}()
	value = program.Exec(frame)
	if failed, ok := value.(*types.Err); ok {
		err = failed
	}
	return value, err
}

// usesOf errs on the side of too many: a variable of a comprehension may have the
// name of another.
func usesOf(checked *celast.AST) uses {
	var found uses
	for _, reference := range checked.ReferenceMap() {
		switch strings.TrimPrefix(reference.Name, ".") {
		case plugincel.VariableVarName:
			found |= readsVariables
		case plugincel.RequestVarName, plugincel.NamespaceVarName, plugincel.AuthorizerVarName, plugincel.RequestResourceAuthorizerVarName:
			found |= readsChanging
		}
	}
	celast.PostOrderVisit(checked.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.ComprehensionKind:
			found |= folds
		case celast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.Index || call.FunctionName() == operators.OptIndex {
				if key := call.Args()[len(call.Args())-1]; key.Kind() != celast.LiteralKind {
					found |= indexes
				}
			}
		default:
		}
	}))
	return found
}
