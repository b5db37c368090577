// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
	policyexpressions "github.com/portcullis-dev/portcullis/pkg/apis/policy/expressions"
)

// clause is one expression of a policy. The zero value stands for none.
type clause struct {
	source string
	*expression
	fault *apiservercel.Error // of one that does not compile
	cost  *bound.Expression   // nil when it is not known
}

func (c *clause) none() bool { return c.expression == nil && c.fault == nil }

// definition is a variable of a policy.
type definition struct {
	clause
	name string
	// steady says that the variable has the same value for all expressions of the
	// policy that read it while one request is judged with one param.
	steady bool
}

// manyDefinitions is how many are found faster by a table.
const manyDefinitions = 8

// definitions are the variables of a policy, one for each name.
type definitions struct {
	list  []definition
	index map[string]int // nil for a few
}

// find returns -1 for a name that is not defined.
func (d *definitions) find(name string) int {
	if d.index != nil {
		if i, ok := d.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range d.list {
		if d.list[i].name == name {
			return i
		}
	}
	return -1
}

// set keeps the place of an earlier definition of the name, which does not count
// any more.
func (d *definitions) set(added definition) {
	if i := d.find(added.name); i >= 0 {
		d.list[i] = added
		return
	}
	d.list = append(d.list, added)
	if d.index != nil {
		d.index[added.name] = len(d.list) - 1
	}
}

// settle learns which variables are steady, once all are known.
func (d *definitions) settle() {
	var all uses
	for i := range d.list {
		if e := d.list[i].expression; e != nil {
			all |= e.uses
		}
	}
	for i := range d.list {
		e := d.list[i].expression
		d.list[i].steady = e != nil && e.uses&readsChanging == 0 &&
			(e.uses&readsVariables == 0 || all&readsChanging == 0)
	}
}

// variables compiles the variables of the policy, each of which sees those above
// it. Upstream does not evaluate one that does not compile, and nothing of a policy
// with faults is traced.
func (s *compilation) variables(specs []admissionregistrationv1.Variable) {
	d := &s.program.variables
	d.list = make([]definition, 0, len(specs))
	if len(specs) > manyDefinitions {
		d.index = make(map[string]int, len(specs))
	}
	faulty := make([]bool, len(specs))
	for i := range specs {
		compiled := s.clause(specs[i].Expression, s.judging, []*cel.Type{cel.AnyType, cel.DynType}, place{"variables", i, "expression"})
		faulty[i] = compiled.fault != nil
		var output *cel.Type
		if !faulty[i] {
			output = compiled.output
		}
		s.workspace.define(specs[i].Name, output)
		d.set(definition{name: specs[i].Name, clause: compiled})
	}
	d.settle()
	faults := policyexpressions.CheckVariables(s.compiler.base(), specs, func(i int) bool { return faulty[i] })
	for _, fault := range faults {
		at := place{"variables", fault.Index, "expression"}
		s.errs = append(s.errs, field.Invalid(at.path(), specs[fault.Index].Expression, fault.Detail))
		if s.program.unusable == nil {
			s.program.unusable = fmt.Errorf("failed to configure policy: %s: %s", at.path(), fault.Detail)
		}
	}
	if len(faults) == 0 && len(d.list) == len(specs) {
		s.weigh()
	}
}

// weigh learns what the variables cost at most. Without names that are defined
// twice, a variable reads those above it only, as the others were not declared when
// it was checked.
func (s *compilation) weigh() {
	s.costs = make(map[string]*bound.Expression, len(s.program.variables.list))
	for i := range s.program.variables.list {
		if variable := &s.program.variables.list[i]; variable.expression != nil {
			variable.cost = s.cost(variable.expression)
			s.costs[variable.name] = variable.cost
		}
	}
}
