// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package autogen makes rules about the controllers of Pods of rules about Pods, as
// Kyverno's pkg/autogen/v1 does: with the same kinds, limits, names and order, and with
// the same replacement of text. It does not know what rules do to objects.
package autogen

import (
	"slices"
	"strings"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// prefix is that of the names of the rules that are made.
const prefix = "autogen-"

// Rule is a rule of a policy as it is applied.
type Rule struct {
	kyvernov1.Rule
	// From is the index of the rule in the spec that it is, or that it is made of.
	From int
	// Generated says that it is made of that one.
	Generated bool
	// Replaced says that it is not applied.
	Replaced bool
}

// Rules returns the rules of a policy in the order in which they are applied: those of
// the spec, and then what is made of them. A rule of the spec that has the name of one
// that is made, as in a copy of a policy that was read from a cluster, is replaced where
// there is any that is made. What is returned shares its values with spec; neither may be
// changed.
func Rules(annotations map[string]string, spec *kyvernov1.Spec) []Rule {
	generated := generate(annotations, spec)
	rules := make([]Rule, 0, len(spec.Rules)+len(generated))
	for i := range spec.Rules {
		replaced := len(generated) > 0 && isGeneratedName(spec.Rules[i].Name)
		rules = append(rules, Rule{Rule: spec.Rules[i], From: i, Replaced: replaced})
	}
	return append(rules, generated...)
}

// Generated returns those of Rules that are made of others.
func Generated(annotations map[string]string, spec *kyvernov1.Spec) []kyvernov1.Rule {
	var rules []kyvernov1.Rule
	for _, rule := range generate(annotations, spec) {
		rules = append(rules, rule.Rule)
	}
	return rules
}

func generate(annotations map[string]string, spec *kyvernov1.Spec) []Rule {
	if !supported(spec) {
		return nil
	}
	wanted := controllersOf(annotations)
	var rules []Rule
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if !becomesRules(rule) {
			continue
		}
		if len(wanted.templated) > 0 {
			rules = append(rules, Rule{Rule: forTemplates(rule, wanted.templated), From: i, Generated: true})
		}
		if wanted.cronJob {
			rules = append(rules, Rule{Rule: forCronJobs(rule), From: i, Generated: true})
		}
	}
	return rules
}

// becomesRules says whether a rule of a policy for which rules are made is one of which
// some are.
func becomesRules(rule *kyvernov1.Rule) bool {
	if isGeneratedName(rule.Name) || !slices.ContainsFunc(kindsOf(&rule.Match), isPod) || !becomesMutation(rule.Mutate) {
		return false
	}
	if rule.Exclude == nil {
		return true
	}
	excluded := kindsOf(rule.Exclude)
	return len(excluded) == 0 || slices.ContainsFunc(excluded, isPod)
}

// becomesMutation says whether there is a form of a mutation for controllers. A rule
// without any, of which no more could be read, has one: it fails there, too.
//
// Kyverno goes on where this says no: nested loops become a patch that removes the
// template, and targets are forgotten, so that the rule changes the controllers instead.
func becomesMutation(mutation *kyvernov1.Mutation) bool {
	switch {
	case mutation == nil:
		return true
	case len(mutation.Targets) > 0:
		return false
	case mutation.PatchStrategicMerge != nil:
		return true
	}
	nested := func(entry kyvernov1.ForEachMutation) bool { return entry.PatchStrategicMerge == nil }
	return len(mutation.ForEach) > 0 && !slices.ContainsFunc(mutation.ForEach, nested)
}

func isGeneratedName(name string) bool { return strings.HasPrefix(name, prefix) }
