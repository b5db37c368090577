// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    []jsonpatch.Operation
		wantErr string
	}{
		"YAML": {
			text: "# a comment\n- op: add\n  path: /a\n  value: yes # more\n- {op: copy, from: /a, path: /b, other: 1}\n",
			want: []jsonpatch.Operation{{Op: "add", Path: "/a", Value: true}, {Op: "copy", Path: "/b", From: "/a"}},
		},
		"JSON": {
			text: `[{"op":"test","path":"","value":1},{"op":"replace","path":"/a","value":1.5},{"op":"add","path":"/a","value":null}]`,
			want: []jsonpatch.Operation{{Op: "test", Value: int64(1)}, {Op: "replace", Path: "/a", Value: 1.5}, {Op: "add", Path: "/a"}},
		},
		"a space makes it YAML":  {text: " [{op: remove, path: /a}]", want: []jsonpatch.Operation{{Op: "remove", Path: "/a"}}},
		"without, it is JSON":    {text: "[{op: remove, path: /a}]", wantErr: "the patch is no JSON, which it must be when it begins with ["},
		"nothing":                {text: "# nothing"},
		"null":                   {text: "null"},
		"empty list":             {text: "[]"},
		"no YAML":                {text: "a: b: c", wantErr: "the patch is no YAML"},
		"no list":                {text: "op: add", wantErr: "a JSON patch is a list of operations"},
		"no object":              {text: "- op: remove\n  path: /a\n-", wantErr: "operation 1: is no object with the fields op and path"},
		"unknown operation":      {text: "- {op: ADD, path: /a, value: 1}", wantErr: `operation 0: op is "ADD", want add, remove, replace, move, copy or test`},
		"no operation":           {text: "- {path: /a}", wantErr: `operation 0: op is "", want`},
		"no path":                {text: "- {op: remove}", wantErr: "operation 0: remove needs a path, which is a string"},
		"path of another type":   {text: "- {op: remove, path: 1}", wantErr: "operation 0: remove needs a path, which is a string"},
		"path without slash":     {text: "- {op: remove, path: a/b}", wantErr: `operation 0: path "a/b" must begin with a slash`},
		"from without slash":     {text: "- {op: move, from: a, path: /b}", wantErr: `operation 0: from "a" must begin with a slash`},
		"no value":               {text: "- {op: add, path: /a}", wantErr: "operation 0: add needs a value; null is one too"},
		"no value to test":       {text: "- {op: test, path: /a}", wantErr: "operation 0: test needs a value; null is one too"},
		"no from":                {text: "- {op: move, path: /a}", wantErr: "operation 0: move needs the field from, a path"},
		"path that is too long":  {text: "- {op: remove, path: " + strings.Repeat("/a", 1001) + "}", wantErr: "leads deeper than 1000 levels"},
		"too many operations":    {text: strings.Repeat("- {op: remove, path: /a}\n", 1001), wantErr: "the patch has 1001 operations, at most 1000 are taken"},
		"too much text":          {text: strings.Repeat(" ", 3<<20+1), wantErr: "the patch has 3145729 bytes, at most 3145728 are taken"},
		"aliases that multiply":  {text: "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", wantErr: "excessive aliasing"},
		"what else is unlimited": {text: strings.Repeat("[", 100_000), wantErr: "the patch is no JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonpatch.Parse(test.text)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got error %v, want %s", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(jsonpatch.Operation{}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
