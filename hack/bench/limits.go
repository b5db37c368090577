// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
)

// limit is how many times the CPU time of one target another one may need.
type limit struct {
	target, to   int
	name, toName string
	most         float64
}

// limitsOf returns the limits for the targets, of which the first admits everything.
func limitsOf(o *options, targets []*target) []limit {
	var limits []limit
	add := func(target, to int, most float64) {
		if most > 0 {
			limits = append(limits, limit{target: target, to: to, name: targets[target].name, toName: targets[to].name, most: most})
		}
	}
	servers := max(len(o.unmatched), 1)
	for i := range servers {
		add(1+i, 0, o.maxRatio)
	}
	if servers > 1 {
		add(servers, 1, o.maxGrowth)
	}
	return limits
}

// check prints what the targets need beside the limits, and fails when one is missed.
func (r *rounds) check(out io.Writer, limits []limit) error {
	if len(limits) > 0 {
		fmt.Fprintln(out)
	}
	var errs []error
	for _, l := range limits {
		got, met := r.ratios(l.target, l.to, (*sample).microseconds), "met"
		if got.median > l.most {
			met = "MISSED"
			errs = append(errs, fmt.Errorf("%s needs %.2f times the CPU time of %s, want at most %.2f", l.name, got.median, l.toName, l.most))
		}
		fmt.Fprintf(out, "%s needs %s times the CPU time of %s, at most %.2f: %s\n", l.name, got.text(2), l.toName, l.most, met)
	}
	return errors.Join(errs...)
}
