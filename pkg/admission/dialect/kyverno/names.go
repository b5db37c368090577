// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// uses refuses variables that begin with a name of which the rule knows nothing, at the
// places of templates below path: they can only fail. Names further inside an expression
// may be meant to be absent, and are null then.
func (c *ruleCompiler) uses(uses []template.Use, path *field.Path) {
	for _, use := range uses {
		if !use.Leading || c.known(use.Name) {
			continue
		}
		detail := fmt.Sprintf("variable %q is not defined: declare it in context, or begin with request, images, element, elementIndex, serviceAccountName or serviceAccountNamespace", use.Name)
		if _, ok := elementLevel(use.Name); ok {
			detail = fmt.Sprintf("variable %q is not defined here: it is that of a foreach around it", use.Name)
		}
		c.errs = append(c.errs, field.Invalid(below(path, use.Path), use.Expression, detail))
	}
}

// known says whether variables may begin with a name, as the validation of Kyverno does
// with its regular expression of allowed variables and with validateElementInForEach.
func (c *ruleCompiler) known(name string) bool {
	switch name {
	case "request", "images", "image", "serviceAccountName", "serviceAccountNamespace":
		return true
	}
	level, ok := elementLevel(name)
	return c.declared[name] || ok && level < c.nesting
}

// elementLevel returns the level of the foreach whose element, or its index, has that
// name. Without a number it is that of any.
func elementLevel(name string) (level int, ok bool) {
	rest, ok := strings.CutPrefix(name, "element")
	if !ok {
		return 0, false
	}
	if rest = strings.TrimPrefix(rest, "Index"); rest == "" {
		return 0, true
	}
	level, err := strconv.Atoi(rest)
	return level, err == nil && strconv.Itoa(level) == rest && level >= 0
}
