// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

const (
	// maxText is the length that no text may exceed.
	maxText = 2 << 20
	// maxDepth is the depth of the values of variables that are looked at.
	maxDepth = 1000
)

// A writer writes values as text, within the bounds of a text and of the request.
type writer struct {
	run  *jmespath.Run
	text []byte
}

// JSON returns what stands for a value within a text, if it is no text itself.
func JSON(ctx context.Context, run *jmespath.Run, value any) (string, error) {
	w := writer{run: run}
	if err := w.value(ctx, value, 0); err != nil {
		return "", err
	}
	return string(w.text), nil
}

// raw adds a text as it is.
func (w *writer) raw(text string) error {
	if len(w.text)+len(text) > maxText {
		return errTooLong
	}
	w.text = append(w.text, text...)
	return nil
}

// value adds the JSON of a value, without space and with sorted keys, as encoding/json
// writes it, but for the exponents of numbers: see number.
func (w *writer) value(ctx context.Context, value any, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	if err := w.run.Spend(ctx, 1, 0); err != nil {
		return err
	}
	switch value := value.(type) {
	case map[string]any:
		return w.object(ctx, value, depth)
	case []any:
		return w.list(ctx, value, depth)
	case string:
		return w.quoted(value)
	case nil:
		return w.raw("null")
	case bool:
		return w.raw(strconv.FormatBool(value))
	case int64:
		return w.raw(strconv.FormatInt(value, 10))
	case float64:
		return w.number(value)
	default:
		return w.other(value)
	}
}

func (w *writer) object(ctx context.Context, object map[string]any, depth int) error {
	if err := w.raw("{"); err != nil {
		return err
	}
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if err := w.quoted(key); err != nil {
			return err
		}
		w.text = append(w.text, ':')
		if err := w.value(ctx, object[key], depth+1); err != nil {
			return err
		}
	}
	return w.raw("}")
}

func (w *writer) list(ctx context.Context, list []any, depth int) error {
	if err := w.raw("["); err != nil {
		return err
	}
	for i, item := range list {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if err := w.value(ctx, item, depth+1); err != nil {
			return err
		}
	}
	return w.raw("]")
}

// quoted adds a JSON text, with what HTML treats as special escaped.
func (w *writer) quoted(text string) error {
	if !verbatim(text) {
		return w.other(text)
	}
	if len(w.text)+len(text)+2 > maxText {
		return errTooLong
	}
	w.text = append(w.text, '"')
	w.text = append(w.text, text...)
	w.text = append(w.text, '"')
	return nil
}

// number adds a number as Kyverno's substituteVarInPattern does: where encoding/json
// writes 1e-7, the library there writes 1e-07.
func (w *writer) number(value float64) error {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return w.other(value) // an error
	}
	format := byte('f')
	if size := math.Abs(value); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return w.raw(strconv.FormatFloat(value, format, -1, 64))
}

func (w *writer) other(value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.raw(string(encoded))
}

// verbatim says whether a text stands in JSON as it is.
func verbatim(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\':
			return false
		case c == '<' || c == '>' || c == '&':
			return false
		}
	}
	return true
}
