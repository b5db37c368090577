// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// form is what kind of value an operand is.
type form uint8

const (
	// absent is null, or no value at all.
	absent form = iota
	truth
	whole
	decimal
	written
)

// operand is a value that texts are compared with.
type operand struct {
	form    form
	truth   bool
	whole   int64
	decimal float64
	text    string
	// json says that a number stands for its text.
	json bool
}

// duration returns the operand as a duration. The only number that is one is the text of
// zero; what is absent is none at all.
func (o *operand) duration() (time.Duration, bool) {
	switch o.form {
	case absent:
		return 0, true
	case written:
		return parseDuration(o.text)
	case whole:
		return 0, o.json && o.whole == 0
	case decimal:
		return 0, o.json && o.decimal == 0
	case truth:
	}
	return 0, false
}

// quantity returns the operand as a quantity. Of a number with a fraction it has six
// digits behind the point, as in Kyverno.
func (o *operand) quantity() (resource.Quantity, bool) {
	switch o.form {
	case absent:
		return resource.Quantity{}, true
	case written:
		return parseQuantity(o.text)
	case whole:
		return *resource.NewQuantity(o.whole, resource.DecimalSI), true
	case decimal:
		if math.Trunc(o.decimal) == o.decimal && math.Abs(o.decimal) < 1<<62 {
			return *resource.NewQuantity(int64(o.decimal), resource.DecimalSI), true
		}
		if o.json {
			return parseQuantity(string(appendFloat(nil, o.decimal)))
		}
		parsed, err := resource.ParseQuantity(strconv.FormatFloat(o.decimal, 'f', 6, 64))
		return parsed, err == nil
	case truth:
	}
	return resource.Quantity{}, false
}

// matches says whether the text of the operand matches wildcards. What is absent has no
// text, not even an empty one, and is neither equal nor unequal.
func (o *operand) matches(wildcards string) (matches, ok bool) {
	switch o.form {
	case absent:
		return false, false
	case written:
		return wildcard.Match(wildcards, o.text), true
	case truth, whole, decimal:
	}
	var buffer [numberSize]byte
	return wildcard.Match(wildcards, string(o.append(buffer[:0]))), true
}

// append appends the text of a bool or number. Unless they stand for their text, numbers
// are what Kyverno makes of them: 80 is 8E+01.
func (o *operand) append(buffer []byte) []byte {
	switch {
	case o.form == truth:
		return strconv.AppendBool(buffer, o.truth)
	case o.form == whole && o.json:
		return strconv.AppendInt(buffer, o.whole, 10)
	case o.form == whole:
		return strconv.AppendFloat(buffer, float64(o.whole), 'E', -1, 64)
	case o.json:
		return appendFloat(buffer, o.decimal)
	default:
		return strconv.AppendFloat(buffer, o.decimal, 'E', -1, 64)
	}
}

func parseDuration(text string) (time.Duration, bool) {
	if !maybeNumber(text) {
		return 0, false
	}
	parsed, err := time.ParseDuration(text)
	return parsed, err == nil
}

const (
	// maxQuantity is how long the text of a quantity may be, and maxExponent how large
	// its exponent: parsing and comparing take time that grows with the number itself.
	maxQuantity = 64
	maxExponent = 100
)

// parseQuantity returns the quantity of a text. One that would take long is none, and
// nor is a unit without a number, which ParseQuantity takes for zero.
func parseQuantity(text string) (resource.Quantity, bool) {
	if len(text) > maxQuantity || !maybeNumber(text) {
		return resource.Quantity{}, false
	}
	if e := strings.LastIndexAny(text, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(text[e+1:])
		if errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent {
			return resource.Quantity{}, false
		}
	}
	parsed, err := resource.ParseQuantity(text)
	return parsed, err == nil
}
