// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

const (
	// partsName is what the parts of objects are found under. No expression can name it.
	partsName = "@parts"
	// maxParts bounds the parts that a frame keeps. Each is looked for among all.
	maxParts = 32
)

// objectParts makes the CEL values of the maps and lists within the objects of a
// request, and of what is in those. They are what the adapter of the interpreter makes,
// but each is made once for all policies that look at it. A map or list is known by its
// address, which nothing else gets as long as its value is kept. It is not safe for
// concurrent use.
type objectParts struct {
	types.Adapter
	known []objectPart
}

type objectPart struct {
	at    uintptr
	size  int
	value ref.Val
}

// NativeToValue implements types.Adapter.
func (p *objectParts) NativeToValue(native any) ref.Val {
	switch native.(type) {
	case map[string]any, []any:
	default:
		return p.Adapter.NativeToValue(native)
	}
	raw := reflect.ValueOf(native)
	at, size := raw.Pointer(), raw.Len()
	for i := range p.known {
		if part := &p.known[i]; part.at == at && part.size == size {
			return part.value
		}
	}
	var value ref.Val
	if object, ok := native.(map[string]any); ok {
		value = types.NewStringInterfaceMap(p, object)
	} else {
		value = types.NewDynamicList(p, native)
	}
	if len(p.known) < maxParts && size > 0 {
		p.known = append(p.known, objectPart{at: at, size: size, value: value})
	}
	return value
}

// keepsParts lets what reads a part of an object take it from the parts that are known.
func keepsParts(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	attribute, ok := step.(interpreter.InterpretableAttribute)
	if !ok {
		return step, nil
	}
	// It is seen again with each field that it goes on to.
	if _, ok := step.(*reading); ok {
		return step, nil
	}
	switch variableOf(attribute) {
	case plugincel.ObjectVarName, plugincel.OldObjectVarName:
		return &reading{attribute}, nil
	}
	return step, nil
}

// variableOf returns the name of the variable that a step reads, and nothing when it
// does more than that.
func variableOf(step interpreter.InterpretableV2) string {
	attribute, ok := step.(interpreter.InterpretableAttribute)
	if !ok {
		return ""
	}
	variable, ok := attribute.Attr().(interpreter.NamespacedAttribute)
	if !ok || len(variable.Qualifiers()) > 0 || len(variable.CandidateVariableNames()) != 1 {
		return ""
	}
	return variable.CandidateVariableNames()[0]
}

// reading does what the attribute does that it stands for; see evalAttr in
// github.com/google/cel-go/interpreter.
type reading struct {
	interpreter.InterpretableAttribute
}

// Eval implements interpreter.InterpretableV2.
func (r *reading) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (r *reading) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	found, err := r.Resolve(frame)
	if err != nil {
		return types.LabelErrNode(r.ID(), types.WrapErr(err))
	}
	switch found.(type) {
	case map[string]any, []any:
		known, _ := frame.ResolveName(partsName)
		if parts, ok := known.(*objectParts); ok {
			parts.Adapter = r.Adapter()
			return parts.NativeToValue(found)
		}
	}
	return r.Adapter().NativeToValue(found)
}
