// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// tired compiles toys whose programs count how often they were told to rest.
type tired struct {
	dialecttest.Toy
	rests map[string]int
}

func (d tired) Compile(ctx context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	unit, errs := d.Toy.Compile(ctx, obj)
	if unit != nil && unit.Policy != nil {
		unit.Policy.Program = resting{unit.Policy.Program, func() { d.rests[unit.ID.Name]++ }}
	}
	return unit, errs
}

type resting struct {
	policy.Program
	rest func()
}

func (r resting) Rest() { r.rest() }

// TestRest: a policy rests as soon as it is in force, and then whenever all do; one
// that was replaced or deleted, or that is only compiled, does not.
func TestRest(t *testing.T) {
	d := tired{rests: map[string]int{}}
	c := catalog.New([]policy.Dialect{d})
	apply := func(changes ...catalog.Change) {
		t.Helper()
		if err := c.Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	want := func(rests map[string]int) {
		t.Helper()
		if !maps.Equal(d.rests, rests) {
			t.Errorf("got rests %v, want %v", d.rests, rests)
		}
		clear(d.rests)
	}
	id := func(name string) policy.ID { return policy.ID{Kind: "Toy", Name: name} }
	apply(catalog.Change{ID: id("a"), Object: toy("a", "x")})
	apply(catalog.Change{ID: id("b"), Object: toy("b", "x")})
	want(map[string]int{"a": 1, "b": 1})
	c.Rest()
	c.Rest()
	want(map[string]int{"a": 2, "b": 2})
	apply(catalog.Change{ID: id("a"), Object: toy("a", "y")})
	apply(catalog.Change{ID: id("b")})
	if _, errs := c.Compile(t.Context(), "Toy", toy("candidate", "x")); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want(map[string]int{"a": 1})
	c.Rest()
	want(map[string]int{"a": 1})
}
