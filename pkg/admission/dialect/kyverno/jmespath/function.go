// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"fmt"
	"strings"
)

// Type is a set of the types that an argument may have.
type Type uint16

// The types of JMESPath, with two kinds of lists.
const (
	Null Type = 1 << iota
	Boolean
	Number
	String
	Array
	Object
	ArrayOfNumbers
	ArrayOfStrings
	ExpressionReference

	Any = Null | Boolean | Number | String | Array | Object
)

// String names the types of the set, as in "a string or a list".
func (t Type) String() string {
	if t == Any {
		return "any value"
	}
	names := []string{
		"null", "a boolean", "a number", "a string", "a list", "an object",
		"a list of numbers", "a list of strings", "an expression (&...)",
	}
	var in []string
	for i, name := range names {
		if t&(1<<i) != 0 {
			in = append(in, name)
		}
	}
	switch len(in) {
	case 0:
		return "nothing"
	case 1:
		return in[0]
	}
	return strings.Join(in[:len(in)-1], ", ") + " or " + in[len(in)-1]
}

// has says whether a value is of one of the types.
func (t Type) has(value any) bool {
	switch v := value.(type) {
	case nil:
		return t&Null != 0
	case bool:
		return t&Boolean != 0
	case int64, float64:
		return t&Number != 0
	case string:
		return t&String != 0
	case map[string]any:
		return t&Object != 0
	case *Reference:
		return t&ExpressionReference != 0
	case []any:
		return t&Array != 0 ||
			t&ArrayOfNumbers != 0 && all(v, isNumber) ||
			t&ArrayOfStrings != 0 && all(v, isString)
	}
	return false
}

// Param is one parameter of a function.
type Param struct {
	Types Type
	// Variadic says that the last parameter may come again, any number of times, and
	// is there at least once.
	Variadic bool
}

// Function is a function that expressions can call. As in the library, one without
// Params takes any number of arguments, and any values, and is given them all.
type Function struct {
	Name   string
	Params []Param
	// Call is given arguments that are of the types of Params: an ExpressionReference
	// is a *Reference. It spends from run for what it makes beyond the size of a
	// number. The error says what is wrong with the arguments; the name of the function
	// is put in front of it.
	Call func(ctx context.Context, run *Run, args []any) (any, error)
}

// Reference is an argument of the form &expression.
type Reference struct {
	node node
}

// Search evaluates the expression of the reference over a value, which is no Scope. It
// fails as the Search of an Expression does.
func (r *Reference) Search(ctx context.Context, run *Run, value any) (any, error) {
	return r.node.eval(ctx, run, value)
}

// checkCount says why the function cannot be called with so many arguments.
func (f *Function) checkCount(n int) string {
	want := len(f.Params)
	if want == 0 {
		return ""
	}
	noun := "arguments"
	if want == 1 {
		noun = "argument"
	}
	if f.Params[want-1].Variadic {
		if n < want {
			return fmt.Sprintf("function %s takes at least %d %s, not %d", f.Name, want, noun, n)
		}
		return ""
	}
	if n != want {
		return fmt.Sprintf("function %s takes %d %s, not %d", f.Name, want, noun, n)
	}
	return ""
}

// param returns the parameter that takes argument i.
func (f *Function) param(i int) Param {
	if len(f.Params) == 0 {
		return Param{Types: Any}
	}
	return f.Params[min(i, len(f.Params)-1)]
}

// describe says what a value is, in few words, for an error.
func describe(value any) string {
	const limit = 64
	switch v := value.(type) {
	case nil:
		return "null"
	case bool, int64, float64:
		return fmt.Sprint(v)
	case string:
		if len(v) > limit {
			v = strings.ToValidUTF8(v[:limit], "") + "..."
		}
		return fmt.Sprintf("the string %q", v)
	case []any:
		return describeList(v)
	case map[string]any:
		return "an object"
	case *Reference:
		return "an expression (&...)"
	}
	return fmt.Sprintf("of the unknown type %T", value)
}

func describeList(list []any) string {
	switch {
	case len(list) == 0:
		return "an empty list"
	case all(list, isNumber):
		return "a list of numbers"
	case all(list, isString):
		return "a list of strings"
	}
	for i, v := range list {
		if !isNumber(v) && !isString(v) {
			if _, nested := v.([]any); nested {
				return fmt.Sprintf("a list whose item %d is a list", i)
			}
			return fmt.Sprintf("a list whose item %d is %s", i, describe(v))
		}
	}
	return "a list of numbers and strings"
}

func all(list []any, is func(any) bool) bool {
	for _, v := range list {
		if !is(v) {
			return false
		}
	}
	return true
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}
