// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writer writes the expressions of one policy.
type writer struct {
	*generator
	params bool
	heavy  slot
	spent  int // by costly expressions
	// exhausted says that they have spent all of a budget.
	exhausted bool
	dear      []string // variables that cost much
	// placed is a variable whose value depends on the part of the policy that reads
	// it, or empty.
	placed string
	// telling says that a message is written, which sees no authorizer.
	telling bool
	known   []variable
}

// variable is one that later expressions may read.
type variable struct {
	name string
	sort sort
}

var placeholder = regexp.MustCompile(`\{[a-zA-Z]\}`)

// expression is one of the sort, no deeper than depth.
func (w *writer) expression(s sort, depth int) string {
	if len(w.known) > 0 && w.chance(3) {
		if v := pick(w.generator, w.known...); v.sort == s {
			return "variables." + v.name
		}
	}
	if depth <= 0 || w.chance(6) {
		return w.expand(pick(w.generator, grammar[s].leaves...), depth-1)
	}
	expanded := w.expand(pick(w.generator, grammar[s].branches...), depth-1)
	if s == dynamic { // whatever the checker knows of it
		return "dyn(" + expanded + ")"
	}
	return expanded
}

func (w *writer) expand(template string, depth int) string {
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		letter := found[1]
		if _, ok := grammar[sort(letter)]; ok {
			inner := w.expression(sort(letter), depth)
			if strings.ContainsAny(inner, " ?-") {
				return "(" + inner + ")"
			}
			return inner
		}
		switch {
		case letter == 'O' && !w.params:
			return "object.spec.name"
		case letter == 'A' && w.telling:
			return "true"
		}
		return w.expand(pick(w.generator, literals[letter]...), min(depth, 0))
	})
}

// broken expressions do not compile, each for another reason.
var broken = []string{
	"object.spec.replicas >", "nothing == 1", "object.spec.flag", "1", "'a' + 1 == 'a1'", "request.nothing == ''", "variables.nothing == 1", "[1, 'a'].size() == 2", "'x'.matches('(')",
	"duration('x') > duration('1s')", "timestamp('x') == timestamp('x')", "namespaceObject.metadata.ownerReferences == []", "\x00", "'unterminated", "object.spec.all(x)", "has(object)", "", "nothing()", "size(1) == 1", "string(b'\\xff') == ''", "'%s'.format([]) == ''", "'a'.reverse() == 'a'",
}

// mistaken is now and then one that does not compile.
func (w *writer) mistaken(expression string) string {
	if !w.chance(120) {
		return expression
	}
	return pick(w.generator, append([]string{"params != null", "authorizer.path('/x').check('get').allowed()"}, broken...)...)
}

func (w *writer) boolean() string {
	if len(w.written) > 0 && w.chance(8) {
		return pick(w.generator, w.written...)
	}
	expression := w.mistaken(w.expression(boolean, pick(w.generator, 1, 1, 2, 3, 4)))
	w.written = append(w.written, expression)
	return expression
}

// condition is true more often than not, so that something comes after it.
func (w *writer) condition() string {
	if w.heavy == conditionSlots || w.heavy == dataSlots && w.chance(4) {
		return w.costly(true)
	}
	switch {
	case len(w.dear) > 0 && !w.chance(3):
		return w.readsDear()
	case w.placed != "" && !w.chance(3):
		return pick(w.generator, "variables.placed == 'none' || true", "variables.placed != 'v1v1'", "variables.placed == 'false' || variables.placed != ''")
	case w.chance(8):
		return pick(w.generator, "request.resource.version == request.requestResource.version", "request.kind.version == request.requestKind.version",
			"namespaceObject == null", "request.resource == request.requestResource", "request.subResource == request.requestSubResource || true")
	}
	expression := w.boolean()
	switch w.draw(4) {
	case 0, 1:
		return expression + " || true"
	case 2:
		return "!(" + expression + ")"
	default:
		return expression
	}
}

func (w *writer) variables(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	for i := range pick(w.generator, 0, 1, 2, 3, 5) + w.extra(variableSlots) {
		v := variable{fmt.Sprint(pick(w.generator, "v", "v", "__namespace__"), i), pick(w.generator, boolean, text, number, list, dynamic, dynamic, numbers)}
		if v.name == "__namespace__0" {
			v.name = "namespace_"
		}
		var expression string
		if w.heavy == variableSlots && !w.chance(4) || w.heavy == dataSlots && w.chance(2) {
			v.sort, expression = boolean, w.costly(false)
			w.dear = append(w.dear, v.name)
		} else {
			expression = w.mistaken(w.expression(v.sort, pick(w.generator, 1, 2, 3)))
		}
		spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: v.name, Expression: expression})
		w.known = append(w.known, v)
	}
	if w.chance(4) {
		w.placed = "placed"
		spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: w.placed, Expression: pick(w.generator,
			"namespaceObject == null ? 'none' : namespaceObject.metadata.name", "request.resource.version + request.kind.version",
			"string(has(dyn(namespaceObject).metadata.ownerReferences))", "string(authorizer.path('/x').check('get').allowed())",
			"string(dyn(namespaceObject).metadata.ownerReferences[0].name)")})
	}
	if len(w.known) > 0 && w.chance(6) {
		w.redefine(spec)
	}
}

