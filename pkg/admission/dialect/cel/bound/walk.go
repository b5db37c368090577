// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"strings"

	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// maxNodes bounds the work of one walk; variables are walked once each.
	maxNodes = 50_000
	// maxVariableDepth bounds chains of variables that read variables.
	maxVariableDepth = 64
)

// walk computes the bound of one expression on data of one size. It passes the
// expression once, with the number of times that each node is evaluated at most.
type walk struct {
	// data bounds an object of the request, metadata and rest its fields.
	data, metadata, rest value
	// nodes counts down to 0, depth counts the variables within variables.
	nodes, depth int
	// variables remembers the values of variables.
	variables map[*Expression]value
	// arguments is the stack of the arguments of calls.
	arguments []value

	// The rest belongs to the expression that is being walked: itself, how often the
	// current node is evaluated, what all nodes before it cost, and the loops around it.
	current *Expression
	rounds  uint64
	cost    uint64
	loops   []loop
}

func newWalk(s Sizes) *walk {
	w := &walk{metadata: s.metadata.value(), rest: s.rest.value(), nodes: maxNodes}
	// An object is a map of its fields, which the rest counts but for the metadata.
	w.data = w.rest.with(w.metadata)
	w.data.object = true
	return w
}

// expression bounds the value of e and what e costs itself.
func (w *walk) expression(e *Expression) (value, uint64) {
	if e == nil || e.checked == nil || w.depth > maxVariableDepth {
		return anything(), unbounded
	}
	outer := *w
	w.current, w.rounds, w.cost, w.loops = e, 1, 0, nil
	w.depth++
	v := w.node(e.checked.Expr())
	cost := w.cost
	w.depth--
	w.current, w.rounds, w.cost, w.loops = outer.current, outer.rounds, outer.cost, outer.loops
	return v, cost
}

// charge adds what evaluating the current node once costs.
func (w *walk) charge(cost uint64) {
	w.cost = plus(w.cost, times(w.rounds, cost))
}

// giveUp is the bound of everything that has none.
func (w *walk) giveUp() value {
	w.cost = unbounded
	return anything()
}

// node bounds the value of expr and charges what it costs. The costs are those of
// CostTracker.Observe in cel-go's interpreter/runtimecost.go.
func (w *walk) node(expr celast.Expr) value {
	if w.nodes--; w.nodes < 0 {
		return w.giveUp()
	}
	switch expr.Kind() {
	case celast.LiteralKind:
		return literal(expr.AsLiteral())
	case celast.IdentKind:
		return w.identifier(expr)
	case celast.SelectKind:
		return w.selection(expr)
	case celast.CallKind:
		return w.call(expr)
	case celast.ListKind:
		return w.list(expr.AsList())
	case celast.MapKind:
		return w.mapping(expr.AsMap())
	case celast.StructKind:
		for child := range children(expr) {
			w.node(child)
		}
		w.charge(common.StructCreateBaseCost)
		return anything()
	case celast.ComprehensionKind:
		return w.comprehension(expr.AsComprehension())
	case celast.UnspecifiedExprKind:
	}
	return w.giveUp()
}

func literal(v ref.Val) value {
	switch v := v.(type) {
	case types.String:
		return text(uint64(len(v)))
	case types.Bytes:
		return text(uint64(len(v)))
	case types.Int:
		bounds := scalar()
		if v > 0 {
			bounds.atMost = uint64(v)
		}
		return bounds
	default:
		return scalar()
	}
}

func (w *walk) identifier(expr celast.Expr) value {
	w.charge(common.SelectAndIdentCost)
	name, global := strings.CutPrefix(expr.AsIdent(), ".")
	if !global {
		if v, found := w.local(name); found {
			return v
		}
	}
	switch name {
	case "object", "oldObject", "request", "params", "namespaceObject":
		return w.data
	}
	if t := w.current.checked.GetType(expr.ID()); t != nil && t.Kind() == types.TypeKind {
		return scalar()
	}
	return anything()
}

// selection bounds operand.field and has(operand.field).
func (w *walk) selection(expr celast.Expr) value {
	selected := expr.AsSelect()
	w.charge(common.SelectAndIdentCost)
	if v, found := w.variable(selected); found {
		w.charge(common.SelectAndIdentCost)
		return v
	}
	v := w.field(w.operand(selected.Operand()), selected.FieldName())
	if selected.IsTestOnly() {
		// The cost tracker may see the field itself under the ID of a presence test.
		return v.or(scalar())
	}
	return v
}

// operand bounds what a field or an element is selected of. The planner of cel-go
// appends the selection to an attribute, and makes a new one, which is charged, of
// anything that is none (planSelect and planCallIndex).
func (w *walk) operand(expr celast.Expr) value {
	switch {
	case expr.Kind() == celast.IdentKind || expr.Kind() == celast.SelectKind:
	case expr.Kind() == celast.CallKind && isAttribute(expr.AsCall().FunctionName()):
	default:
		w.charge(common.SelectAndIdentCost)
	}
	return w.node(expr)
}

func isAttribute(function string) bool {
	switch function {
	case operators.Index, operators.OptIndex, operators.OptSelect, operators.Conditional:
		return true
	}
	return false
}

// field bounds the field of v called name.
func (w *walk) field(v value, name string) value {
	switch {
	case !v.object:
		return v.element()
	case name == metadataField:
		return w.metadata
	default:
		return w.rest
	}
}

// variable bounds the variable of the policy that selected reads, if it does.
func (w *walk) variable(selected celast.SelectExpr) (value, bool) {
	operand := selected.Operand()
	if !isVariables(operand) {
		return value{}, false
	}
	if _, shadowed := w.local(operand.AsIdent()); shadowed {
		return value{}, false
	}
	e := w.current.variable(selected.FieldName())
	if v, walked := w.variables[e]; walked {
		return v, true
	}
	v, _ := w.expression(e)
	if w.variables == nil {
		w.variables = map[*Expression]value{}
	}
	w.variables[e] = v
	return v, true
}

func (w *walk) list(list celast.ListExpr) value {
	all := value{length: uint64(len(list.Elements())), values: 1}
	for _, element := range list.Elements() {
		all = all.with(w.node(element))
	}
	w.charge(common.ListCreateBaseCost)
	return all
}

func (w *walk) mapping(entries celast.MapExpr) value {
	all := value{length: uint64(len(entries.Entries())), values: 1}
	for _, entry := range entries.Entries() {
		all = all.with(w.node(entry.AsMapEntry().Key()))
		all = all.with(w.node(entry.AsMapEntry().Value()))
	}
	w.charge(common.MapCreateBaseCost)
	return all
}
