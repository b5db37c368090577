// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"reflect"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/operator"
)

func FuzzHolds(f *testing.F) {
	for _, seed := range [][2]string{
		{`"5"`, `"1-10"`},
		{`["1Gi"]`, `["1024Mi"]`},
		{`{"a":1}`, `{"a":1.0}`},
		{`"1h"`, `3600`},
		{`"1.2.3"`, `"1.10.0"`},
		{`["a", null]`, `"[\"a\"]"`},
		{`"a*"`, `"[1]"`},
		{`"1e400"`, `"|5!-10"`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, keyText, valueText string) {
		var key, value, sameKey any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(keyText), &key) != nil ||
			kjson.UnmarshalCaseSensitivePreserveInts([]byte(keyText), &sameKey) != nil ||
			kjson.UnmarshalCaseSensitivePreserveInts([]byte(valueText), &value) != nil {
			t.Skip()
		}
		got := map[string]bool{}
		for _, name := range operator.Names() {
			o, err := operator.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			first, err := o.Holds(t.Context(), newRun(), key, value)
			again, errAgain := o.Holds(t.Context(), newRun(), key, value)
			if first != again || (err == nil) != (errAgain == nil) {
				t.Errorf("%s: %v and %v, %v and %v", name, first, again, err, errAgain)
			}
			got[name] = first
			if err != nil {
				return
			}
		}
		if !reflect.DeepEqual(key, sameKey) {
			t.Error("the key has been modified")
		}
		if key != nil && got["Equals"] == got["NotEquals"] {
			t.Error("equal as well as not equal, or neither")
		}
		if got["GreaterThan"] && got["LessThanOrEquals"] || got["LessThan"] && got["GreaterThanOrEquals"] {
			t.Error("greater as well as not greater")
		}
		if got["AnyIn"] && got["AllNotIn"] || got["AllIn"] && got["AnyNotIn"] {
			t.Error("in as well as not in")
		}
	})
}
