// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"fmt"
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
		if isElement(use.Name) {
			detail = fmt.Sprintf("variable %q is not defined here: only a foreach has elements", use.Name)
		}
		c.errs = append(c.errs, field.Invalid(template.Below(path, use.Path), use.Expression, detail))
	}
}

// known says whether variables may begin with a name, as the validation of Kyverno does
// with its regular expression of allowed variables and with validateElementInForEach.
func (c *ruleCompiler) known(name string) bool {
	switch name {
	case "request", "images", "image", "serviceAccountName", "serviceAccountNamespace":
		return true
	}
	return c.declared[name] || c.nesting > 0 && isElement(name)
}

// isElement says whether name is that of the element of a foreach, or of its index.
func isElement(name string) bool { return numbered(name, "element") || numbered(name, "elementIndex") }

// numbered says whether name is prefix, or prefix with a number.
func numbered(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && strings.Trim(rest, "0123456789") == ""
}
