// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// home and served are the versions that manifests may have.
const (
	home   = "admissionregistration.k8s.io/v1"
	served = "policy.portcullis.dev/v1alpha1"
)

// policyOf is the manifest of a policy on all ConfigMaps; more is further lines of
// its spec.
func policyOf(version, name string, more ...string) string {
	lines := append([]string{
		"apiVersion: " + version,
		"kind: ValidatingAdmissionPolicy",
		"metadata: {name: " + name + "}",
		"spec:",
		"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}",
		"  validations: [{expression: 'false'}]",
	}, more...)
	return strings.Join(lines, "\n") + "\n"
}

func bindingOf(version, name, target string, more ...string) string {
	lines := append([]string{
		"apiVersion: " + version,
		"kind: ValidatingAdmissionPolicyBinding",
		"metadata: {name: " + name + "}",
		"spec:",
		"  policyName: " + target,
		"  validationActions: [Deny]",
	}, more...)
	return strings.Join(lines, "\n") + "\n"
}

// rulesOf is the manifest of a ClusterPolicy with one rule; more is further lines of the
// rule.
func rulesOf(version, name string, more ...string) string {
	lines := append([]string{
		"apiVersion: " + version,
		"kind: ClusterPolicy",
		"metadata: {name: " + name + "}",
		"spec:",
		"  rules:",
		"  - name: r",
		"    match: {any: [{resources: {kinds: [ConfigMap]}}]}",
		"    mutate: {patchesJson6902: '[{\"op\": \"add\", \"path\": \"/data/a\", \"value\": \"b\"}]'}",
	}, more...)
	return strings.Join(lines, "\n") + "\n"
}

func documents(manifests ...string) string { return strings.Join(manifests, "---\n") }

// parts are what a directory is read with.
func parts(t testing.TB) (*stored.Manifests, *catalog.Catalog) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	manifests, err := stored.NewManifests(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return manifests, catalog.New(dialect.All())
}

// put makes the files of dir those of files; a content of <dir>, <pipe> or a name
// behind -> makes what it says.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if target, isLink := strings.CutPrefix(content, "->"); isLink {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func names(units []*policy.Unit) string {
	var list []string
	for _, unit := range units {
		name := unit.ID.Name
		if unit.Binding != nil {
			name += ">" + unit.Binding.Policy.Name
		}
		list = append(list, strings.ReplaceAll(name, stored.ReservedSuffix, ""))
	}
	return strings.Join(list, " ")
}

