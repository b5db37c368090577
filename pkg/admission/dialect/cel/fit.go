// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"maps"
	"sync/atomic"

	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// parts are some parts of a policy. The zero value is none of them.
type parts uint8

func (p parts) has(one part) bool { return p&(1<<one) != 0 }

func (p parts) with(one part) parts { return p | 1<<one }

// brief says that all parts that can reach no limit take so little time together that
// nobody has to look meanwhile whether it is over.
const brief parts = 1 << 7

// maxBrief is what that costs at most: about a millisecond.
const maxBrief = 10_000

// maxFits bounds the sizes that a policy remembers. Sizes are powers of two, so that
// few ever occur.
const maxFits = 64

// fits remembers which parts of a policy can reach no limit, by the sizes of what
// they are evaluated for. It is safe for concurrent use.
type fits struct {
	known atomic.Pointer[map[bound.Sizes]parts]
}

// fit returns the parts that can reach no limit on data no larger than sizes.
// Messages are part of the validations.
func (p *program) fit(sizes bound.Sizes) parts {
	known := p.fits.known.Load()
	if known != nil {
		if fitting, ok := (*known)[sizes]; ok {
			return fitting
		}
	}
	fitting := p.measure(sizes)
	next := map[bound.Sizes]parts{}
	if known != nil && len(*known) < maxFits {
		next = maps.Clone(*known)
	}
	next[sizes] = fitting
	p.fits.known.Store(&next) // what another has learnt meanwhile is learnt again
	return fitting
}

func (p *program) measure(sizes bound.Sizes) parts {
	var fitting parts
	var all uint64
	for _, group := range []struct {
		part    part
		budget  uint64
		clauses [][]clause
	}{
		{conditions, celconfig.RuntimeCELCostBudgetMatchConditions, [][]clause{p.conditions}},
		{validations, celconfig.RuntimeCELCostBudget, [][]clause{p.validations, p.messages}},
		{annotations, celconfig.RuntimeCELCostBudget, [][]clause{p.annotations}},
	} {
		if most, ok := p.most(sizes, group.clauses); ok && most <= group.budget {
			fitting = fitting.with(group.part)
			all += most
		}
	}
	if all <= maxBrief {
		fitting |= brief
	}
	return fitting
}

// most returns what expressions cost at most all together, and false when that is
// not known or when one may exceed the limit of a call. A group computes its
// variables itself.
func (p *program) most(sizes bound.Sizes, groups [][]clause) (uint64, bool) {
	var total uint64
	for _, group := range groups {
		sum := costs{program: p, sizes: sizes, counted: make([]bool, len(p.variables.list))}
		for i := range group {
			if !group[i].none() && !sum.add(&group[i]) {
				return 0, false
			}
		}
		total += sum.total
	}
	return total, true
}

// costs adds up what expressions cost at most.
type costs struct {
	program *program
	sizes   bound.Sizes
	counted []bool // variables
	total   uint64
}

// add returns false when the cost is not known or above the limit of one call. It is
// recursive, which is bounded by the number of variables that read each other.
func (s *costs) add(c *clause) bool {
	if c.fault != nil {
		return true // is not evaluated
	}
	if c.cost == nil {
		return false
	}
	most, ok := c.cost.Cost(s.sizes)
	if !ok || most > celconfig.PerCallLimit {
		return false
	}
	s.total += most
	if c.uses&readsVariables == 0 {
		return true
	}
	for _, name := range c.cost.Variables() {
		i := s.program.variables.find(name)
		if i < 0 || s.counted[i] {
			continue
		}
		s.counted[i] = true
		if !s.add(&s.program.variables.list[i].clause) {
			return false
		}
	}
	return true
}
