// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
)

func TestDecode(t *testing.T) {
	one := map[string]any{"apiVersion": "v1", "kind": "A"}
	two := map[string]any{"apiVersion": "v1", "kind": "B"}
	tests := []struct {
		name string
		in   string
		want []map[string]any
	}{
		{name: "nothing"},
		{name: "comments only", in: "# a\n---\n# b\n---\n...\n"},
		{name: "one", in: "apiVersion: v1\nkind: A\n", want: []map[string]any{one}},
		{name: "byte order mark", in: "\xef\xbb\xbfapiVersion: v1\nkind: A\n", want: []map[string]any{one}},
		{name: "two", in: "---\napiVersion: v1\nkind: A\n--- # next\napiVersion: v1\nkind: B\n...\n", want: []map[string]any{one, two}},
		{name: "carriage returns", in: "apiVersion: v1\r\nkind: A\r\n---\r\napiVersion: v1\r\nkind: B\r\n", want: []map[string]any{one, two}},
		{name: "end markers", in: "apiVersion: v1\nkind: A\n...\napiVersion: v1\nkind: B\n", want: []map[string]any{one, two}},
		{name: "directive", in: "%YAML 1.1\n---\napiVersion: v1\nkind: A\n", want: []map[string]any{one}},
		{name: "content behind the marker", in: "--- {apiVersion: v1, kind: A}\n", want: []map[string]any{one}},
		{name: "markers in a block", in: "apiVersion: v1\nkind: A\ndata: |\n  ---\n  ...\n", want: []map[string]any{{"apiVersion": "v1", "kind": "A", "data": "---\n...\n"}}},
		{name: "JSON and YAML", in: "{\"apiVersion\": \"v1\",\n\t\"kind\": \"A\"}\n---\n{apiVersion: v1, kind: B}", want: []map[string]any{one, two}},
		{name: "JSON numbers and escapes", in: `{"kind": "A", "i": 1, "f": 1.0, "e": "\ud83d\ude00\/"}`, want: []map[string]any{{"kind": "A", "i": int64(1), "f": 1.0, "e": "\U0001F600/"}}},
		{
			name: "YAML scalars as in kubectl",
			in:   "kind: A\ni: 1\nf: 1.0\ng: 1.5\nu: 18446744073709551615\nyes: yes\nz: ~\nt: 2020-01-02\ns: !!timestamp 2020-01-02\no: 010\n1: x\n1.5: why\n",
			want: []map[string]any{{
				"kind": "A", "i": int64(1), "f": int64(1), "g": 1.5, "u": float64(1 << 64), "true": true, "z": nil,
				"t": "2020-01-02", "s": "2020-01-02", "o": int64(8), "1": "x", "1.5": "why",
			}},
		},
		{name: "aliases", in: "kind: A\na: &a {x: [1]}\nb: *a\n", want: []map[string]any{{"kind": "A", "a": map[string]any{"x": []any{int64(1)}}, "b": map[string]any{"x": []any{int64(1)}}}}},
		{name: "list", in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n", want: []map[string]any{one, two}},
		{name: "list in list", in: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: A}]\n", want: []map[string]any{one}},
		{name: "typed list", in: "apiVersion: v1\nkind: AList\nmetadata: {}\nitems: [{}, {apiVersion: v1, kind: B}]\n", want: []map[string]any{one, two}},
		{name: "empty lists", in: "kind: List\n---\nkind: List\nitems:\n---\nkind: AList\nitems: []\n"},
		{name: "kind that ends in List", in: "kind: AllowList\nspec: {}\n", want: []map[string]any{{"kind": "AllowList", "spec": map[string]any{}}}},
		{name: "kind that is missing is for others to find", in: "items: [1]\n", want: []map[string]any{{"items": []any{int64(1)}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := manifest.Decode([]byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			for _, object := range objects {
				got = append(got, object.Object)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	deep := manifest.MaxDepth + 1
	tests := []struct {
		name string
		in   string
		want string
	}{
		{
			name: "broken YAML",
			in:   "# comment\n\nkind: A\n---\n\nkind: B\nspec: {a: b\n",
			want: "document 2, line 7: broken YAML: did not find expected ',' or '}'",
		},
		{
			name: "tab",
			in:   "kind: A\nspec:\n\ta: b\n",
			want: "document 1, line 3: broken YAML: found character that cannot start any token",
		},
		{
			name: "key twice in YAML",
			in:   "kind: A\n---\nkind: A\nspec:\n  a: 1\n  b: 2\n  a: 3\n",
			want: `document 2, line 7: key "a" is set twice; keep one of them`,
		},
		{
			name: "keys twice",
			in:   "kind: A\nkind: B\nspec: {a: 1, a: 2}\n",
			want: "document 1, line 2: key \"kind\" is set twice; keep one of them\n" +
				"document 1, line 3: key \"a\" is set twice; keep one of them",
		},
		{
			name: "many keys twice",
			in:   "kind: A\n" + strings.Repeat("kind: A\n", 12),
			want: twice(2, 11) + "document 1, line 1: broken YAML: and 2 more faults",
		},
		{
			name: "many broken documents",
			in:   strings.Repeat("---\na: [\n", 200),
			want: broken(100) + "document 101, line 202: not read: there are too many faults before it",
		},
		{
			name: "key twice in two types",
			in:   "kind: A\n1: x\n'1': y\n",
			want: `document 1, line 1: key "1" is set twice; keep one of them`,
		},
		{
			name: "key twice in JSON",
			in:   "---\n{\n\"kind\": \"A\",\n\"spec\": [{\"a\": {}, \"b\": \"a\",\n\"a\": 2}]}",
			want: `document 1, line 5: key "a" is set twice; keep one of them`,
		},
		{
			name: "broken JSON",
			in:   "{\"kind\": \"A\",\n \"spec\": {\"a\": }",
			want: "document 1, line 2: broken YAML: did not find expected ',' or '}'",
		},
		{
			name: "truncated JSON",
			in:   "{\"kind\": \"A\",\n",
			want: "document 1, line 1: broken YAML: did not find expected node content",
		},
		{
			name: "two values in a document",
			in:   "{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n",
			want: "document 1, line 1: there is content behind the end of the object; separate objects by a line with ---",
		},
		{
			name: "not an object",
			in:   "kind: A\n---\n- a\n---\nb\n---\n[]\n--- 1\n--- true\n",
			want: "document 2, line 3: found a list; an object with apiVersion and kind is needed\n" +
				"document 3, line 5: found a string; an object with apiVersion and kind is needed\n" +
				"document 4, line 7: found a list; an object with apiVersion and kind is needed\n" +
				"document 5, line 8: found a number; an object with apiVersion and kind is needed\n" +
				"document 6, line 9: found a boolean; an object with apiVersion and kind is needed",
		},
		{
			name: "item that is not an object",
			in:   "kind: List\nitems:\n- kind: List\n  items: [{kind: A}, null]\n",
			want: "document 1, line 1, items[0].items[1]: found null; an object with apiVersion and kind is needed",
		},
		{
			name: "items that are no list",
			in:   "kind: List\nitems: {}\n",
			want: "document 1, line 1: items: found a mapping; a list of objects is needed",
		},
		{
			name: "YAML too deep",
			in:   "kind: A\na: " + strings.Repeat("[", deep) + strings.Repeat("]", deep),
			want: "document 1, line 1: the document is nested more than 256 levels deep; flatten it",
		},
		{
			name: "YAML mappings too deep",
			in:   "kind: A\na: " + strings.Repeat("{a: ", deep) + strings.Repeat("}", deep),
			want: "document 1, line 1: the document is nested more than 256 levels deep; flatten it",
		},
		{
			name: "JSON too deep",
			in:   "{\"kind\": \"A\",\n\"a\": " + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}",
			want: "document 1, line 2: the document is nested more than 256 levels deep; flatten it",
		},
		{
			name: "JSON mappings too deep",
			in:   strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep),
			want: "document 1, line 1: the document is nested more than 256 levels deep; flatten it",
		},
		{
			name: "aliases that grow",
			in:   "kind: A\na: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40) + "]\n",
			want: "document 1, line 1: aliases make the document too large; write out what they stand for",
		},
		{
			name: "not UTF-8",
			in:   "kind: A\nb: \xff\n",
			want: "document 1, line 2: the text is not UTF-8; save it as UTF-8",
		},
		{
			name: "infinity",
			in:   "a: .inf\n",
			want: "document 1, line 1: NaN and infinity have no form in JSON; use a number or a string",
		},
		{
			name: "binary",
			in:   "a: !!binary /w==\n",
			want: "document 1, line 1: a !!binary value is not UTF-8; write it as a string in base64",
		},
		{
			name: "key that is no string",
			in:   "? [a]\n: b\n",
			want: "document 1, line 1: broken YAML: invalid map key: []interface {}{\"a\"}",
		},
		{
			name: "key that is null",
			in:   "~: b\n",
			want: "document 1, line 1: key <nil> is not a string; put it in quotes",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := manifest.Decode([]byte(test.in))
			if err == nil || err.Error() != test.want {
				t.Fatalf("got error %v, want %s", err, test.want)
			}
			if objects != nil {
				t.Errorf("got objects %v next to the error", objects)
			}
			var fault *manifest.Error
			if !errors.As(err, &fault) {
				t.Errorf("got %T, want a *manifest.Error in it", err)
			}
		})
	}
}

func twice(from, to int) string {
	var text strings.Builder
	for line := from; line <= to; line++ {
		fmt.Fprintf(&text, "document 1, line %d: key \"kind\" is set twice; keep one of them\n", line)
	}
	return text.String()
}

func broken(documents int) string {
	var text strings.Builder
	for number := range documents {
		fmt.Fprintf(&text, "document %d, line %d: broken YAML: did not find expected node content\n", number+1, 2*number+2)
	}
	return text.String()
}

func TestReadPositions(t *testing.T) {
	objects, err := manifest.Read([]byte("# c\nkind: A\n---\n\n# c\nkind: List\nitems: [{kind: B}]\n---\nkind: [\n---\nkind: C\n"))
	if want := "document 3, line 9: broken YAML: did not find expected node content"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	var got []string
	for _, object := range objects {
		got = append(got, object.Content.GetKind()+" "+object.Position.String())
	}
	want := []string{"A document 1, line 2", "B document 2, line 6, items[0]", "C document 4, line 11"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "apiVersion: v1\nkind: A\n", "---\n{\"kind\": \"List\", \"items\": [{}]}\n...\n--- {a: *b}\n",
		"a: &a [x]\nb: *a\n<<: {c: d}\n", "kind: AList\nitems: [{}]\n", "%YAML 1.1\n---\n? a\n: b\n", "a: !!binary /w==\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := manifest.Decode(data)
		if err != nil {
			if objects != nil {
				t.Fatalf("got objects next to error %v", err)
			}
			return
		}
		for _, object := range objects {
			encoded, err := object.MarshalJSON()
			if err != nil {
				continue // no kind
			}
			again, err := manifest.Decode(encoded)
			if err != nil {
				t.Fatalf("encoded object %s cannot be decoded: %v", encoded, err)
			}
			if !object.IsList() && (len(again) != 1 || !sameJSON(t, again[0], object)) {
				t.Fatalf("got %v from %s, want the same object", again, encoded)
			}
		}
	})
}

func sameJSON(t *testing.T, a, b *unstructured.Unstructured) bool {
	t.Helper()
	first, err := a.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(first) == string(second)
}
