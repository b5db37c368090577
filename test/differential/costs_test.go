// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"fmt"
	"strings"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// slot is the part of a policy whose expressions come near to a limit of cost, or
// over it.
type slot int

const (
	noSlot slot = iota
	// callSlots come near to the limit of one expression.
	callSlots
	// conditionSlots come near to the budget of all match conditions.
	conditionSlots
	// validationSlots come near to the budget that validations and messages share.
	validationSlots
	// messageSlots do so in the messages.
	messageSlots
	// annotationSlots come near to the budget of audit annotations.
	annotationSlots
	// variableSlots are variables that are dear to whoever reads them first.
	variableSlots
	// dataSlots are dear with the large objects that some questions have then, and
	// cheap with others.
	dataSlots
)

// dataExpressions have a cost that depends on the object.
var dataExpressions = []string{
	"!object.spec.big.contains(object.spec.needle)",
	"object.spec.big.contains(object.spec.needle) || object.spec.needle.contains(object.spec.big)",
	"object.spec.long.all(x, !object.spec.big.contains(object.spec.needle))",
	"object.spec.long.exists(x, x + object.spec.big == object.spec.needle)",
	"object.spec.long.all(a, object.spec.long.exists(b, a == b))",
	"object.spec.long == oldObject.spec.long",
	"object.spec == object.spec && object.metadata == object.metadata",
	"sets.contains(object.spec.long, object.spec.long)",
	"object.spec.big.matches('^x*y?$')",
	"object.spec.long.map(x, object.spec.big).filter(x, x.startsWith('x')).size() == object.spec.long.size()",
	"(object.spec.big + object.spec.big).contains(object.spec.needle + object.spec.needle)",
	"!'%s and %s'.format([object.spec.big, object.spec.long]).contains(object.spec.needle)",
	"object.spec.long.join(object.spec.needle).size() >= 0 && object.spec.long.map(x, x + 'a').join().contains('item')",
	"object.spec.long.map(x, object.spec.long.map(y, x + y)).size() > 0",
	"object.spec.big.split('x').size() > 0 && object.spec.big.lowerAscii() == object.spec.big",
	"object.spec.long.transformMap(i, v, object.spec.long.filter(e, e == v).size()).all(k, v, v > 0)",
	"object.spec.nested in [object.spec, object.spec.nested] && object.spec.long in [object.spec.long]",
	"object.spec.long.all(x, x.find('[0-9]+') != '' && int(x.find('[0-9]+')) >= 0) && object.spec.long.sort().size() > 0",
	"params.data.big.contains(object.spec.needle) || true",
}

func (g *generator) heavy() slot {
	if !g.chance(5) {
		return noSlot
	}
	if g.chance(3) {
		g.large = true
		return dataSlots
	}
	return pick(g, callSlots, callSlots, conditionSlots, validationSlots, messageSlots, messageSlots, annotationSlots, variableSlots)
}

// perCost is what each expression of a slot costs, about: where a budget is
// shared, some more of them reach it.
var perCost = map[slot]int{
	callSlots:       celconfig.PerCallLimit,
	conditionSlots:  celconfig.RuntimeCELCostBudgetMatchConditions / 3,
	validationSlots: celconfig.RuntimeCELCostBudget / 12,
	messageSlots:    celconfig.RuntimeCELCostBudget / 11,
	annotationSlots: celconfig.RuntimeCELCostBudget / 15,
	variableSlots:   celconfig.PerCallLimit * 9 / 10,
}

// extra is the number of expressions that the slot has beyond the usual.
func (w *writer) extra(s slot) int {
	if w.heavy != s {
		return 0
	}
	switch s {
	case conditionSlots:
		return pick(w.generator, 2, 1, 3)
	case validationSlots, messageSlots:
		return pick(w.generator, 9, 8, 10, 11)
	case annotationSlots:
		return pick(w.generator, 13, 12, 14)
	case variableSlots:
		return pick(w.generator, 14, 10, 17)
	case noSlot, callSlots, dataSlots:
	}
	return 0
}

const authorizerCost = 350_000 // of a check, see library.CostEstimator

// budgets are shared by the expressions of a slot.
var budgets = map[slot]int{
	conditionSlots:  celconfig.RuntimeCELCostBudgetMatchConditions,
	validationSlots: celconfig.RuntimeCELCostBudget,
	messageSlots:    celconfig.RuntimeCELCostBudget,
	annotationSlots: celconfig.RuntimeCELCostBudget,
}

// planned is what the next costly expression shall cost: about its share, or all
// that is left of a budget, often to the last unit.
func (w *writer) planned() int {
	planned := perCost[w.heavy] + pick(w.generator, 0, 0, -2000, -300, -30, 30, 300, 2000) + w.draw(7) - 3
	if left := budgets[w.heavy] - w.spent; 0 < left && left < celconfig.PerCallLimit && !w.chance(3) {
		planned = left + pick(w.generator, 0, 0, 1, -1)
		w.exhausted = true
	}
	w.spent += planned
	return planned
}

// readsDear is a boolean expression that reads some of the dear variables.
func (w *writer) readsDear() string {
	var reads []string
	for range pick(w.generator, 3, 1, 2, 4) {
		reads = append(reads, "variables."+pick(w.generator, w.dear...))
	}
	return "!(" + strings.Join(reads, " || ") + ")"
}

// costly is a boolean expression that costs what its slot says, give or take a
// little: most of the cost is that of functions which cost more than they take.
func (w *writer) costly(usually bool) string {
	switch {
	case w.heavy == dataSlots:
		return pick(w.generator, dataExpressions...)
	case w.exhausted:
		return "true" // costs nothing
	}
	if w.chance(25) { // takes time, too
		w.spent += 100_000 // about
		return "lists.range(60).all(x, lists.range(60).all(y, x + y >= 0))"
	}
	left := w.planned()
	var parts []string
	for !w.telling && left > authorizerCost && w.chance(2) {
		parts = append(parts, pick(w.generator, "authorizer.group('').resource('pods').check('delete').allowed()",
			"authorizer.requestResource.check('delete').allowed()", "authorizer.path('/x').check('delete').allowed()"))
		left -= authorizerCost
	}
	// The cost of contains is the product of the lengths, each divided by ten.
	const rows = 1000
	if columns := left / rows; columns > 0 {
		parts = append(parts, fmt.Sprintf("'%s'.contains('%s')", long(rows*10), strings.Repeat("y", columns*10)))
		left -= columns * rows
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("'%s'.contains('y')", long(left*10)))
	}
	if usually && !w.chance(3) {
		return "!(" + strings.Join(parts, " || ") + ")"
	}
	return strings.Join(parts, " || ")
}
