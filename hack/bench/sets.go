// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// set is a set of policies, with what is promised of it.
type set struct {
	file  string
	phase string
	// maxRatio is how many times the CPU time of the webhook that admits everything a
	// request may take; 0 is no limit.
	maxRatio float64
}

// sets are the sets of policies by their names.
func sets() map[string]set {
	return map[string]set{
		"kyverno-jsonpatch": {file: "hack/bench/sets/kyverno-jsonpatch.yaml", phase: phaseMutate},
		"kyverno-merge-1":   {file: "hack/bench/sets/kyverno-merge-1.yaml", phase: phaseMutate, maxRatio: 2},
		"kyverno-merge-10":  {file: "hack/bench/sets/kyverno-merge-10.yaml", phase: phaseMutate, maxRatio: 4},
	}
}

// useSet replaces what is measured by a set, unless none is named. A limit that is given
// stays.
func (o *options) useSet(given map[string]bool) error {
	if o.set == "" {
		return nil
	}
	chosen, ok := sets()[o.set]
	switch {
	case !ok:
		return fmt.Errorf("there is no set %q, want one of %q", o.set, slices.Sorted(maps.Keys(sets())))
	case given["policies"] || given["phase"]:
		return errors.New("--set stands in place of --policies and --phase: give either")
	}
	o.policies, o.phase = chosen.file, chosen.phase
	if !given["max-ratio"] {
		o.maxRatio = chosen.maxRatio
	}
	return nil
}
