// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/autogen"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// rules compiles the rules of a policy into its program. It returns what they read, what
// finds the requests that they are about, and their faults.
func (d *Dialect) rules(into *program, id policy.ID, rules []autogen.Rule, path *field.Path) (reads []policy.Read, kinds []match.Kind, errs field.ErrorList) {
	into.withoutRoles = true
	names := map[int]string{}
	faulty, told := sets.New[int](), sets.New[readKey]()
	for i := range rules {
		from := rules[i].From
		if rules[i].Replaced {
			into.rules = append(into.rules, &rule{name: rules[i].Name, replaced: true})
			continue
		}
		c := ruleCompiler{templates: d.templates, id: id, path: path.Index(from), place: fmt.Sprintf("rules[%d]", i)}
		rule := c.rule(&rules[i].Rule)
		if rule.generated = rules[i].Generated; rule.generated {
			rule.madeOf = names[from]
		}
		names[from] = cmp.Or(names[from], rule.name)
		into.rules = append(into.rules, rule)
		into.withoutRoles = into.withoutRoles && !c.asksRoles
		kinds = append(kinds, kindsOf(rule.selection)...)
		for _, read := range c.reads {
			if key := keyOf(read); !told.Has(key) { // most of a rule that is made of another one are those of that
				told.Insert(key)
				reads = append(reads, read)
			}
		}
		if rule.generated && faulty.Has(from) {
			continue // the rule that it is made of has told
		}
		if rule.generated {
			c.errs = generatedFaults(c.errs, rule.name)
		}
		if len(c.errs) > 0 {
			faulty.Insert(from)
			errs = append(errs, c.errs...)
		}
	}
	return reads, kinds, errs
}

// readKey is what reads are equal by.
type readKey struct {
	field string
	read  policy.Read
}

func keyOf(read policy.Read) readKey {
	at := read.Field.String()
	read.Field = nil
	return readKey{at, read}
}

// generatedFaults says of faults that they are those of a rule that the writer of the
// policy has not written.
func generatedFaults(errs field.ErrorList, name string) field.ErrorList {
	for _, err := range errs {
		err.Detail = fmt.Sprintf("in rule %q, which is made of this one for controllers of Pods: %s", name, err.Detail)
	}
	return errs
}

// kindsOf returns what finds the requests that a rule may be about.
func kindsOf(selected *selection.Selection) []match.Kind {
	if selected == nil {
		return nil
	}
	var kinds []match.Kind
	for _, kind := range selected.Kinds() {
		kinds = append(kinds, match.Kind(kind))
	}
	return kinds
}

// ofAnyObject returns the kinds for objects of any name, namespace and labels.
func ofAnyObject(kinds []match.Kind) []match.Kind {
	for i := range kinds {
		kinds[i].Names, kinds[i].Namespaces, kinds[i].Labels = nil, nil, nil
	}
	return kinds
}
