// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// Compile prepares the match and the exclude of a rule at path, and keeps no reference
// to them. namespace is that of a namespaced policy, and empty for a cluster-wide one.
// All faults are reported at once; a selection with faults fails whenever it is asked.
func Compile(match kyvernov1.MatchResources, exclude *kyvernov1.MatchResources, namespace string, path *field.Path) (*Selection, field.ErrorList) {
	c := &compiler{namespaced: namespace != ""}
	s := &Selection{compiled: true, namespace: namespace}
	s.match = c.block(&match, path, "match")
	s.unknown = len(s.match.filters) == 0 || slices.ContainsFunc(s.match.filters, func(f filter) bool { return len(f.kinds) == 0 || f.unknown })
	if exclude != nil {
		c.excludes = true
		s.exclude = c.block(exclude, path, "exclude")
	}
	if len(c.errs) > 0 {
		s.broken = fmt.Errorf("match and exclude do not compile: %w", c.errs.ToAggregate())
	}
	return s, c.errs
}

// compiler compiles the filters of one rule.
type compiler struct {
	namespaced, excludes bool
	errs                 field.ErrorList
}

func (c *compiler) fail(err *field.Error) { c.errs = append(c.errs, err) }

func (c *compiler) block(spec *kyvernov1.MatchResources, path *field.Path, name string) block {
	path = path.Child(name)
	listed := len(spec.Any)+len(spec.All) > 0
	switch {
	case len(spec.Any) > 0 && len(spec.All) > 0:
		c.fail(field.Forbidden(path.Child("all"), "any and all may not be given together"))
	case listed && !isEmpty(&spec.ResourceFilter):
		c.fail(field.Forbidden(path, "resources, subjects, roles and clusterRoles may not be given beside any or all: write them as a filter of it"))
	case !listed && isEmpty(&spec.ResourceFilter):
		if !c.excludes {
			c.fail(field.Required(path, "say which requests the rule is about: any or all, with resources.kinds"))
		}
		return block{any: true}
	case !listed:
		return block{filters: []filter{c.filter(&spec.ResourceFilter, path, name)}}
	}
	b := block{any: len(spec.Any) > 0}
	for i := range spec.Any {
		b.filters = append(b.filters, c.filter(&spec.Any[i], path.Child("any").Index(i), fmt.Sprintf("%s.any[%d]", name, i)))
	}
	for i := range spec.All {
		b.filters = append(b.filters, c.filter(&spec.All[i], path.Child("all").Index(i), fmt.Sprintf("%s.all[%d]", name, i)))
	}
	return b
}

func isEmpty(spec *kyvernov1.ResourceFilter) bool {
	return !asksForObject(&spec.Resources) && len(spec.Roles)+len(spec.ClusterRoles)+len(spec.Subjects) == 0
}

func asksForObject(spec *kyvernov1.ResourceDescription) bool {
	return len(spec.Kinds)+len(spec.Names)+len(spec.Namespaces)+len(spec.Annotations)+len(spec.Operations) > 0 ||
		spec.Name != "" || spec.Selector != nil || spec.NamespaceSelector != nil
}

func (c *compiler) filter(spec *kyvernov1.ResourceFilter, path *field.Path, place string) filter {
	f := filter{
		place: place, excludes: c.excludes, resources: asksForObject(&spec.Resources),
		clusterRoles: slices.Clone(spec.ClusterRoles), roles: slices.Clone(spec.Roles),
	}
	for i, role := range f.roles {
		if strings.Count(role, ":") != 1 {
			c.fail(field.Invalid(path.Child("roles").Index(i), role, "a Role is written as namespace:name"))
		}
	}
	for i := range spec.Subjects {
		c.checkSubject(&spec.Subjects[i], path.Child("subjects").Index(i))
		f.subjects = append(f.subjects, newSubject(&spec.Subjects[i]))
	}
	c.resources(&f, &spec.Resources, path.Child("resources"))
	return f
}

func (c *compiler) checkSubject(spec *rbacv1.Subject, path *field.Path) {
	switch spec.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
	case rbacv1.ServiceAccountKind:
		if spec.Namespace == "" {
			c.fail(field.Required(path.Child("namespace"), "a ServiceAccount has one"))
		}
	case "":
		c.fail(field.Required(path.Child("kind"), "User, Group or ServiceAccount"))
	default:
		c.fail(field.NotSupported(path.Child("kind"), spec.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
	}
	if spec.Name == "" {
		c.fail(field.Required(path.Child("name"), "a name, or * for all"))
	}
}

func (c *compiler) resources(f *filter, spec *kyvernov1.ResourceDescription, path *field.Path) {
	c.kinds(f, spec.Kinds, path.Child("kinds"))
	if spec.Name != "" {
		f.names = []glob{newGlob(spec.Name)}
		if len(spec.Names) > 0 {
			c.fail(field.Forbidden(path.Child("name"), "name and names may not be given together: use names"))
		}
	}
	f.anyName = newGlobs(spec.Names)
	f.namespaces = newGlobs(spec.Namespaces)
	if c.namespaced && len(spec.Namespaces) > 0 {
		c.fail(field.Forbidden(path.Child("namespaces"), "a Policy is about the objects of its own namespace: leave it out, or write a ClusterPolicy"))
	}
	f.annotations = newPairs(spec.Annotations)
	f.selector = c.selector(spec.Selector, path.Child("selector"))
	if f.selector != nil && f.selector.isEmpty() {
		c.fail(field.Invalid(path.Child("selector"), field.OmitValueType{}, "it asks for nothing: give matchLabels or matchExpressions"))
	}
	f.ofNamespace = c.selector(spec.NamespaceSelector, path.Child("namespaceSelector"))
	known := []string{string(admission.Create), string(admission.Update), string(admission.Delete), string(admission.Connect)}
	for i, operation := range spec.Operations {
		f.operations = append(f.operations, string(operation))
		if !slices.Contains(known, string(operation)) {
			f.unknown = true
			c.fail(field.NotSupported(path.Child("operations").Index(i), string(operation), known))
		}
	}
}

func (c *compiler) kinds(f *filter, specs []string, path *field.Path) {
	if len(specs) == 0 && !c.excludes {
		c.fail(field.Required(path, `name the kinds that the rule is about, or "*" for all`))
	}
	if len(specs) > 1 && slices.Contains(specs, "*") {
		c.fail(field.Invalid(path, field.OmitValueType{}, "* is every kind: no other one may stand beside it"))
	}
	for i, spec := range specs {
		compiled, err := parseKind(spec)
		if err != nil {
			f.unknown = true
			c.fail(field.Invalid(path.Index(i), spec, err.Error()))
			continue
		}
		f.kinds = append(f.kinds, compiled)
	}
}

func (c *compiler) selector(spec *metav1.LabelSelector, path *field.Path) *labelSelector {
	if spec == nil {
		return nil
	}
	compiled, err := newLabelSelector(spec)
	if err != nil {
		c.fail(field.Invalid(path, field.OmitValueType{}, err.Error()))
		return nil
	}
	return compiled
}
