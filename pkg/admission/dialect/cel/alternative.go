// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// alternatives lets or and orValue evaluate what they fall back on only when they
// do, as decorateOptionalOr of github.com/google/cel-go/cel does.
func alternatives(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := step.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return step, nil
	}
	overload, unwrap := "optional_or_optional", false
	switch call.Function() {
	case "or":
	case "orValue":
		overload, unwrap = "optional_orValue_value", true
	default:
		return step, nil
	}
	if id := call.OverloadID(); id != "" && id != overload {
		return step, nil
	}
	return &alternative{id: call.ID(), first: call.Args()[0], second: call.Args()[1], unwrap: unwrap}, nil
}

// alternative is the first of two expressions that has a value. The first is an
// optional one; with unwrap, the second is a value and so is the result.
type alternative struct {
	id            int64
	first, second interpreter.InterpretableV2
	unwrap        bool
}

// ID implements interpreter.InterpretableV2.
func (a *alternative) ID() int64 { return a.id }

// Eval implements interpreter.InterpretableV2.
func (a *alternative) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (a *alternative) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := a.first.Exec(frame)
	if types.IsUnknownOrError(value) {
		return value
	}
	optional, ok := value.(*types.Optional)
	switch {
	case !ok:
		return types.NoSuchOverloadErr()
	case !optional.HasValue():
		return a.second.Exec(frame)
	case a.unwrap:
		return optional.GetValue()
	}
	return value
}
