// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// mapped is a view that knows one kind, or nothing.
type mapped struct {
	cluster.View
	mapper meta.RESTMapper
}

func (m mapped) Mapper() meta.RESTMapper { return m.mapper }

// Equivalents implements cluster.View.
func (mapped) Equivalents(schema.GroupVersionResource, string) []cluster.Equivalent { return nil }

type failing struct{ meta.RESTMapper }

func (failing) KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, errors.New("no discovery")
}

func deployments(subresource string) request.Fields {
	fields := request.Fields{
		Operation: admission.Update, Namespace: "shop", SubResource: subresource,
		Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
	}
	if subresource == "scale" {
		fields.Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	}
	return fields
}

// TestKinds: criteria that select by kind decide as the index does, for objects and for
// subresources, and say why not.
func TestKinds(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	plain := func(kind string) match.Kind { return match.Kind{Group: "*", Version: "*", Kind: kind} }
	tests := []struct {
		name        string
		kinds       []match.Kind
		namespace   string
		subresource string
		unknown     bool // the mapper fails
		want        bool
		fails       bool
		whyNot      string
	}{
		{name: "kind", kinds: []match.Kind{plain("Deployment")}, want: true},
		{name: "another kind", kinds: []match.Kind{plain("Pod")}, whyNot: "the rules are about Pod, not Deployment"},
		{name: "one of two", kinds: []match.Kind{plain("Pod"), plain("Deployment")}, want: true},
		{name: "no kinds", whyNot: "no rule names a kind"},
		{name: "every kind", kinds: []match.Kind{plain("*")}, want: true},
		{name: "a part is enough to be asked", kinds: []match.Kind{plain("Deploy*")}, want: true},
		{name: "group and version", kinds: []match.Kind{{Group: "apps", Version: "v1", Kind: "Deployment"}}, want: true},
		{name: "another group", kinds: []match.Kind{{Group: "extensions", Version: "*", Kind: "Deployment"}}, whyNot: "the rules are about extensions/Deployment, not Deployment"},
		{name: "another version", kinds: []match.Kind{{Group: "*", Version: "v2", Kind: "Deployment"}}, whyNot: "the rules are about v2/Deployment, not Deployment"},
		{name: "an operation", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "Deployment", Operations: []string{"UPDATE"}}}, want: true},
		{name: "another operation", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "Deployment", Operations: []string{"CREATE", "DELETE"}}}, whyNot: "the operations are CREATE, DELETE, not UPDATE"},
		{name: "a subresource is another thing", kinds: []match.Kind{plain("Deployment")}, subresource: "scale", whyNot: "the rules are about Deployment, not Deployment/scale"},
		{name: "the kind of a subresource is that of its object", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "Deployment", Subresource: "scale"}}, subresource: "scale", want: true},
		{name: "and not its own", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "Scale", Subresource: "scale"}}, subresource: "scale", whyNot: "the rules are about Scale/scale, not Deployment/scale"},
		{name: "any subresource", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "*", Subresource: "*"}}, subresource: "scale", want: true},
		{name: "any subresource, and none", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "*", Subresource: "*"}}, want: true},
		{name: "an unknown kind is an error", kinds: []match.Kind{{Group: "*", Version: "*", Kind: "Pod", Subresource: "scale"}}, subresource: "scale", unknown: true, fails: true},
		{name: "where the subresource is meant", kinds: []match.Kind{plain("Deployment")}, subresource: "scale", unknown: true, whyNot: "the rules are about Deployment, not deployments/scale"},
		{name: "its namespace", kinds: []match.Kind{plain("Deployment")}, namespace: "shop", want: true},
		{name: "another namespace", kinds: []match.Kind{plain("Deployment")}, namespace: "bank", whyNot: "the policy is about namespace bank only, not shop"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			view := mapped{mapper: mapper}
			if test.unknown {
				view.mapper = failing{}
			}
			criteria := match.CompileKinds(test.namespace, test.kinds)
			subject := match.NewSubject(request.New(deployments(test.subresource)), view)
			_, got, err := criteria.Matches(t.Context(), subject)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("Matches: got %v and error %v, want %v and error: %v", got, err, test.want, test.fails)
			}
			if whyNot := criteria.WhyNot(t.Context(), subject); whyNot != test.whyNot {
				t.Errorf("WhyNot: got %q, want %q", whyNot, test.whyNot)
			}
			var index *match.Index[string]
			index = index.Edit(nil, []match.Item[string]{
				{Name: "b", Criteria: criteria, Value: "b"},
				{Name: "a", Criteria: criteria, Value: "a"},
				{Name: "other", Criteria: match.CompileKinds("", []match.Kind{plain("Other")}), Value: "other"},
			})
			found := index.Candidates(subject, nil)
			if want := test.want || test.fails; want && !slices.Equal(found, []string{"a", "b"}) {
				t.Errorf("the index finds %v, want both", found)
			} else if !want && test.namespace == "" && test.kinds != nil && len(found) > 0 && test.whyNot != "" {
				t.Errorf("the index finds %v, want none", found)
			}
			if index = index.Edit([]string{"a", "b", "other"}, nil); len(index.Candidates(subject, nil)) > 0 {
				t.Error("the index finds what has been removed")
			}
		})
	}
}

// TestInternKinds: criteria that differ in kinds only stay apart.
func TestInternKinds(t *testing.T) {
	var interner match.Interner
	var before []*match.Criteria
	for i, kinds := range [][]match.Kind{
		{{Kind: "A"}},
		{{Kind: "B"}},
		{{Kind: "A", Group: "g"}},
		{{Kind: "A", Version: "v"}},
		{{Kind: "A", Subresource: "s"}},
		{{Kind: "A", Operations: []string{"CREATE"}}},
		{{Kind: "A", Names: []string{"n"}}},
		{{Kind: "A", Namespaces: []string{"n"}}},
		{{Kind: "A", Labels: map[string]string{"n": "n"}}},
		{{Kind: "A"}, {Kind: "B"}},
		nil,
	} {
		for _, namespace := range []string{"", "n"} {
			shared := interner.Criteria(match.CompileKinds(namespace, kinds))
			if slices.Contains(before, shared) {
				t.Errorf("%d in %q is taken for another", i, namespace)
			}
			before = append(before, shared)
			if again := interner.Criteria(match.CompileKinds(namespace, kinds)); again != shared {
				t.Errorf("%s is not shared", fmt.Sprint(kinds))
			}
		}
	}
	if all := interner.Criteria(match.Compile(nil)); slices.Contains(before, all) {
		t.Error("criteria for everything are taken for some that select by kind")
	}
}
