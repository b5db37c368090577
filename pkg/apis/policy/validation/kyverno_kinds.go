// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const kindForms = "must be Kind, version/Kind or group/version/Kind, each with /subresource if need be, as in Pod, apps/v1/Deployment or Deployment/scale; wildcards are allowed"

// validateKinds wants kinds that Kyverno's ParseKindSelector makes sense of.
func validateKinds(kinds []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(kinds) > 1 && slices.Contains(kinds, wildcard) {
		errs = append(errs, field.Invalid(path, kinds, "if '*' is present, must not name other kinds"))
	}
	for i, kind := range kinds {
		if !isKindSelector(kind) {
			errs = append(errs, field.Invalid(path.Index(i), kind, kindForms))
		}
	}
	return errs
}

// isKindSelector takes a selector apart. Groups, versions and subresources have no
// upper-case letters, so that a Kind in the place of one of them is told. With wildcards
// it is not, as in Kyverno: */v1/Pod is a subresource Pod of the kind v1 there.
func isKindSelector(selector string) bool {
	parts := strings.Split(selector, "/")
	last, subresource, dotted := strings.Cut(parts[len(parts)-1], ".") // Kind.subresource is Kind/subresource
	parts[len(parts)-1] = last
	if dotted {
		parts = append(parts, subresource)
	}
	isKind := func(part string) bool { return isPattern(part, true) }
	isName := func(part string) bool { return isPattern(part, hasWildcard(selector)) }
	switch len(parts) {
	case 1:
		return isKind(parts[0])
	case 2:
		if isVersion(parts[0]) {
			return isKind(parts[1])
		}
		return isKind(parts[0]) && isName(parts[1])
	case 3:
		if isVersion(parts[0]) {
			return isKind(parts[1]) && isName(parts[2])
		}
		return isGroup(parts[0]) && isName(parts[1]) && isKind(parts[2])
	case 4:
		return isGroup(parts[0]) && isName(parts[1]) && isKind(parts[2]) && isName(parts[3])
	default:
		return false
	}
}

// isVersion says whether the first part is a version and no group or kind: * or v and
// digits, with alpha or beta and digits.
func isVersion(part string) bool {
	if part == wildcard {
		return true
	}
	rest, ok := strings.CutPrefix(part, "v")
	if !ok {
		return false
	}
	digits := func(text string) (string, bool) {
		left := strings.TrimLeft(text, "0123456789")
		return left, left != text
	}
	if rest, ok = digits(rest); !ok || rest == "" {
		return ok
	}
	for _, stage := range []string{"alpha", "beta"} {
		if number, staged := strings.CutPrefix(rest, stage); staged {
			left, ok := digits(number)
			return ok && left == ""
		}
	}
	return false
}

// isGroup accepts the empty group, which is that of Pods.
func isGroup(part string) bool {
	return !slices.ContainsFunc(strings.Split(part, "."), func(label string) bool { return part != "" && !isPattern(label, false) })
}

// isPattern wants letters, digits, dashes and wildcards.
func isPattern(part string, upperCase bool) bool {
	return part != "" && !strings.ContainsFunc(part, func(r rune) bool {
		isUpper := r >= 'A' && r <= 'Z'
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-*?", r) && (!isUpper || !upperCase)
	})
}
