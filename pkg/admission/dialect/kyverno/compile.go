// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/autogen"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/condition"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// defaultTimeout bounds the judging of a request with one policy, as the default of
// Kyverno's webhooks does.
const defaultTimeout = 10 * time.Second

// compile returns the unit of a policy and its faults.
func (d *Dialect) compile(id policy.ID, annotations map[string]string, spec *kyvernov1.Spec) (*policy.Unit, field.ErrorList) {
	path := field.NewPath("spec")
	program := &program{
		one:     spec.ApplyRules != nil && *spec.ApplyRules == kyvernov1.ApplyOne,
		timeout: timeoutOf(spec),
	}
	compiled := &policy.Policy{Program: program, Mutates: true, OnError: failurePolicyOf(spec)}
	var errs field.ErrorList
	conditions, conditionErrs := compileMatchConditions(id.Name, spec.WebhookConfiguration, path.Child("webhookConfiguration", "matchConditions"))
	program.conditions = conditions
	errs = append(errs, conditionErrs...)
	rules := autogen.Rules(annotations, spec)
	reads, kinds, ruleErrs := d.rules(program, id, rules, path.Child("rules"))
	compiled.Reads = reads
	errs = append(errs, ruleErrs...)
	if spec.Admission != nil && !*spec.Admission {
		kinds = nil
	}
	if conditions != nil { // they are asked first, and may fail whatever the object is
		kinds = ofAnyObject(kinds)
	}
	compiled.Criteria = match.CompileKinds(id.Namespace, kinds)
	if len(spec.Rules) == 0 {
		errs = append(errs, field.Required(path.Child("rules"), "a policy has at least one rule"))
	}
	if len(spec.Rules) == 0 || errs != nil && len(kinds) == 0 { // nobody knows what it is about
		compiled.Criteria = match.CompileKinds(id.Namespace, []match.Kind{{Group: "*", Version: "*", Kind: "*", Subresource: "*"}})
		program.broken = errs.ToAggregate()
	}
	return &policy.Unit{ID: id, Policy: compiled, Warnings: warnings(annotations, rules, spec)}, errs
}

// rules compiles the rules of a policy into its program. It returns what they read, what
// finds the requests that they are about, and their faults.
func (d *Dialect) rules(into *program, id policy.ID, rules []autogen.Rule, path *field.Path) (reads []policy.Read, kinds []match.Kind, errs field.ErrorList) {
	into.withoutRoles = true
	faulty := sets.New[int]()
	for i := range rules {
		from := rules[i].From
		c := ruleCompiler{templates: d.templates, id: id, path: path.Index(from), place: fmt.Sprintf("rules[%d]", i)}
		rule := c.rule(&rules[i].Rule)
		rule.generated = rules[i].Generated
		into.rules = append(into.rules, rule)
		into.withoutRoles = into.withoutRoles && !c.asksRoles
		kinds = append(kinds, kindsOf(rule.selection)...)
		switch {
		case !rule.generated:
			reads = append(reads, c.reads...)
		case faulty.Has(from):
			continue // the rule that it is made of has told
		default:
			reads = appendNew(reads, c.reads)
			c.errs = generatedFaults(c.errs, rule.name)
		}
		if len(c.errs) > 0 {
			faulty.Insert(from)
			errs = append(errs, c.errs...)
		}
	}
	return reads, kinds, errs
}

// appendNew adds the reads that are not there yet: most of a rule that is made of another
// one are those of that.
func appendNew(reads, further []policy.Read) []policy.Read {
	for _, read := range further {
		same := func(known policy.Read) bool {
			at := known.Field.String()
			known.Field = read.Field
			return known == read && at == read.Field.String()
		}
		if !slices.ContainsFunc(reads, same) {
			reads = append(reads, read)
		}
	}
	return reads
}

// generatedFaults says of faults that they are those of a rule that the writer of the
// policy has not written.
func generatedFaults(errs field.ErrorList, name string) field.ErrorList {
	for _, err := range errs {
		err.Detail = fmt.Sprintf("in rule %q, which is made of this one for controllers of Pods: %s", name, err.Detail)
	}
	return errs
}

// failurePolicyOf returns the newer one of the two that a policy may have.
func failurePolicyOf(spec *kyvernov1.Spec) verdict.FailurePolicy {
	chosen := spec.FailurePolicy
	if spec.WebhookConfiguration != nil && spec.WebhookConfiguration.FailurePolicy != nil {
		chosen = spec.WebhookConfiguration.FailurePolicy
	}
	if chosen != nil && *chosen == kyvernov1.Ignore {
		return verdict.Ignore
	}
	return verdict.FailClosed
}

