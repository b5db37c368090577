// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

var update = flag.Bool("update", false, "write docs/faults.md")

const page = "../../../docs/faults.md"

// row is one fault. Its policy p is bound by the binding p and matches the
// writing of ConfigMaps unless it says otherwise.
type row struct {
	fault string
	// spec is what follows matchConstraints in the spec of the policy, and match
	// replaces these.
	spec, match string
	// binding is the spec of the binding after policyName; "none" stores none.
	binding string
	// more are further manifests.
	more []string
	// do brings the fault about once the policies are in force.
	do func(t *testing.T, w *world)
	// request changes fields of the request that the policy matches, by JSON.
	request string
	// body is sent instead of a review of that request.
	body string
	// path is appended to that of the review door.
	path string
	// cut says that the answer may be cut off, and that the user asks again then.
	cut bool
	// matched and other are what happens to the requests that the policy matches
	// and to others; empty means allowed.
	matched, other string
	// sees is part of what the user is told.
	sees string
	// as changes who asks.
	as func(t *testing.T, w *world) *http.Client
	// test names the package and the test of a fault that is brought about
	// elsewhere.
	test string
}

const configMaps = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}\n"

func (r *row) manifests() []string {
	match := r.match
	if match == "" {
		match = configMaps
	}
	manifests := append([]string{policyManifest("p", match+r.spec)}, r.more...)
	if r.binding != "none" {
		manifests = append(manifests, bindingManifest("p", r.binding))
	}
	return manifests
}

// matching is a request that the policy matches.
func (r *row) matching(t *testing.T) []byte {
	t.Helper()
	if r.body != "" {
		return []byte(r.body)
	}
	request := map[string]any{
		"uid": "1", "operation": "CREATE", "name": "c", "namespace": "default",
		"kind":     map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"},
		"resource": map[string]any{"group": "", "version": "v1", "resource": "configmaps"},
		"userInfo": map[string]any{"username": "ada", "groups": []any{"system:authenticated"}},
		"object": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "default"},
			"data": map[string]any{"a": "x"},
		},
	}
	if r.request == "" {
		return review(t, request)
	}
	changes := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(r.request), &changes); err != nil {
		t.Fatal(err)
	}
	for field, value := range changes {
		request[field] = value
	}
	return review(t, request)
}

// another is a request that no policy of the table matches.
func another(t *testing.T) []byte {
	t.Helper()
	return review(t, map[string]any{
		"uid": "2", "operation": "CREATE", "name": "e", "namespace": "default",
		"kind":     map[string]any{"group": "", "version": "v1", "kind": "Endpoints"},
		"resource": map[string]any{"group": "", "version": "v1", "resource": "endpoints"},
		"object":   map[string]any{"apiVersion": "v1", "kind": "Endpoints", "metadata": map[string]any{"name": "e", "namespace": "default"}},
	})
}

func TestFaults(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "objects.yaml"), []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, harness.WithObjects(dir))
	all := rows()
	for i := range all {
		r := &all[i]
		t.Run(r.fault, func(t *testing.T) {
			w.store(t, r.manifests()...)
			if r.do != nil {
				r.do(t, w)
			}
			client := w.http
			if r.as != nil {
				client = r.as(t, w)
			}
			var got reply
			if r.cut {
				got = w.postUntil(t, client, reviewPath+r.path, r.matching(t), r.sees)
			} else {
				got = w.post(t, client, reviewPath+r.path, bytes.NewReader(r.matching(t)))
			}
			if want := orAllowed(r.matched); got.String() != want {
				t.Errorf("a request that the policy matches: %s, want %s; the answer: %+v", got, want, got)
			}
			if told := got.told(); !strings.Contains(told, r.sees) {
				t.Errorf("the user is told %q, want %q", told, r.sees)
			}
			if r.matched == "" && strings.Contains(r.fault, "Ignore") {
				w.checkIgnored(t, r)
			}
			if other := w.review(t, another(t)); other.String() != orAllowed(r.other) {
				t.Errorf("another request: %s, want %s; the answer: %+v", other, orAllowed(r.other), other)
			}
		})
	}
	if len(all) < 30 {
		t.Errorf("the table has %d rows, want 30 at least", len(all))
	}
	for _, r := range elsewhere() {
		checkTest(t, r.test)
	}
	comparePage(t, append(all, elsewhere()...))
}

// TestBodiesOfStrangersAreNotRead: who may not ask is told so while the body has
// not even begun.
func TestBodiesOfStrangersAreNotRead(t *testing.T) {
	w := newWorld(t)
	for want, as := range map[int]func(*testing.T, *world) *http.Client{
		http.StatusForbidden: anonymous, http.StatusUnauthorized: stranger,
	} {
		body, never := io.Pipe()
		if got := w.post(t, as(t, w), reviewPath, body); got.http != want {
			t.Errorf("got %s, want HTTP %d", got, want)
		}
		never.Close()
	}
}

// checkTest fails when there is no such test: "package/path TestName".
func checkTest(t *testing.T, test string) {
	t.Helper()
	dir, name, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("..", "..", "..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), "func "+name+"(") {
			return
		}
	}
	t.Errorf("there is no test %s in %s", name, dir)
}

// checkIgnored fails when the request was admitted for another reason than that
// the failurePolicy ignores the fault.
func (w *world) checkIgnored(t *testing.T, r *row) {
	t.Helper()
	var asked struct {
		Request v1alpha1.PreviewRequest `json:"request"`
	}
	if err := json.Unmarshal(r.matching(t), &asked); err != nil {
		t.Fatal(err)
	}
	preview := &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{Request: &asked.Request}}
	answer, err := w.client.AdmissionPreviews().Create(t.Context(), preview, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, evaluation := range answer.Status.Evaluations {
		if evaluation.Policy.Name == "p" && evaluation.Outcome == v1alpha1.OutcomeError && strings.HasPrefix(evaluation.WhyNot, "failurePolicy Ignore") {
			return
		}
	}
	t.Errorf("no error was ignored: %+v", answer.Status.Evaluations)
}

func orAllowed(text string) string {
	if text == "" {
		return "allowed"
	}
	return text
}

// told is everything that the answer says.
func (r reply) told() string {
	parts := append([]string{r.message}, r.warnings...)
	for value := range maps.Values(r.audited) {
		parts = append(parts, value)
	}
	return strings.Join(parts, "\n")
}

// comparePage holds docs/faults.md to the table.
func comparePage(t *testing.T, all []row) {
	t.Helper()
	var b strings.Builder
	b.WriteString(pageHead)
	for i := range all {
		r := &all[i]
		sees := "-"
		if r.sees != "" {
			sees = "`" + strings.ReplaceAll(r.sees, "|", `\|`) + "`"
			if strings.Contains(r.sees, "`") {
				sees = "`` " + strings.ReplaceAll(r.sees, "|", `\|`) + " ``"
			}
		}
		where := ""
		if r.test != "" {
			where = " (" + r.test + ")"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", i+1, r.fault+where, orAllowed(r.matched), orAllowed(r.other), sees)
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("docs/faults.md does not say what the tests do; run: go test ./test/integration/faults -update\n(-want +have):\n%s", diff)
	}
}

const pageHead = `# When something goes wrong

What happens to requests that a policy matches, to all other requests, and what the user is told, fault by fault.
Each row is a test against a real server ([test/integration/faults](../test/integration/faults)), and this page is written
by it. The last rows need more than a request: they name the test that holds what is said. In the rows about a policy, the policy is named p, its binding too.

| # | Fault | Requests that the policy matches | Other requests | What the user is told |
|---|---|---|---|---|
`
