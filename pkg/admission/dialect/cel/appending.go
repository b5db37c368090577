// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"sync"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
)

// newAppends returns what lets macros such as filter and map append to their result
// without a new list for each element, which is what @result + [element] makes.
func newAppends() interpreter.InterpretableDecoratorV2 {
	cells := &sync.Pool{New: func() any { return newCell() }}
	return func(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := step.(interpreter.InterpretableCall)
		if !ok || call.Function() != operators.Add || len(call.Args()) != 2 {
			return step, nil
		}
		list, ok := call.Args()[1].(interpreter.InterpretableConstructor)
		if !ok || list.Type() != types.ListType || len(list.InitVals()) != 1 {
			return step, nil
		}
		// No expression can name it, and no macro adds an optional element to it.
		if variableOf(call.Args()[0]) != parser.HiddenAccumulatorName {
			return step, nil
		}
		return &appends{InterpretableCall: call, result: call.Args()[0], element: list.InitVals()[0], cells: cells}, nil
	}
}

// appends does what the call does that it stands for; see evalBinary and evalList in
// github.com/google/cel-go/interpreter. The call itself does it where the result is no
// list, after an error for one.
type appends struct {
	interpreter.InterpretableCall
	result, element interpreter.InterpretableV2
	cells           *sync.Pool
}

// Eval implements interpreter.InterpretableV2.
func (a *appends) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (a *appends) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	result, ok := a.result.Exec(frame).(traits.MutableLister)
	if !ok {
		return a.InterpretableCall.Exec(frame)
	}
	element := a.element.Exec(frame)
	if types.IsUnknownOrError(element) {
		return element
	}
	one, ok := a.cells.Get().(*cell)
	if !ok { // unreachable: the pool has nothing else
		one = newCell()
	}
	one.element[0] = element
	sum := result.Add(one.list)
	one.element[0] = nil
	a.cells.Put(one)
	return sum
}

// cell is a list of one element that is used again: the list to which it is added
// takes the element out.
type cell struct {
	element []ref.Val
	list    traits.Lister
}

func newCell() *cell {
	element := make([]ref.Val, 1)
	return &cell{element: element, list: types.NewRefValList(types.DefaultTypeAdapter, element)}
}
