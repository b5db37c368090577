// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	reviewPath   = "/admission/v1/validate"
	groupPath    = "/apis/policy.portcullis.dev/v1alpha1"
	policiesPath = groupPath + "/validatingadmissionpolicies?fieldValidation=Strict" // as kubectl does

	// reviewed is what a valid review says about its request, but for its uid.
	reviewed = `"kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"operation":"CREATE"`
	matching = `"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments"]}]}`
)

// TestBadInputs pins what a user reads who makes one of the common mistakes. Each
// text names what is at fault and says, or shows, what is wanted instead.
func TestBadInputs(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	s := launchReady(t, dataDir)
	policy := func(validations string) string {
		return `{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"demo"},"spec":{` + matching + `,"validations":` + validations + `}}`
	}
	posts := []struct {
		name, path, body string
		code             int
		want             string
	}{
		{
			name: "1 malformed review", path: reviewPath, code: http.StatusBadRequest,
			body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",}}`,
			want: "not a usable AdmissionReview: not JSON at byte 85: invalid character '}' looking for beginning of object key string",
		},
		{
			name: "2 wrong group version kind", path: reviewPath, code: http.StatusBadRequest,
			body: `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u-1"}}`,
			want: `not a usable AdmissionReview: apiVersion "admission.k8s.io/v1beta1" and kind "AdmissionReview": only admission.k8s.io/v1 AdmissionReview is judged; register the webhook with admissionReviewVersions: [v1]`,
		},
		{
			name: "3 missing uid", path: reviewPath, code: http.StatusBadRequest,
			body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{` + reviewed + `}}`,
			want: "not a usable AdmissionReview: request.uid: required: set a text that no other request has",
		},
		{
			name: "4 deep nesting", path: reviewPath, code: http.StatusBadRequest,
			body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"object":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}}`,
			want: "not a usable AdmissionReview: nested more than 10000 levels deep at byte 10080: flatten the object",
		},
		{
			name: "5 unknown field in a policy", path: policiesPath, code: http.StatusBadRequest,
			body: policy(`[{"expression":"true","massage":"no"}]`),
			want: `ValidatingAdmissionPolicy in version "v1alpha1" cannot be handled as a ValidatingAdmissionPolicy: strict decoding error: unknown field "spec.validations[0].massage"`,
		},
		{
			name: "6 CEL syntax error", path: policiesPath, code: http.StatusUnprocessableEntity,
			body: policy(`[{"expression":"object.spec.replicas <= 5)"}]`),
			want: `ValidatingAdmissionPolicy.policy.portcullis.dev "demo" is invalid: spec.validations[0].expression: Invalid value: "object.spec.replicas <= 5)": compilation failed: ERROR: <input>:1:26: Syntax error: extraneous input ')' expecting <EOF>` +
				"\n | object.spec.replicas <= 5)\n | .........................^",
		},
		{
			name: "7 binding without policyName", path: groupPath + "/validatingadmissionpolicybindings", code: http.StatusUnprocessableEntity,
			body: `{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"demo"},"spec":{"validationActions":["Deny"]}}`,
			want: `ValidatingAdmissionPolicyBinding.policy.portcullis.dev "demo" is invalid: spec.policyName: Required value`,
		},
		{
			name: "8 preview of a broken candidate", path: groupPath + "/admissionpreviews", code: http.StatusUnprocessableEntity,
			body: `{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"AdmissionPreview","spec":{"request":{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}},` +
				`"policies":[` + policy(`[{"expression":"object.metadata.name + 1"}]`) + `]}}`,
			want: `AdmissionPreview.policy.portcullis.dev "" is invalid: spec.policies[0].spec.validations[0].expression: Invalid value: "object.metadata.name + 1": must evaluate to bool but got int`,
		},
	}
	for _, test := range posts {
		t.Run(test.name, func(t *testing.T) {
			code, got := s.post(t, test.path, test.body)
			if code != test.code || got != test.want {
				t.Errorf("got code %d and text\n%s\nwant code %d and text\n%s", code, got, test.code, test.want)
			}
		})
	}

	port := takenPort(t)
	unwritable := unwritableDir(t)
	objects := t.TempDir()
	broken := filepath.Join(objects, "limits.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: limits\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	starts := []struct {
		name, dataDir string
		flags         []string
		as            *syscall.Credential
		want          string
	}{
		{
			name: "9 second server on the data dir", dataDir: dataDir, flags: []string{"--secure-port=0"},
			want: fmt.Sprintf("data dir %s is in use by another portcullis-apiserver (pid %d): stop it or choose another --data-dir", dataDir, s.command.Process.Pid),
		},
		{
			name: "10 unwritable data dir", dataDir: unwritable, as: ordinaryUser(),
			want: "data dir " + unwritable + " cannot be written: permission denied: give this user the right to write it or choose another --data-dir",
		},
		{
			name: "11 port taken", dataDir: filepath.Join(t.TempDir(), "data"), flags: []string{"--secure-port=" + port},
			want: "port " + port + " on address 127.0.0.1 is in use by another process: choose another --secure-port, or --secure-port 0 for a free one",
		},
		{
			name: "12 broken file in --objects", dataDir: filepath.Join(t.TempDir(), "data"), flags: []string{"--secure-port=0", "--objects=" + objects},
			want: "--objects: " + broken + ": document 1, line 4: broken YAML: found character that cannot start any token",
		},
	}
	for _, test := range starts {
		t.Run(test.name, func(t *testing.T) {
			got := launchAs(t, test.as, test.dataDir, test.flags...).refusal(t)
			if want := "error: " + test.want + "\n"; got != want {
				t.Errorf("got stderr\n%s\nwant\n%s", got, want)
			}
		})
	}
	if !s.ready(t.Context()) {
		t.Error("the server is no longer ready")
	}
}

// post returns the code of an answer and the message of the status in it.
func (s *server) post(t *testing.T, path, body string) (code int, message string) {
	t.Helper()
	config := s.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(&status); err != nil || status.Kind != "Status" {
		t.Fatalf("POST %s answers %d with what is no Status: %s", path, answer.StatusCode, content)
	}
	return answer.StatusCode, status.Message
}

// refusal waits for a server that ends by a mistake and returns what it says on
// stderr.
func (s *server) refusal(t *testing.T) string {
	t.Helper()
	if code := s.waitExit(t); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	if got := s.stdout.String(); got != "" {
		t.Errorf("got stdout %q, want none", got)
	}
	return s.stderr.String()
}

// takenPort returns a port on which the test itself listens.
func takenPort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// unwritableDir returns a directory that an ordinary user can enter and not write.
func unwritableDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "portcullis-unwritable-") //nolint:usetesting // only its owner can enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "data")
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{parent: 0o755, dir: 0o555} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ordinaryUser is nobody when root runs the test, since root may write everywhere,
// and the user who runs the test otherwise.
func ordinaryUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}
