// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import "github.com/portcullis-dev/portcullis/pkg/admission/internal/intern"

// Interner makes equal selectors one, however many criteria have them: memory
// holds it once, and a Subject is asked once about it. It keeps nothing alive. The
// zero value is ready for use; it is safe for concurrent use and must not be
// copied.
type Interner struct{ selectors intern.Table[string, parsed] }

// Criteria returns c with the selectors that equal criteria have. It decides as c
// does, and c stays as it is.
func (in *Interner) Criteria(c *Criteria) *Criteria {
	if c == nil || c.namespaces.parsed == nil && c.objects.parsed == nil {
		return c
	}
	shared := *c
	shared.namespaces.parsed = in.selector(c.namespaces.parsed)
	shared.objects.parsed = in.selector(c.objects.parsed)
	return &shared
}

// selector goes by the text of a selector. Different ones have different texts:
// once parsed, neither keys nor values have the characters between them.
func (in *Interner) selector(p *parsed) *parsed {
	if p == nil {
		return nil
	}
	return in.selectors.Intern(p.String(), p)
}
