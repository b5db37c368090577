// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/function"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// recorded is a call of a function of Kyverno 1.19.1 and what came of it.
type recorded struct {
	Function  string          `json:"f"`
	Arguments json.RawMessage `json:"a"`
	Result    json.RawMessage `json:"r"`
	Failed    bool            `json:"e"`
}

func TestRecorded(t *testing.T) {
	file, err := os.Open("testdata/kyverno.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	compiler := jmespath.NewCompiler(function.All()...)
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		var call recorded
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			t.Fatalf("line %d: %v", number, err)
		}
		t.Run(fmt.Sprintf("%d-%s", number, call.Function), func(t *testing.T) { compareCall(t, compiler, call) })
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func compareCall(t *testing.T, compiler *jmespath.Compiler, call recorded) {
	t.Helper()
	var args []any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(call.Arguments, &args); err != nil {
		t.Fatal(err)
	}
	indices := make([]string, len(args))
	for i := range args {
		indices[i] = fmt.Sprintf("@[%d]", i)
	}
	expression, err := compiler.Compile(call.Function + "(" + strings.Join(indices, ", ") + ")")
	if err != nil {
		t.Fatal(err)
	}
	got, err := expression.Search(t.Context(), newRun(), args)
	if call.Failed != (err != nil) {
		t.Fatalf("%s: failed: want %v, got %v with %v", call.Arguments, call.Failed, err, got)
	}
	if call.Failed {
		return
	}
	want, have := floats(t, call.Result), floats(t, encode(t, got))
	if call.Function == "x509_decode" {
		have = fieldsOf(want, have)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s: %s", call.Arguments, diff)
	}
}

// fieldsOf returns the fields of have that want has: which there are depends on the
// version of Go.
func fieldsOf(want, have any) any {
	object, ok := want.(map[string]any)
	if !ok {
		return have
	}
	fields := map[string]any{}
	for key := range object {
		if values, ok := have.(map[string]any); ok {
			fields[key] = values[key]
		}
	}
	return fields
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// floats decodes JSON as Kyverno sees it.
func floats(t *testing.T, encoded []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