func TestOpen(t *testing.T) {
	list := `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "` + served + `", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "lb.static.k8s.io"}, "spec": {"policyName": "a.static.k8s.io", "validationActions": ["Warn"]}}]}`
	typed := "apiVersion: " + home + "\nkind: ValidatingAdmissionPolicyBindingList\nitems:\n" +
		"- {metadata: {name: tb.static.k8s.io}, spec: {policyName: a.static.k8s.io, validationActions: [Deny]}}\n"
	tests := []struct {
		name  string
		files map[string]string
		want  string // the units
		errs  string // a line each; DIR stands for the directory
	}{
		{
			name: "files in alphabetical order, documents in theirs",
			files: map[string]string{
				"2.yml":  policyOf(served, "b.static.k8s.io"),
				"1.yaml": documents(bindingOf(home, "z.static.k8s.io", "b.static.k8s.io"), policyOf(home, "a.static.k8s.io")),
				"3.json": list,
				"4.YAML": typed,
			},
			want: "z>b a b lb>a tb>a",
		},
		{
			name: "other files, hidden ones and subdirectories are passed over",
			files: map[string]string{
				"a.yaml": policyOf(served, "a.static.k8s.io"), "notes.txt": "{", ".a.yaml": "{", "sub/b.yaml": "{", "sub.yaml/c.txt": "",
				"..2026/c.yaml": policyOf(served, "c.static.k8s.io"), "c.yaml": "->..2026/c.yaml", "..data": "->..2026",
			},
			want: "a c",
		},
		{
			name:  "no manifests",
			files: map[string]string{"a.txt": ""},
			errs:  "DIR: " + errNone.Error(),
		},
		{
			name:  "a file without objects",
			files: map[string]string{"a.yaml": "# later\n---\n", "b.yaml": "", "c.yaml": policyOf(served, "a.static.k8s.io")},
			errs: `DIR/a.yaml: the file has no objects; write policies and bindings into it, or remove it
DIR/b.yaml: the file has no objects; write policies and bindings into it, or remove it`,
		},
		{
			name: "names without the suffix",
			files: map[string]string{"a.yaml": documents(policyOf(served, "a"), bindingOf(served, "b", "a"), bindingOf(served, "static.k8s.io", "a.static.k8s.io"),
				strings.Replace(policyOf(served, "g"), "name: g", "generateName: g", 1), strings.Replace(policyOf(served, "g"), "name: g", "", 1))},
			errs: `DIR/a.yaml: document 1, line 1: metadata.name: Invalid value: "a": must end with ".static.k8s.io", which sets bootstrap policies and bindings apart from stored ones: rename it
DIR/a.yaml: document 2, line 8: metadata.name: Invalid value: "b": must end with ".static.k8s.io", which sets bootstrap policies and bindings apart from stored ones: rename it
DIR/a.yaml: document 3, line 15: metadata.name: Invalid value: "static.k8s.io": must end with ".static.k8s.io", which sets bootstrap policies and bindings apart from stored ones: rename it
DIR/a.yaml: document 4, line 22: metadata.name: Required value: name or generateName is required
DIR/a.yaml: document 5, line 29: metadata.name: Required value: name or generateName is required
DIR/a.yaml: document 2, line 8: spec.policyName: Invalid value: "a": must end with ".static.k8s.io": bootstrap bindings bind bootstrap policies; bind a stored policy by a stored binding
DIR/a.yaml: document 3, line 15: spec.policyName: Invalid value: "a.static.k8s.io": no ValidatingAdmissionPolicy of that name is in the directory: add it, or name another one`,
		},
		{
			name: "params",
			files: map[string]string{"a.yaml": documents(
				policyOf(served, "a.static.k8s.io", "  paramKind: {apiVersion: v1, kind: ConfigMap}"),
				bindingOf(served, "b.static.k8s.io", "a.static.k8s.io", "  paramRef: {name: x, parameterNotFoundAction: Allow}"))},
			errs: `DIR/a.yaml: document 1, line 1: spec.paramKind: Forbidden: is not supported for bootstrap policies, whose verdicts must not depend on objects of the API: write the values into the expressions
DIR/a.yaml: document 2, line 9: spec.paramRef: Forbidden: is not supported for bootstrap policies, whose verdicts must not depend on objects of the API: write the values into the expressions`,
		},
		{
			name: "rules",
			files: map[string]string{"a.yaml": documents(
				rulesOf(served, "a.static.k8s.io"), rulesOf("kyverno.io/v1", "b.static.k8s.io"), rulesOf("kyverno.io/v2beta1", "c.static.k8s.io"))},
			want: "a b c",
		},
		{
			name: "rules that cannot be",
			files: map[string]string{"a.yaml": documents(
				rulesOf(served, "a.static.k8s.io", "    context: [{name: c, configMap: {name: settings, namespace: default}}]"),
				rulesOf(served, "b.static.k8s.io", "    validate: {message: m}"),
				"apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e}\n")},
			errs: `DIR/a.yaml: document 1, line 1: spec.rules[0].context[0].configMap: Forbidden: is not supported for bootstrap policies, whose verdicts must not depend on objects of the API: write the values into the policy
DIR/a.yaml: document 2, line 11: spec.rules[0].validate: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno, or write a ValidatingAdmissionPolicy
DIR/a.yaml: document 3, line 21: kind: Forbidden: there are no PolicyExceptions here: narrow match of the rule, or add an exclude to it`,
		},
		{
			name: "twice, in one kind",
			files: map[string]string{
				"a.yaml": documents(policyOf(served, "a.static.k8s.io"), bindingOf(served, "a.static.k8s.io", "a.static.k8s.io")),
				"b.yaml": policyOf(home, "a.static.k8s.io"),
			},
			errs: `DIR/b.yaml: document 1, line 1: metadata.name: Duplicate value: "a.static.k8s.io": the first ValidatingAdmissionPolicy of that name is in DIR/a.yaml: document 1, line 1: remove or rename one of them`,
		},
		{
			name: "all that a write refuses, and other kinds",
			files: map[string]string{
				"a.yaml": documents(policyOf(served, "a.static.k8s.io", "  failurePolicy: Perhaps", "  variables: [{name: v, expression: 'nonsense'}]"), "kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n"),
				"b.yaml": policyOf("example.com/v1", "b.static.k8s.io"),
				"c.yaml": policyOf(served, "c.static.k8s.io", "  validation: []"),
				"d.yaml": "a: 1\na: 2\n",
				"e.yaml": bindingOf(served, "e.static.k8s.io", "unknown.static.k8s.io"),
			},
			errs: `DIR/a.yaml: document 1, line 1: spec.failurePolicy: Unsupported value: "Perhaps": supported values: "Fail", "Ignore"
DIR/a.yaml: document 1, line 1: spec.variables[0].expression: Invalid value: "nonsense": compilation failed: ERROR: <input>:1:1: undeclared reference to 'nonsense' (in container '')  | nonsense  | ^
DIR/a.yaml: document 2, line 10: kind: Unsupported value: "ConfigMap": supported values: "ClusterPolicy", "Policy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
DIR/b.yaml: document 1, line 1: apiVersion: Unsupported value: "example.com/v1": supported values: "policy.portcullis.dev/v1alpha1", "admissionregistration.k8s.io/v1"
DIR/c.yaml: document 1, line 1: Invalid value: "c.static.k8s.io": strict decoding error: unknown field "spec.validation"
DIR/d.yaml: document 1, line 2: key "a" is set twice; keep one of them`,
		},
		{
			name:  "what cannot be read",
			files: map[string]string{"a.yaml": "->nowhere.yaml", "b.yaml": "->sub", "sub/c.txt": "", "c.yaml": policyOf(served, "c.static.k8s.io")},
			errs: `stat DIR/a.yaml: no such file or directory
DIR/b.yaml: not a regular file; only files are read, and links to files`,
		},
	}
	manifests, compiler := parts(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, test.files)
			opened, err := Open(t.Context(), dir, manifests, compiler, clocktesting.NewFakeClock(time.Unix(0, 0)))
			if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); test.errs != "" && got != test.errs || test.errs == "" && err != nil {
				t.Fatalf("faults:\n%s\nwant:\n%s", got, test.errs)
			}
			if err != nil {
				return
			}
			if got := names(opened.Units()); got != test.want {
				t.Errorf("loaded %q, want %q", got, test.want)
			}
			if status := opened.Status(); status.Err != nil || status.Objects != len(opened.Units()) || !strings.HasPrefix(status.Hash, "sha256:") {
				t.Errorf("status %+v", status)
			}
		})
	}
}

