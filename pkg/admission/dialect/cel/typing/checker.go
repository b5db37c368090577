// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/lru"
)

const (
	// maxWork bounds what one policy costs: Work times the types that it is checked
	// against. It is about a second of one core.
	maxWork = 4 << 20
	// maxEnvironments bounds the environments that are kept. One of a type with a
	// pod template takes up 0.8 MB.
	maxEnvironments = 16
)

// Cluster is what types are taken from. What it shows does not change.
type Cluster interface {
	// Mapper maps resources to kinds. It is comparable, and clusters with the same
	// one have the same schemas; if it has a method Types() any, clusters with the
	// same Types have.
	Mapper() meta.RESTMapper
	// Schema has the contract of ResolveSchema of
	// k8s.io/apiserver/pkg/cel/openapi/resolver.
	Schema(kind schema.GroupVersionKind) (*spec.Schema, error)
}

// Checker checks policies. It is safe for concurrent use.
type Checker struct {
	base *environment.EnvSet

	mu sync.Mutex
	// types are those of the clusters whose types are those of environments. The
	// cluster itself, with all its objects, must not be held between two checks.
	types        any
	environments *lru.Cache // of *environment.EnvSet, by pair
}

// New returns a checker.
func New() *Checker {
	return &Checker{base: environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())}
}

// Check checks the expressions of a policy against the types of the cluster that
// its rules name. The same policy and cluster have the same result.
//
// Its cost is bounded, but for types that double within an expression, so that it
// may leave out types, which the result says. A check that ctx ends, or that panics, is an error.
func (c *Checker) Check(ctx context.Context, cluster Cluster, policy *admissionregistrationv1.ValidatingAdmissionPolicySpec) (result *Result, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			result, err = nil, fmt.Errorf("checking types: panic: %v; this is a fault of the program, please report it", problem)
		}
	}()
	mapper := cluster.Mapper()
	kinds, complete := kindsOf(mapper, policy.MatchConstraints)
	r := &run{
		base: c.base, environments: c.environmentsOf(mapper), cluster: cluster,
		params: paramKind(policy), expressions: expressionsOf(policy),
	}
	result = &Result{Unresolved: !complete}
	affordable := r.affordable()
	for _, kind := range kinds {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("checking types: %w", err)
		}
		if len(result.Types) == affordable {
			result.Unchecked = append(result.Unchecked, kind)
			continue
		}
		known, err := r.check(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("checking types against %v: %w", kind, err)
		}
		if known {
			result.Types = append(result.Types, kind)
		}
	}
	result.Findings = r.findings()
	return result, nil
}

// typesOf returns what is the same for the mappers of clusters with the same types.
func typesOf(mapper meta.RESTMapper) any {
	if own, ok := mapper.(interface{ Types() any }); ok {
		return own.Types()
	}
	return mapper
}

// environmentsOf returns the environments for the types of the clusters that have
// a mapper. Those of other clusters are given up: a type of the same name may
// differ.
func (c *Checker) environmentsOf(mapper meta.RESTMapper) *lru.Cache {
	types := typesOf(mapper)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.types != types || c.environments == nil {
		c.types, c.environments = types, lru.New(maxEnvironments)
	}
	return c.environments
}

// run is one check of one policy.
type run struct {
	base         *environment.EnvSet
	environments *lru.Cache
	cluster      Cluster
	params       schema.GroupVersionKind // empty without params
	expressions  []*expression
}

// affordable is how many types maxWork allows, at least one.
func (r *run) affordable() int { return max(1, maxWork/work(r.expressions)) }

// check checks every expression against one type. It reports whether the type has
// a schema.
func (r *run) check(ctx context.Context, kind schema.GroupVersionKind) (known bool, err error) {
	upstream, err := r.problems(ctx, kind, false)
	if errors.Is(err, resolver.ErrSchemaNotFound) {
		return false, nil
	}
	if err != nil || !slices.ContainsFunc(upstream, func(text string) bool { return text != "" }) {
		return err == nil, err
	}
	own, err := r.problems(ctx, kind, true)
	if err != nil {
		return false, err
	}
	for i, expression := range r.expressions {
		issue := Issue{Kind: kind, Text: own[i]}
		if expression.listed {
			issue.Listed = upstream[i]
		}
		if issue.Text != "" || issue.Listed != "" {
			expression.issues = append(expression.issues, issue)
		}
	}
	return true, nil
}

// problems returns what is wrong with each expression.
func (r *run) problems(ctx context.Context, kind schema.GroupVersionKind, mended bool) ([]string, error) {
	typed, err := r.environment(kind, mended)
	if err != nil {
		return nil, err
	}
	compiler, err := newCompiler(typed)
	if err != nil {
		return nil, err
	}
	problems := make([]string, len(r.expressions))
	for i, expression := range r.expressions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		problems[i] = compiler.check(expression)
	}
	return problems, nil
}

// findings returns those of status.typeChecking first, each part in the order of
// the fields.
func (r *run) findings() []Finding {
	var listed, further []Finding
	for _, expression := range r.expressions {
		if len(expression.issues) == 0 {
			continue
		}
		finding := Finding{FieldRef: expression.fieldRef, Issues: expression.issues, Listed: expression.listed}
		if finding.Listed {
			listed = append(listed, finding)
		} else {
			further = append(further, finding)
		}
	}
	return append(listed, further...)
}
