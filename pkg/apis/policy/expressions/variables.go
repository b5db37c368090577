// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// MaxVariableDepth bounds the variables that are evaluated inside each other,
	// as each takes up some of the stack.
	MaxVariableDepth = 1_000
	// maxFaults bounds the faults of one policy that are told.
	maxFaults = 8
	// maxShown bounds the variables of a circle that are named.
	maxShown = 8
)

// Fault says why a variable must not be evaluated.
type Fault struct {
	// Index is the place of the variable in its policy.
	Index int
	// Detail is for whoever wrote the policy.
	Detail string
}

// CheckVariables returns what keeps the variables of a policy from ever being
// evaluated: one that may read itself, in whichever way, or that others lead to
// through more than MaxVariableDepth variables. Upstream evaluates a variable
// when it is first read, as part of the expression that reads it, and has no
// guard against either; see composition.go in
// k8s.io/apiserver/pkg/admission/plugin/cel. As there, only the last definition
// of a name counts, also for what stands above it.
//
// env is what the expressions are parsed in; one that does not parse reads
// nothing. With skip, which may be nil, variables that are never evaluated can be
// left out.
func CheckVariables(env *cel.Env, variables []admissionregistrationv1.Variable, skip func(i int) bool) []Fault {
	c := &check{
		env: env, variables: variables, skip: skip,
		last: make(map[string]int, len(variables)), depths: make([]int, len(variables)),
	}
	for i := range variables {
		c.last[variables[i].Name] = i
	}
	for i := range variables {
		if c.last[variables[i].Name] == i && c.depths[i] == unseen {
			c.visit(i)
		}
	}
	return c.faults
}

// States of a variable for which no depth is known yet.
const (
	unseen = 0
	inside = -1
)

// check walks from each variable to those that it reads, depth first.
type check struct {
	env       *cel.Env
	variables []admissionregistrationv1.Variable
	skip      func(i int) bool

	last   map[string]int // index of the definition that counts, by name
	depths []int          // of variables evaluated inside each other, by index
	path   []int          // from where the walk began to where it is
	faults []Fault
}

// visit sets the depth of variable i. It is recursive, but with little on the
// stack: the size of a policy bounds it well enough.
func (c *check) visit(i int) {
	c.depths[i] = inside
	c.path = append(c.path, i)
	depth := 1
	for _, next := range c.reads(i) {
		switch c.depths[next] {
		case inside:
			c.circle(next)
			continue
		case unseen:
			c.visit(next)
		}
		depth = max(depth, c.depths[next]+1)
	}
	c.path = c.path[:len(c.path)-1]
	c.depths[i] = depth
	if depth == MaxVariableDepth+1 { // those that read it add nothing new
		c.fault(i, fmt.Sprintf("variables.%s needs more than %d variables that read each other: let fewer of them build on others",
			c.variables[i].Name, MaxVariableDepth))
	}
}

// reads returns the variables that variable i may read. One that may read all
// reads itself.
func (c *check) reads(i int) []int {
	variable := &c.variables[i]
	if (c.skip != nil && c.skip(i)) || !strings.Contains(variable.Expression, variablesName) {
		return nil
	}
	parsed, issues := c.env.Parse(variable.Expression)
	if issues.Err() != nil {
		return nil
	}
	read := readsOf(parsed.NativeRep().Expr())
	if read.all {
		c.fault(i, fmt.Sprintf("variables.%s may read itself: it uses `variables` as a whole: write variables.name for each variable that it reads", variable.Name))
	}
	found := make([]int, 0, len(read.names))
	for _, name := range read.names {
		if next, ok := c.last[name]; ok {
			found = append(found, next)
		}
	}
	return found
}

// circle reports the end of the path, from first on, which reads first again. It
// does so where the circle is closed: at the definition that comes last.
func (c *check) circle(first int) {
	circle := c.path
	for circle[0] != first {
		circle = circle[1:]
	}
	closing := 0
	for k := range circle {
		if circle[k] > circle[closing] {
			closing = k
		}
	}
	names := make([]string, 0, maxShown+2)
	for k := range min(len(circle), maxShown) {
		names = append(names, c.variables[circle[(closing+k)%len(circle)]].Name)
	}
	if len(circle) > maxShown {
		names = append(names, "...")
	}
	at := circle[closing]
	names = append(names, c.variables[at].Name)
	c.fault(at, fmt.Sprintf("variables.%s may read itself: %s: give each variable a name of its own and let it read only those above it",
		c.variables[at].Name, strings.Join(names, " -> ")))
}

// fault tells of a variable once.
func (c *check) fault(i int, detail string) {
	if len(c.faults) == maxFaults {
		return
	}
	for k := range c.faults {
		if c.faults[k].Index == i {
			return
		}
	}
	c.faults = append(c.faults, Fault{Index: i, Detail: detail})
}