func TestOpenNoDirectory(t *testing.T) {
	manifests, compiler := parts(t)
	file := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(file), map[string]string{"file": ""})
	for _, dir := range []string{file, file + "s", ""} {
		if opened, err := Open(t.Context(), dir, manifests, compiler, clocktesting.NewFakeClock(time.Unix(0, 0))); err == nil {
			t.Errorf("%q was opened: %v", dir, opened.Status())
		}
	}
}

// TestDefaults: what a manifest leaves out is what a write would make of it.
func TestDefaults(t *testing.T) {
	manifests, compiler := parts(t)
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.yaml": policyOf(home, "a.static.k8s.io")})
	opened, err := Open(t.Context(), dir, manifests, compiler, clocktesting.NewFakeClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if unit := opened.Units()[0]; !unit.Policy.NeedsBinding || unit.Policy.Criteria == nil || unit.ID.Kind != "ValidatingAdmissionPolicy" {
		t.Errorf("loaded %+v", unit)
	}
}

func TestLimits(t *testing.T) {
	small := limits{fileBytes: 1000, totalBytes: 1500, files: 3, objects: 4}
	one := func(name string) string { return policyOf(served, name+".static.k8s.io") }
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a long file", map[string]string{"a.yaml": one("a") + strings.Repeat("#", 1000)}, "DIR/a.yaml: the file has more than 1000 bytes; split it"},
		{
			"many bytes",
			map[string]string{"a.yaml": one("a") + strings.Repeat("#", 600), "b.yaml": one("b") + strings.Repeat("#", 600)},
			"DIR/b.yaml: the manifests up to here have more than 1500 bytes; remove what no bootstrap policy needs",
		},
		{"many files", map[string]string{"a.yaml": one("a"), "b.yaml": one("b"), "c.yaml": one("c"), "d.yaml": one("d")}, "DIR: more than 3 manifests; put several objects into a file"},
		{"many objects", map[string]string{"a.yaml": strings.Repeat("---\nkind: x\n", 5)}, "DIR/a.yaml: the manifests up to here have more than 4 objects; remove what no bootstrap policy needs"},
	}
	manifests, compiler := parts(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, test.files)
			l := loader{manifests: manifests, compiler: compiler}
			_, err := l.load(t.Context(), dir, small.read(dir))
			if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestManyFaults: faults are reported up to a bound.
func TestManyFaults(t *testing.T) {
	manifests, compiler := parts(t)
	l := loader{manifests: manifests, compiler: compiler}
	found := &contents{objects: 1000, files: []file{{path: "a.yaml", data: []byte(strings.Repeat("---\nkind: x\n", 500))}}}
	_, err := l.load(t.Context(), "DIR", found)
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != maxFaults+1 || lines[maxFaults] != "DIR: and 400 more faults" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

// FuzzLoad: whatever a file holds is loaded whole or refused with its name, and what
// is loaded keeps the rules.
func FuzzLoad(f *testing.F) {
	manifests, compiler := parts(f)
	f.Add(documents(policyOf(home, "a.static.k8s.io"), bindingOf(served, "b.static.k8s.io", "a.static.k8s.io")))
	f.Add(policyOf(served, "a.static.k8s.io", "  paramKind: {apiVersion: v1, kind: ConfigMap}"))
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{}]}`)
	f.Add("kind: ValidatingAdmissionPolicyBindingList\napiVersion: " + served + "\nitems: [{metadata: {name: x.static.k8s.io}}]")
	f.Fuzz(func(t *testing.T, text string) {
		l := loader{manifests: manifests, compiler: compiler}
		units, err := l.load(t.Context(), "DIR", &contents{objects: 100, files: []file{{path: "DIR/a.yaml", data: []byte(text)}}})
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "DIR") {
					t.Errorf("a fault without a place: %q", line)
				}
			}
			return
		}
		policies := map[policy.ID]bool{}
		for _, unit := range units {
			if !stored.IsReserved(unit.ID.Name) || policies[unit.ID] {
				t.Errorf("loaded %v", unit.ID)
			}
			policies[unit.ID] = true
		}
		for _, unit := range units {
			if unit.Policy != nil && unit.Policy.ParamKind != nil {
				t.Errorf("%v has a paramKind", unit.ID)
			}
			if unit.Binding != nil && (unit.Binding.Params != nil || !policies[unit.Binding.Policy]) {
				t.Errorf("%v binds %+v", unit.ID, unit.Binding)
			}
		}
	})
}
