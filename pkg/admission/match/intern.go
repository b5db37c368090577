// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/internal/intern"
)

// Interner makes equal criteria one, and equal selectors of criteria that differ:
// memory holds them once, and a Subject is asked once about a selector. It keeps
// nothing alive. The zero value is ready for use; it is safe for concurrent use and
// must not be copied.
type Interner struct {
	selectors intern.Table[string, parsed]
	criteria  intern.Table[string, Criteria]
}

// Criteria returns the criteria that decide as c does, for all that are equal to c;
// c stays as it is.
func (in *Interner) Criteria(c *Criteria) *Criteria {
	if c == nil {
		return nil
	}
	shared := *c
	shared.namespaces.parsed = in.selector(c.namespaces.parsed)
	shared.objects.parsed = in.selector(c.objects.parsed)
	if !c.compiled || c.namespaces.err != nil || c.objects.err != nil {
		return &shared
	}
	return in.criteria.Intern(c.key(), &shared)
}

// selector goes by the text of a selector. Different ones have different texts:
// once parsed, neither keys nor values have the characters between them.
func (in *Interner) selector(p *parsed) *parsed {
	if p == nil {
		return nil
	}
	return in.selectors.Intern(p.String(), p)
}

// key is another for criteria that differ. They have no errors.
func (c *Criteria) key() string {
	return fmt.Sprintf("%t %t %q %q %q %q %t %q", c.equivalent, c.everyResource, c.namespaces.key(), c.objects.key(), c.excludes, c.rules,
		c.byKind, c.namespace) + c.keyOfKinds()
}

func (c *Criteria) keyOfKinds() string {
	var key strings.Builder
	for i := range c.kinds {
		p := &c.kinds[i]
		fmt.Fprintf(&key, " %q %q %q %q %q %x", p.group, p.version, p.kind, p.subresource, p.operations, p.guard)
	}
	return key.String()
}

// key tells a selector of everything from all others.
func (l selector) key() []string {
	if l.parsed == nil {
		return nil
	}
	return []string{l.parsed.String()}
}
