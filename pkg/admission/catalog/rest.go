// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/portcullis-dev/portcullis/pkg/admission/policy"

// Rest lets the programs in force put away what no request has needed since the
// last call. It is for someone who calls it every now and then: the longer the time
// between two calls, the longer what requests have needed is kept ready.
func (c *Catalog) Rest() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, entry := range c.entries {
		rest(entry.unit)
	}
	for _, unit := range c.fixed {
		rest(unit)
	}
}

func rest(unit *policy.Unit) {
	if unit.Policy == nil {
		return
	}
	if program, ok := unit.Policy.Program.(policy.Resting); ok {
		program.Rest()
	}
}
