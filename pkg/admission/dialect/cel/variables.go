// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

var (
	_ traits.Mapper   = (*variables)(nil)
	_ traits.Iterator = (*variablesIterator)(nil)
)

// variables is what expressions find under the name `variables`: a map in which a
// value is computed when it is first looked up. To expressions it is what MapValue
// of k8s.io/apiserver/pkg/cel/lazy is to them; but its order is that of the policy.
// It is not safe for concurrent use.
type variables struct {
	definitions *definitions
	evaluation  *evaluation // computes them
	values      []ref.Val   // nil where nothing has been looked up
}

// start forgets all values.
func (v *variables) start(of *definitions, by *evaluation) {
	v.definitions, v.evaluation = of, by
	if cap(v.values) < len(of.list) {
		v.values = make([]ref.Val, len(of.list))
		return
	}
	v.values = v.values[:len(of.list)]
	clear(v.values)
}

// keepSteady forgets the values that may be others for the expressions that follow.
func (v *variables) keepSteady() {
	for i := range v.values {
		if !v.definitions.list[i].steady {
			v.values[i] = nil
		}
	}
}

func (v *variables) at(i int) ref.Val {
	if v.values[i] == nil {
		v.values[i] = v.evaluation.variable(&v.definitions.list[i])
	}
	return v.values[i]
}

// Find implements traits.Mapper.
func (v *variables) Find(key ref.Val) (ref.Val, bool) {
	text, ok := key.(types.String)
	if !ok {
		return types.NewErr("no such overload"), true
	}
	name := string(text)
	if strings.Contains(name, "__") { // it may be escaped
		if name, ok = apiservercel.Unescape(name); !ok {
			return nil, false
		}
	}
	if i := v.definitions.find(name); i >= 0 {
		return v.at(i), true
	}
	return nil, false
}

// Get implements traits.Mapper.
func (v *variables) Get(key ref.Val) ref.Val {
	if value, ok := v.Find(key); ok {
		return value
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Mapper. It is an error when the value is one.
func (v *variables) Contains(key ref.Val) ref.Val {
	value, ok := v.Find(key)
	if value != nil && types.IsUnknownOrError(value) {
		return value
	}
	return types.Bool(ok)
}

// Size implements traits.Mapper.
func (v *variables) Size() ref.Val { return types.Int(len(v.values)) }

// Iterator implements traits.Mapper. As upstream, it goes over values and not over
// keys.
func (v *variables) Iterator() traits.Iterator { return &variablesIterator{of: v} }

// ConvertToNative implements ref.Val.
func (v *variables) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("disallowed conversion from %q to %q", variablesType, to.Name())
}

// ConvertToType implements ref.Val.
func (v *variables) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return typeOfVariables()
	}
	return types.NewErr("disallowed conversion from %q to %q", variablesType, to.TypeName())
}

// Equal implements ref.Val.
func (v *variables) Equal(other ref.Val) ref.Val {
	same, ok := other.(*variables)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Bool(v == same)
}

// Type implements ref.Val.
func (v *variables) Type() ref.Type { return typeOfVariables() }

// Value implements ref.Val.
func (v *variables) Value() any { return types.NoSuchOverloadErr() }

func typeOfVariables() *types.Type {
	return types.NewObjectType(variablesType, traits.IndexerType|traits.FieldTesterType|traits.IterableType)
}

type variablesIterator struct {
	of   *variables
	next int
}

// HasNext implements traits.Iterator.
func (i *variablesIterator) HasNext() ref.Val { return types.Bool(i.next < len(i.of.values)) }

// Next implements traits.Iterator.
func (i *variablesIterator) Next() ref.Val {
	i.next++
	return i.of.at(i.next - 1)
}

// ConvertToNative implements ref.Val.
func (i *variablesIterator) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("disallowed conversion to %q", to.Name())
}

// ConvertToType implements ref.Val.
func (i *variablesIterator) ConvertToType(to ref.Type) ref.Val {
	return types.NewErr("disallowed conversion to %q", to.TypeName())
}

// Equal implements ref.Val.
func (i *variablesIterator) Equal(other ref.Val) ref.Val {
	same, ok := other.(*variablesIterator)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Bool(i == same)
}

// Type implements ref.Val.
func (i *variablesIterator) Type() ref.Type { return types.IteratorType }

// Value implements ref.Val.
func (i *variablesIterator) Value() any { return nil }
