// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// variable is the source of an entry with a value, a jmesPath, or both.
type variable struct {
	given    *template.Template // nil for none
	path     *query             // nil for none
	fallback *template.Template // nil for none
}

// variable compiles a variable. What is refused is what validateVariable in Kyverno's
// pkg/validation/policy refuses.
func (c *compiler) variable(spec *kyvernov1.Variable) source {
	const place = "variable"
	compiled := &variable{
		given:    c.json(spec.Value, place, "value"),
		fallback: c.json(spec.Default, place, "default"),
	}
	compiled.path = c.query(spec.JMESPath, place, "jmesPath")
	if fixed := compiled.path.fixed(); fixed != nil && compiled.given == nil && compiled.fallback == nil {
		if name, ok := fixed.Needed(); ok {
			c.uses = append(c.uses, template.Use{Name: name, Leading: true, Expression: spec.JMESPath, Path: []string{place, "jmesPath"}})
		}
	}
	switch path := c.path.Child(place); {
	case compiled.given == nil && spec.JMESPath == "":
		c.errs = append(c.errs, field.Required(path, "a variable has a value or a jmesPath"))
	case compiled.fallback != nil && spec.JMESPath == "":
		c.errs = append(c.errs, field.Invalid(path.Child("default"), field.OmitValueType{}, "a default needs a jmesPath that may find nothing"))
	}
	return compiled
}

// value implements source as Kyverno's pkg/engine/context/loaders (variable.go) does: all
// parts are resolved, needed or not; a jmesPath that fails leaves the default, whatever
// the reason; one that finds null does so only when there is no value that it asks.
func (s *variable) value(ctx context.Context, from horizon) (any, error) {
	path, err := s.path.search(ctx, from)
	if err != nil {
		return nil, err
	}
	fallback, err := render(ctx, s.fallback, from)
	if err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	given, err := render(ctx, s.given, from)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	result := fallback
	switch {
	case !path.none():
		var data any = from
		if s.given != nil {
			data = given
		}
		found, err := path.in(ctx, from.v.run, data)
		switch {
		case err != nil && (fallback == nil || lasts(ctx, err)):
			return nil, fmt.Errorf("jmesPath: %w", err)
		case err == nil && (found != nil || s.given != nil):
			result = found
		}
	case s.given != nil:
		result = given
	}
	if result == nil {
		return nil, errors.New("it is null, which no variable may be")
	}
	return result, nil
}
