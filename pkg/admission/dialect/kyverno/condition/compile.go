// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/operator"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// maxConditions bounds those of one rule.
const maxConditions = 1000

// Compile compiles preconditions: an object with any and all, or a list of conditions
// that must all hold. at is their place in the rule, path their field. Nil stands for
// none. Conditions with faults fail whenever they are asked. What the conditions of a rule
// may not say, and those of a loop may, is for the validation of policies.
func Compile(raw *apiextensionsv1.JSON, c *template.Compiler, at template.Place, path *field.Path) (*Conditions, field.ErrorList) {
	if raw == nil {
		return nil, nil
	}
	b := &builder{compiler: c, at: at, path: path}
	document := bytes.TrimSpace(raw.Raw)
	if len(document) == 0 || bytes.Equal(document, []byte("null")) {
		return nil, nil
	}
	switch document[0] {
	case '[':
		var list []kyvernov1.Condition
		if b.decode(document, &list) {
			b.all = b.conditions(list, nil)
		}
	default:
		var object kyvernov1.AnyAllConditions
		if b.decode(document, &object) {
			b.restricted = object.Any != nil
			b.any = b.conditions(object.Any, []string{"any"})
			b.all = b.conditions(object.All, []string{"all"})
		}
	}
	if len(b.errs) > 0 {
		b.broken = fmt.Errorf("do not compile: %w", b.errs.ToAggregate())
		return &Conditions{broken: b.broken, uses: b.uses}, b.errs
	}
	for i := range b.any[min(1, len(b.any)):] {
		later := &b.any[i+1]
		b.rest = append(b.rest, part{later.place + ".key", later.key}, part{later.place + ".value", later.value})
	}
	b.rest = dynamic(b.rest)
	compiled := b.Conditions // and not a pointer into b, which holds on to the whole rule
	return &compiled, b.errs
}

// builder compiles the preconditions of one rule.
type builder struct {
	Conditions

	compiler *template.Compiler
	at       template.Place
	path     *field.Path
	errs     field.ErrorList
}

// decode decodes strictly: a misspelt any would hold for every request.
func (b *builder) decode(document []byte, into any) bool {
	strict, err := kjson.UnmarshalStrict(document, into)
	if err != nil {
		strict = []error{err}
	}
	for _, err := range strict {
		b.errs = append(b.errs, field.Invalid(b.path, field.OmitValueType{}, fmt.Sprintf("preconditions are an object with any and all, or a list of conditions: %v", err)))
	}
	return len(strict) == 0
}

func (b *builder) conditions(specs []kyvernov1.Condition, under []string) []condition {
	path := b.path
	if len(under) > 0 {
		path = path.Child(under[0], under[1:]...)
	}
	if len(specs) > maxConditions {
		b.errs = append(b.errs, field.TooMany(path, len(specs), maxConditions))
		return nil
	}
	compiled := make([]condition, len(specs))
	for i := range specs {
		place := append(slices.Clone(under), strconv.Itoa(i))
		compiled[i] = b.condition(&specs[i], place, path.Index(i))
	}
	return compiled
}

func (b *builder) condition(spec *kyvernov1.Condition, place []string, path *field.Path) condition {
	compiled := condition{
		place:   fmt.Sprintf("%s[%s]", strings.Join(place[:len(place)-1], "."), place[len(place)-1]),
		message: spec.Message,
	}
	compiled.key = b.operand(spec.Key, append(slices.Clone(place), "key"), path.Child("key"))
	compiled.value = b.operand(spec.Value, append(slices.Clone(place), "value"), path.Child("value"))
	by, err := operator.Parse(spec.Operator)
	switch {
	case spec.Operator == "":
		b.errs = append(b.errs, field.Required(path.Child("operator"), "say how key and value are compared: "+strings.Join(operator.Names(), ", ")))
	case err != nil:
		b.errs = append(b.errs, field.NotSupported(path.Child("operator"), spec.Operator, operator.Names()))
	}
	compiled.operator = by
	b.message(spec.Message, compiled.place+".message", append(slices.Clone(place), "message"), path.Child("message"))
	return compiled
}

// operand compiles one side of a condition; one that is missing is null. References lead
// from the operand, not from the rule: that is what Kyverno's Evaluate makes of them.
func (b *builder) operand(raw *apiextensionsv1.JSON, place []string, path *field.Path) *template.Template {
	var decoded any
	if raw != nil && len(raw.Raw) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &decoded); err != nil {
			b.errs = append(b.errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
			return nil
		}
	}
	return b.template(decoded, template.Place{Rule: decoded}, place, path)
}

// message compiles the message of a condition, whose variables must be there though
// nobody sees their values.
func (b *builder) message(text, name string, place []string, path *field.Path) {
	if text == "" {
		return
	}
	at := template.Place{Rule: b.at.Rule, Path: slices.Concat(b.at.Path, place)}
	b.rest = append(b.rest, part{name, b.template(text, at, place, path)})
}

func (b *builder) template(value any, at template.Place, place []string, path *field.Path) *template.Template {
	compiled, faults := b.compiler.Value(value, at)
	b.errs = append(b.errs, template.At(faults, path)...)
	for _, use := range compiled.Uses() {
		use.Path = slices.Concat(place, use.Path)
		b.uses = append(b.uses, use)
	}
	return compiled
}
