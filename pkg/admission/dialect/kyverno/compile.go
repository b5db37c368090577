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
	return &policy.Unit{ID: id, Policy: compiled, Warnings: warnings(annotations, rules)}, errs
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
