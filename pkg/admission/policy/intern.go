// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/portcullis-dev/portcullis/pkg/admission/internal/intern"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
)

// Interner makes one what many units have alike: selectors, and the params of
// bindings. It keeps nothing alive. The zero value is ready for use; it is safe
// for concurrent use and must not be copied.
type Interner struct {
	criteria match.Interner
	params   intern.Table[paramsKey, Params]
}

// paramsKey is what params are equal by.
type paramsKey struct {
	name, namespace, selector string
	allowAbsent               bool
}

// Unit returns a unit that does what u does and shares with others what they have
// alike; u stays as it is.
func (in *Interner) Unit(u *Unit) *Unit {
	if u == nil {
		return nil
	}
	own := *u
	if u.Policy != nil {
		p := *u.Policy
		p.Criteria = in.criteria.Criteria(p.Criteria)
		own.Policy = &p
	}
	if u.Binding != nil {
		b := *u.Binding
		b.Criteria, b.Params = in.criteria.Criteria(b.Criteria), in.sharedParams(b.Params)
		own.Binding = &b
	}
	return &own
}

// sharedParams leaves alone what cannot be used.
func (in *Interner) sharedParams(p *Params) *Params {
	if p == nil || p.Err != nil {
		return p
	}
	key := paramsKey{name: p.Name, namespace: p.Namespace, allowAbsent: p.AllowAbsent}
	if p.Name == "" {
		if p.Selector == nil || p.Selector.String() == "" && !p.Selector.Empty() {
			return p // selects nothing, which has no text of its own
		}
		key.selector = p.Selector.String()
	}
	own := *p
	return in.params.Intern(key, &own)
}
