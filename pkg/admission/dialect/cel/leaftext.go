// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// printer writes parts of an expression as the author of the policy would:
// cel.ExprToString does not keep the quotes of strings.
type printer struct {
	info   *ast.SourceInfo
	source []rune
}

var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

func (p printer) text(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.LiteralKind:
		if text, ok := e.AsLiteral().(types.String); ok {
			return p.quoted(e.ID(), string(text))
		}
	case ast.SelectKind:
		text := p.text(e.AsSelect().Operand()) + "." + fieldName(e.AsSelect().FieldName())
		if e.AsSelect().IsTestOnly() {
			return "has(" + text + ")"
		}
		return text
	case ast.CallKind:
		if text, ok := p.call(e.AsCall()); ok {
			return text
		}
	}
	text, err := cel.ExprToString(e, p.info)
	if err != nil {
		return strings.Repeat(" ", maxLeafText+1) // too long for a leaf
	}
	return text
}

// call returns false for what is better left to cel.ExprToString: operators, and
// macros, which are other expressions by now.
func (p printer) call(call ast.CallExpr) (string, bool) {
	args := make([]string, len(call.Args()))
	for i, arg := range call.Args() {
		args[i] = p.text(arg)
	}
	switch {
	case call.IsMemberFunction():
		return p.text(call.Target()) + "." + call.FunctionName() + "(" + strings.Join(args, ", ") + ")", true
	case !isIndex(call):
		return "", false
	}
	switch call.FunctionName() {
	case operators.OptSelect:
		if name, ok := constantIndex(call.Args()[1]); ok {
			return args[0] + ".?" + fieldName(name), true
		}
		return "", false
	case operators.OptIndex:
		return args[0] + "[?" + args[1] + "]", true
	}
	return args[0] + "[" + args[1] + "]", true
}

func fieldName(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return "`" + name + "`"
}

// quoted returns a string literal, in the quotes of the source if that is easy.
func (p printer) quoted(id int64, text string) string {
	quote := "'"
	if at, ok := p.info.GetOffsetRange(id); ok && at.Start >= 0 && int(at.Start) < len(p.source) && p.source[at.Start] == '"' {
		quote = `"`
	}
	escaped := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(text)
	return quote + escaped + quote
}
