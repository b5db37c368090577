// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"sibling":                {`{"a": "eu", "b": "in $(./../a)!"}`, `{"a":"eu","b":"in eu!"}`},
		"further away":           {`{"m": {"a": "eu"}, "n": {"o": {"b": "$(./../../../m/a)"}}}`, `{"m":{"a":"eu"},"n":{"o":{"b":"eu"}}}`},
		"absolute":               {`{"a": "eu", "b": "$(/mutate/patchStrategicMerge/a)"}`, `{"a":"eu","b":"eu"}`},
		"several":                {`{"a": "x", "b": "$(./../a) $(./../a)"}`, `{"a":"x","b":"x x"}`},
		"item of a list":         {`{"a": ["s", "t"], "b": "$(./../a/1)"}`, `{"a":["s","t"],"b":"t"}`},
		"anchored key":           {`{"+(a)": "eu", "b": "$(./../a)"}`, `{"+(a)":"eu","b":"eu"}`},
		"below an anchor":        {`{"(m)": {"a": "eu", "b": "$(./../a)"}}`, `{"(m)":{"a":"eu","b":"eu"}}`},
		"key with a slash":       {`{"a/b": {"c": "x", "d": "$(./../c)"}, "e": "$(./../a\\/b/c)"}`, `{"a/b":{"c":"x","d":"x"},"e":"x"}`},
		"operator and number":    {`{"a": 5, "b": "$(<=./../a)"}`, `{"a":5,"b":"<=5.000000"}`},
		"operator and fraction":  {`{"a": 2.5, "b": "$(>=./../a)"}`, `{"a":2.5,"b":">=2.500000"}`},
		"operator and text":      {`{"a": "x", "b": "$(!./../a)"}`, `{"a":"x","b":"!x"}`},
		"key":                    {`{"a": "x", "$(./a)-k": 1}`, `{"a":"x","x-k":1}`},
		"variable":               {`{"a": "{{request.object.spec.i}}", "b": "$(./../a)"}`, `{"a":5,"b":5}`},
		"escape":                 {`"\\$(A) x \\$(B C) \\$( D)-\\$(E)"`, `"$(A) x \\$(B C) $( D)-$(E)"`},
		"escape beside":          {`{"a": "\\$(A)", "b": "$(./../a)"}`, `{"a":"$(A)","b":"$(A)"}`},
		"none":                   {`"$(A B) $() $A ${B} $("`, `"$(A B) $() $A ${B} $("`},
		"not in values":          {`"x{{request.object.spec.tm.q}}"`, `"x{{a}} $(x)"`},
		"greedy up to the space": {`{"a": "xx", "b": "$(./../a)$(./../a)"}`, `{"a":"xx","b":"xx"}`},
	} {
		t.Run(name, func(t *testing.T) {
			value := decode(t, tc.value)
			compiled, faults := compiler().Value(value, inPatch(value))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got, err := compiled.Render(t.Context(), budget(), scope(t))
			if err != nil || encode(t, got) != encode(t, decode(t, tc.want)) {
				t.Errorf("got %s, %v, want %s", encode(t, got), err, tc.want)
			}
		})
	}
}

func TestReferencesThatFail(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"nothing there":   {`"$(./../nope)"`, "reference $(./../nope): there is no text or number at /mutate/nope of the rule"},
		"null":            {`{"a": null, "b": "$(./../a)"}`, "there is no text or number at"},
		"object":          {`{"a": {"b": 1}, "c": "$(./../a)"}`, "there is no text or number at"},
		"number as text":  {`{"a": 1, "b": "$(./../a)"}`, "/mutate/patchStrategicMerge/a of the rule is a number, not a string"},
		"boolean":         {`{"a": true, "b": "$(>./../a)"}`, "/mutate/patchStrategicMerge/a of the rule is a boolean, not a string"},
		"of a container":  {`[{"env": "$(POD_IP)"}]`, "reference $(POD_IP): "},
		"no path":         {`"$(>=)"`, "it names no path"},
		"in a key":        {`{"$(x)": 1}`, "reference $(x): "},
		"in a key, value": {`{"$(x)": "{{ y }}"}`, "reference $(x): "},
	} {
		t.Run(name, func(t *testing.T) {
			value := decode(t, tc.value)
			compiled, faults := compiler().Value(value, inPatch(value))
			if len(faults) != 1 || !strings.Contains(faults[0].Detail, tc.want) {
				t.Fatalf("got %v, want %s", faults, tc.want)
			}
			if got, err := compiled.Render(t.Context(), budget(), scope(t)); err == nil {
				t.Errorf("renders to %v", got)
			}
		})
	}
}
