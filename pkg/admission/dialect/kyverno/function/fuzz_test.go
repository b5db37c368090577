// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/function"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// FuzzFunctions calls each function with arguments of the types that it declares. It must
// neither panic nor change its arguments, must take little time, and must do the same
// again.
func FuzzFunctions(f *testing.F) {
	for i, texts := range [][4]string{
		{"1Gi", "512Mi", "x", "y"},
		{"1e999", "1h", "", "-5m"},
		{"(a+)+$", "aaaaaaaa", "$1${1}", "b"},
		{"a: &a [1]\nb: *a", "{\"a\":[1]}", "[1,", "- - - x"},
		{"2006-01-02", "2024-02-29", "2024-02-29T00:00:00Z", "1h"},
		{"1.2.x || >3 !4.2.1", "||", "1.2.3", "<x"},
		{"http://[::1]", "nginx:1@sha256:00", "a/b", "%zz"},
		{"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", "YQ==", "[^a]{3,}", "*?*"},
	} {
		for which := range 51 {
			f.Add(uint8(which), uint8(i), texts[0], texts[1], texts[2], texts[3], 1.5*float64(i), int64(i)<<(7*i))
		}
	}
	all := function.All()
	f.Fuzz(func(t *testing.T, which, kinds uint8, a, b, c, d string, float float64, whole int64) {
		choose := all[int(which)%len(all)]
		values := []any{a, b, c, d, float, whole, nil, true, []any{a, float, b, whole}, map[string]any{a: b, c: whole}, []any{}, []any{whole, float}}
		args := make([]any, len(choose.Params))
		for i, param := range choose.Params {
			args[i] = argumentOf(param.Types, values, i+int(kinds)*(i+1))
		}
		before := encodeOrSkip(t, args)
		begin := time.Now()
		run := &jmespath.Run{Seed: c, Steps: 1 << 20, Bytes: 1 << 20}
		first, err := choose.Call(t.Context(), run, args)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s(%q) took %v", choose.Name, args, took)
		}
		again := &jmespath.Run{Seed: c, Steps: 1 << 20, Bytes: 1 << 20}
		second, errAgain := choose.Call(t.Context(), again, args)
		if !reflect.DeepEqual(first, second) || (err == nil) != (errAgain == nil) {
			t.Errorf("%s(%q) is %v, then %v (%v, %v)", choose.Name, args, first, second, err, errAgain)
		}
		if run.Steps != again.Steps || run.Bytes != again.Bytes {
			t.Errorf("%s(%q) costs (%d, %d), then (%d, %d)", choose.Name, args, run.Steps, run.Bytes, again.Steps, again.Bytes)
		}
		if string(before) != string(encodeOrSkip(t, args)) {
			t.Errorf("%s changes its arguments: %s became %q", choose.Name, before, args)
		}
		if err != nil {
			if len(err.Error()) > 2000 && !errors.Is(err, jmespath.ErrBudget) {
				t.Errorf("%s: an error of %d characters", choose.Name, len(err.Error()))
			}
			return
		}
		if _, err := json.Marshal(first); err != nil {
			t.Errorf("%s(%q): %v", choose.Name, args, err)
		}
	})
}

// argumentOf returns one of the values that are of the types, beginning to look at a place.
func argumentOf(types jmespath.Type, values []any, at int) any {
	for i := range values {
		value := values[(at+i)%len(values)]
		var is jmespath.Type
		switch value.(type) {
		case nil:
			is = jmespath.Null
		case bool:
			is = jmespath.Boolean
		case string:
			is = jmespath.String
		case []any:
			is = jmespath.Array
		case map[string]any:
			is = jmespath.Object
		default:
			is = jmespath.Number
		}
		if types&is != 0 {
			return value
		}
	}
	return nil
}

func encodeOrSkip(t *testing.T, args []any) []byte {
	t.Helper()
	encoded, err := json.Marshal(args)
	if err != nil {
		t.Skip("numbers that JSON does not have")
	}
	return encoded
}