// redefine adds a second definition of a variable: the last one counts, also for
// what stands above it and was compiled with the type of the first. It reads no
// variable: one that reaches itself is refused, which KNOWN_ISSUES.md says.
func (w *writer) redefine(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	add := func(name, expression string) {
		spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
	}
	v := pick(w.generator, w.known...)
	if i := slices.IndexFunc(w.known, func(v variable) bool { return v.sort == text }); i >= 0 && w.chance(2) {
		v = w.known[i]
	}
	add("early", "variables."+v.name)
	w.known = append(w.known, variable{"early", v.sort}, variable{"early", v.sort})
	add(v.name, pick(w.generator, "1", "'other'", "true", "object.spec", "[1]", "nothing", "object.spec.missing", "['b']", "1 / 0"))
}

func (w *writer) validation() admissionregistrationv1.Validation {
	v := admissionregistrationv1.Validation{Expression: w.boolean()}
	switch {
	case w.heavy == validationSlots || (w.heavy == callSlots || w.heavy == dataSlots) && w.chance(2) || w.heavy == messageSlots && w.chance(3):
		v.Expression = w.costly(true)
	case w.heavy == variableSlots && len(w.dear) > 0 && !w.chance(4):
		v.Expression = w.readsDear()
	case w.placed != "" && w.chance(2):
		v.Expression = pick(w.generator, "variables.placed != 'none'", "variables.placed == 'v1v1'", "variables.placed == 'false'")
		v.MessageExpression = "'placed: ' + variables.placed"
	case w.chance(2):
		v.Expression += pick(w.generator, " || true", " && true")
	}
	v.Message = pick(w.generator, "", "denied", " padded\n", "with \"quotes\" and ü☃", "two\nlines", " ")
	if w.heavy != validationSlots && w.chance(3) || w.chance(60) || w.heavy == messageSlots || w.heavy == dataSlots {
		v.MessageExpression = w.message()
	}
	v.Reason = pick[*metav1.StatusReason](w.generator, nil, nil, reason(metav1.StatusReasonForbidden), reason(metav1.StatusReasonInvalid),
		reason(metav1.StatusReasonRequestEntityTooLarge), reason(metav1.StatusReasonUnauthorized), reason("Teapot"))
	return v
}

func reason(r metav1.StatusReason) *metav1.StatusReason { return &r }

// message is one of all the kinds that cannot be used, too: the limit is 5 KiB
// after trimming.
func (w *writer) message() string {
	w.telling = true
	defer func() { w.telling = false }()
	if w.heavy == messageSlots || w.heavy == dataSlots && w.chance(2) {
		return w.costly(true) + " ? 'cheap' : 'dear'"
	}
	switch w.draw(14) {
	default:
		return w.mistaken(w.expression(text, pick(w.generator, 1, 2, 3)))
	case 1:
		return "'replicas must be ' + string(object.spec.replicas)"
	case 2:
		return pick(w.generator, "''", "'  '", "'two\\nlines'", "' x\\n '", "'a\\tb'")
	case 3:
		return "' " + long(pick(w.generator, 5120, 5119, 5121)) + " '"
	case 4:
		return "lists.range(" + pick(w.generator, "512", "513", "600") + ").map(x, '0123456789').join()"
	case 5:
		return pick(w.generator, "string(1 / 0)", "['a'][1]", "string(object.spec.missing)", "string(object)", "object.spec.name")
	case 6:
		return w.expression(dynamic, 1) // must evaluate to string, and does not say that it does
	}
}

// annotation is one of the kinds that auditAnnotations have: published, left out,
// cut at 10 KiB, failing.
func (w *writer) annotation() string {
	if w.heavy == annotationSlots || w.heavy == dataSlots && w.chance(3) {
		w.telling = true // a program sees no authorizer there, whatever the compiler says
		defer func() { w.telling = false }()
		return w.costly(true) + " ? 'cheap' : 'dear'"
	}
	if w.placed != "" && w.chance(2) {
		return "variables.placed"
	}
	if i := slices.IndexFunc(w.known, func(v variable) bool { return v.sort == text }); i >= 0 && w.chance(4) {
		return "variables." + w.known[len(w.known)-1].name // may be of another sort
	}
	switch w.draw(10) {
	default:
		return w.mistaken(w.expression(text, pick(w.generator, 1, 2, 3)))
	case 1:
		return "'name is ' + string(object.spec.name)"
	case 2:
		return pick(w.generator, "null", "''", "'  '", "' padded '", "'a\\nb'")
	case 3:
		return "'" + long(pick(w.generator, 10_239, 10_240, 10_241)) + "ü'"
	case 4:
		return pick(w.generator, "string(1 / 0)", "['a'][1]", "string(authorizer.path('/x').check('get').allowed())", "object.spec.name")
	}
}