func timeoutOf(spec *kyvernov1.Spec) time.Duration {
	var seconds int32
	if spec.WebhookTimeoutSeconds != nil {
		seconds = *spec.WebhookTimeoutSeconds
	}
	if spec.WebhookConfiguration != nil && spec.WebhookConfiguration.TimeoutSeconds != nil {
		seconds = *spec.WebhookConfiguration.TimeoutSeconds
	}
	if seconds < 0 {
		seconds = 0
	}
	return cmp.Or(time.Duration(seconds)*time.Second, defaultTimeout)
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

// ruleCompiler compiles one rule and collects its faults.
type ruleCompiler struct {
	templates *template.Compiler
	id        policy.ID
	path      *field.Path
	place     string // for findings
	document  any    // the rule as JSON, into which $(...) refers
	declared  map[string]bool
	nesting   int // in how many loops the compiler is

	reads     []policy.Read
	asksRoles bool // its expressions may
	errs      field.ErrorList
}

func (c *ruleCompiler) rule(spec *kyvernov1.Rule) *rule {
	compiled := &rule{name: cmp.Or(spec.Name, c.place)}
	document, err := decoded(spec)
	if err != nil {
		c.errs = append(c.errs, field.InternalError(c.path, err))
	}
	c.document, c.declared = document, map[string]bool{}
	selected, errs := selection.Compile(spec.Match, spec.Exclude, c.id.Namespace, c.path)
	compiled.selection = selected
	c.errs = append(c.errs, errs...)
	compiled.entries = c.entries(spec.Context, c.at("context"), c.path.Child("context"))
	compiled.preconditions = c.conditions(spec.Preconditions, c.at("preconditions"), c.path.Child("preconditions"))
	compiled.mutation = c.mutation(spec.Mutate, c.path.Child("mutate"))
	c.roles(spec)
	if faults := decisive(c.errs); len(faults) > 0 {
		compiled.broken = fmt.Errorf("does not compile: %w", faults.ToAggregate())
	} else if compiled.mutation == nil {
		compiled.broken = errors.New("it changes nothing: it is no mutate rule")
	}
	return compiled
}

// roles notes that the rule reads who has which roles.
func (c *ruleCompiler) roles(spec *kyvernov1.Rule) {
	if document, ok := c.document.(map[string]any); ok {
		c.asksRoles = scope.AsksRoles(document["context"], document["preconditions"], document["mutate"])
	}
	matched := namesRoles(&spec.Match) || spec.Exclude != nil && namesRoles(spec.Exclude)
	if !c.asksRoles && !matched {
		return
	}
	for _, resource := range []string{"rolebindings", "clusterrolebindings"} {
		c.reads = append(c.reads, policy.Read{Field: c.path, Verb: "list", Resource: rbacv1.SchemeGroupVersion.WithResource(resource)})
	}
}

// namesRoles says whether requests are selected by the roles of their users.
func namesRoles(resources *kyvernov1.MatchResources) bool {
	for _, filters := range [][]kyvernov1.ResourceFilter{resources.Any, resources.All, {resources.ResourceFilter}} {
		for i := range filters {
			if len(filters[i].Roles) > 0 || len(filters[i].ClusterRoles) > 0 {
				return true
			}
		}
	}
	return false
}

// at is the place of a value in the rule.
func (c *ruleCompiler) at(path ...string) template.Place {
	return template.Place{Rule: c.document, Path: path}
}

func (c *ruleCompiler) entries(specs []kyvernov1.ContextEntry, at template.Place, path *field.Path) []*scope.Entry {
	entries, reads, errs := scope.Compile(specs, c.templates, at, c.id.Namespace, path)
	c.reads = append(c.reads, reads...)
	c.errs = append(c.errs, errs...)
	for i := range specs {
		c.declared[specs[i].Name] = true
	}
	for i, entry := range entries {
		c.uses(entry.Uses(), path.Index(i))
	}
	return entries
}

// faults adds the faults of a template at path.
func (c *ruleCompiler) faults(faults []template.Fault, path *field.Path) {
	c.errs = append(c.errs, template.At(faults, path)...)
}

// decisive are the faults because of which nobody can do what the policy says. The
// others concern the requests that come to them.
func decisive(errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(errs), func(err *field.Error) bool { return err.Origin == policy.OriginRequest })
}

func (c *ruleCompiler) conditions(spec *jsonValue, at template.Place, path *field.Path) *condition.Conditions {
	if spec == nil {
		return nil
	}
	compiled, errs := condition.Compile(spec, c.templates, at, path)
	c.errs = append(c.errs, errs...)
	if compiled != nil {
		c.uses(compiled.Uses(), path)
	}
	return compiled
}
