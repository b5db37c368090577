// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// glanceKey names what all policies share to see at a glance that a rule is not about a
// request.
var glanceKey = request.NewKey[*Subject]("kyverno selection")

// Glance is a request that many rules are to be asked about with little work. It knows
// nothing of the cluster. It is safe for concurrent use.
type Glance struct{ subject *Subject }

// GlanceAt returns the glance at a request.
func GlanceAt(req *request.Request) Glance {
	subject, err := request.Derive(req, glanceKey, func(req *request.Request) (*Subject, error) {
		s := NewSubject(req, nil)
		if s.object != nil { // what is found later would not be safe for concurrent use
			s.labels()
			s.annotations()
		}
		return s, nil
	})
	if err != nil {
		return Glance{}
	}
	return Glance{subject}
}

// mayTake is whether checkObject finds nothing, in an order in which most filters are
// done soon: whoever asks knows already that one of the kinds of the policy matches.
func (f *filter) mayTake(s *Subject) bool {
	if len(f.names) > 0 && !matchAny(f.names, s.name) || len(f.anyName) > 0 && !matchAny(f.anyName, s.name) {
		return false
	}
	return f.checkObject(s) == matches
}

// MayMatch is false only if the rule is not about the request, whatever the cluster
// holds. It looks at match alone, as far as the request says who matches.
func (s *Selection) MayMatch(at Glance) bool {
	if s == nil || !s.compiled || at.subject == nil || at.subject.object == nil {
		return true // Matches says what that means
	}
	if s.broken != nil {
		return s.MayTakeKind(at.subject)
	}
	for i := range s.match.filters {
		f := &s.match.filters[i]
		may := !f.resources || f.mayTake(at.subject)
		if may == s.match.any {
			return may
		}
	}
	return !s.match.any
}
