// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	upstream "github.com/kyverno/go-jmespath"
)

func plenty() *Run { return &Run{Steps: 1 << 16, Bytes: 1 << 20} }

// asFloats returns a copy of a value with all numbers as the library wants them.
func asFloats(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = asFloats(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key := range v {
			object[key] = asFloats(v[key])
		}
		return object
	}
	return value
}

// panicError is a panic of the library.
type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// library searches with the interpreter of the library.
func library(expression string, data any) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError{p}
		}
	}()
	return upstream.Search(expression, asFloats(data))
}

func isUpstreamMissing(err error) bool {
	_, ok := errors.AsType[upstream.NotFoundError](err)
	return ok
}

func hasNotFinite(value any) bool {
	switch v := value.(type) {
	case float64:
		return math.IsNaN(v) || math.IsInf(v, 0)
	case []any:
		for _, item := range v {
			if hasNotFinite(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if hasNotFinite(item) {
				return true
			}
		}
	}
	return false
}

// agree fails unless an expression means the same to the library and to this package.
// It returns whether it means a value.
func agree(t *testing.T, expression string, data any) bool {
	t.Helper()
	e, err := NewCompiler().Compile(expression)
	if err != nil {
		t.Fatalf("Compile(%s): %v", expression, err)
	}
	before := fmt.Sprint(data)
	got, err := e.Search(context.Background(), plenty(), data)
	if after := fmt.Sprint(data); after != before {
		t.Fatalf("%s changed the data\n from %s\n to   %s", expression, before, after)
	}
	if errors.Is(err, errNotFinite) || errors.Is(err, ErrBudget) {
		return false
	}
	want, wantErr := library(expression, data)
	switch {
	case errors.As(wantErr, &panicError{}):
		// What happens instead is in the tables of TestSearch and TestSearchFails.
	case wantErr == nil && hasNotFinite(want):
		t.Fatalf("%s over %v: want an error for %v, got %v", expression, data, want, got)
	case wantErr == nil && err == nil:
		if !reflect.DeepEqual(asFloats(got), want) {
			t.Fatalf("%s over %v\n got  %#v\n want %#v", expression, data, got, want)
		}
	case wantErr == nil || err == nil:
		t.Fatalf("%s over %v\n got  %#v, error %v\n want %#v, error %v", expression, data, got, err, want, wantErr)
	case isUpstreamMissing(wantErr) != isMissing(err):
		t.Fatalf("%s over %v\n got  error %v\n want error %v", expression, data, err, wantErr)
	}
	return got != nil
}
