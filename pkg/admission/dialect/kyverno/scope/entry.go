// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// Entry is one compiled entry of a context. It is immutable and safe for concurrent use.
type Entry struct {
	name   string
	source source
	uses   []template.Use
}

// source is what the value of an entry comes from.
type source interface {
	// value returns the value for a request. It may share parts with what it was made
	// of, and nobody may modify it.
	value(ctx context.Context, from horizon) (any, error)
}

// broken is the source of an entry that does not compile.
type broken struct{}

func (broken) value(context.Context, horizon) (any, error) {
	return nil, errors.New("it does not compile")
}

// Name is the name of the variable.
func (e *Entry) Name() string { return e.name }

// Uses returns where in the entry the names of variables stand, as far as they are known
// before a request. Nobody may modify the result.
func (e *Entry) Uses() []template.Use { return e.uses }

// Compile compiles the entries of one context, which stands at a place in its rule and at
// path in its policy. The namespace is that of a namespaced Policy, beyond which nothing
// is read, and empty for a ClusterPolicy. All faults are reported at once; the entries
// are usable even then, and those with faults fail. What they may read of the cluster
// is in reads; there, a Resource with an empty Group is one of the core group.
func Compile(
	specs []kyvernov1.ContextEntry, templates *template.Compiler, at template.Place, namespace string, path *field.Path,
) (entries []*Entry, reads []policy.Read, errs field.ErrorList) {
	for i := range specs {
		c := compiler{
			templates: templates,
			rule:      at.Rule,
			place:     append(slices.Clip(at.Path), strconv.Itoa(i)),
			namespace: namespace,
			path:      path.Index(i),
		}
		entries = append(entries, c.entry(&specs[i]))
		reads = append(reads, c.reads...)
		errs = append(errs, c.errs...)
	}
	return entries, reads, errs
}

// compiler compiles one entry.
type compiler struct {
	templates *template.Compiler
	rule      any
	place     []string // of the entry in the rule
	namespace string
	path      *field.Path // of the entry

	uses  []template.Use
	reads []policy.Read
	errs  field.ErrorList
}

func (c *compiler) entry(spec *kyvernov1.ContextEntry) *Entry {
	c.name(spec.Name)
	from := c.source(spec)
	if from == nil || len(c.errs) > 0 {
		from = broken{}
	}
	return &Entry{name: spec.Name, source: from, uses: c.uses}
}

// name checks the name of an entry, as validateRuleContext in Kyverno's
// pkg/validation/policy does.
func (c *compiler) name(name string) {
	path := c.path.Child("name")
	if name == "" {
		c.errs = append(c.errs, field.Required(path, "the name of the variable"))
		return
	}
	first, _, _ := strings.Cut(name, ".")
	switch first {
	case variableRequest, variableImages, variableAccount, variableAccountNamespace, variableElement, variableIndex:
		c.errs = append(c.errs, field.Invalid(path, name, fmt.Sprintf("the variable %s is always there: choose another name", first)))
	}
}

// source compiles the one source of an entry.
func (c *compiler) source(spec *kyvernov1.ContextEntry) source {
	given := 0
	for _, is := range []bool{
		spec.Variable != nil, spec.ConfigMap != nil, spec.APICall != nil, spec.ImageRegistry != nil, spec.GlobalReference != nil,
	} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		c.errs = append(c.errs, field.Required(c.path, "an entry has exactly one of variable, configMap and apiCall"))
	case spec.ImageRegistry != nil:
		c.errs = append(c.errs, field.Forbidden(c.path.Child("imageRegistry"),
			"image registries are not asked: policies see the cluster and nothing else"))
	case spec.GlobalReference != nil:
		c.errs = append(c.errs, field.Forbidden(c.path.Child("globalReference"),
			"there are no GlobalContextEntries: read the objects by an apiCall with a urlPath"))
	case spec.Variable != nil:
		return c.variable(spec.Variable)
	case spec.ConfigMap != nil:
		return c.configMap(spec.ConfigMap)
	case spec.APICall != nil:
		return c.apiCall(spec.APICall)
	}
	return nil
}

// json compiles a field of the entry that holds any JSON. It is nil for none, and for
// null, which stands for none.
func (c *compiler) json(raw *apiextensionsv1.JSON, parts ...string) *template.Template {
	if raw == nil {
		return nil
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &value); err != nil {
		c.errs = append(c.errs, field.Invalid(template.Below(c.path, parts), field.OmitValueType{}, err.Error()))
		return nil
	}
	if value == nil {
		return nil
	}
	return c.template(value, parts...)
}

// template compiles a value that stands in the entry.
func (c *compiler) template(value any, parts ...string) *template.Template {
	compiled, faults := c.templates.Value(value, template.Place{Rule: c.rule, Path: slices.Concat(c.place, parts)})
	c.errs = append(c.errs, template.At(faults, template.Below(c.path, parts))...)
	for _, use := range compiled.Uses() {
		use.Path = slices.Concat(parts, use.Path)
		c.uses = append(c.uses, use)
	}
	return compiled
}

// render returns what a template stands for to an entry, and nil for a nil template.
func render(ctx context.Context, t *template.Template, from horizon) (value any, err error) {
	if t != nil {
		value, err = t.Render(ctx, from.v.run, from)
	}
	return value, err
}

// text returns what a template stands for, which must be a string.
func text(ctx context.Context, t *template.Template, from horizon) (string, error) {
	value, err := render(ctx, t, from)
	if err != nil {
		return "", err
	}
	found, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("a string is needed, and the variables give %s", typeOf(value))
	}
	return found, nil
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a string"
}
