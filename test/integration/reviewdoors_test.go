// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	validationsPath = groupPath + "/validations"
	mutationsPath   = groupPath + "/mutations"
)

// door is one phase of the chain with its two doors.
type door struct {
	name             string
	direct, resource string
}

func (d door) paths() []string { return []string{d.direct, d.resource} }

var (
	validating = door{"validating", apiserver.ReviewPath, validationsPath}
	mutating   = door{"mutating", apiserver.MutationPath, mutationsPath}
	bothPhases = []door{validating, mutating}
)

// TestReviewDoors asks the same at every door, on one server with the demo policy, one
// that warns and audits ConfigMaps, and one that denies dry runs of Secrets.
func TestReviewDoors(t *testing.T) {
	objects := t.TempDir()
	writeFile(t, objects, "namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: test, labels: {environment: test}}\n")
	var left atomic.Int64
	a := newAPI(t, harness.WithObjects(objects), harness.WithConfig(func(c *apiserver.Config) error {
		for _, answers := range []map[string]http.Handler{c.Extra.Handlers, c.Extra.Posts} {
			for path, next := range answers {
				if path != "/metrics" {
					answers[path] = observeDeadline(next, &left)
				}
			}
		}
		return nil
	}))
	a.storeForDoors(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"Answers", testDoorAnswers},
		{"Refusals", testDoorRefusals},
		{"Timeouts", func(t *testing.T, a *api) { testDoorTimeouts(t, a, &left) }},
		{"TooLate", testDoorTooLate},
		{"Routes", testDoorRoutes},
		{"Discovery", testDoorDiscovery},
		{"Kubectl", testDoorKubectl},
		{"Strangers", testDoorStrangers},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, a) })
	}
}

func (a *api) storeForDoors(t *testing.T) {
	t.Helper()
	noisy := configMapPolicy("noisy", "", "no")
	noisy.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "seen", ValueExpression: "'name ' + object.metadata.name"}}
	a.createPolicy(t, noisy)
	binding := newBinding("noisy", "noisy")
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
	a.createBinding(t, binding)

	dry := configMapPolicy("dry", "", "not even dry")
	dry.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"secrets"}
	dry.Spec.Validations[0].Expression = "!request.dryRun"
	a.createPolicy(t, dry)
	a.createBinding(t, newBinding("dry", "dry"))
	a.storeDemo(t)
}

// doorReviews are reviews that can be judged.
func doorReviews(t *testing.T) map[string][]byte {
	t.Helper()
	secret := newReview(t, "Secret", "secrets", "s", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"test"}}`)
	return map[string][]byte{
		"denied":             demoReview(t),
		"allowed":            newReview(t, "Deployment", "deployments", "nginx", strings.Replace(deployment, `"replicas":6`, `"replicas":5`, 1)),
		"warned and audited": newReview(t, "ConfigMap", "configmaps", "c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test"}}`),
		"in earnest":         secret,
		"dry run":            bytes.Replace(secret, []byte(`"operation"`), []byte(`"dryRun":true,"operation"`), 1),
		"of our own group": bytes.ReplaceAll(demoReview(t), []byte(`"resource":{"group":"apps","version":"v1","resource":"deployments"}`),
			[]byte(`"resource":{"group":"policy.portcullis.dev","version":"v1alpha1","resource":"validatingadmissionpolicies"}`)),
	}
}

func (a *api) ask(t *testing.T, path string, body []byte) response {
	t.Helper()
	return a.do(t, request{method: http.MethodPost, path: path, body: body})
}

func testDoorAnswers(t *testing.T, a *api) {
	warns, refuses := `"warnings":["Validation failed for ValidatingAdmissionPolicy 'noisy' with binding 'noisy': no"]`, "denied request: not even dry"
	want := map[string][]string{
		"denied":             {`"allowed":false`, `failed expression: object.spec.replicas \u003c= 5`, `"code":422`, `"reason":"Invalid"`},
		"allowed":            {`"allowed":true}`},
		"warned and audited": {`"allowed":true`, warns, `"noisy.seen":"name c"`, `"validation.policy.admission.k8s.io.validation_failure":"[{`},
		"in earnest":         {`"allowed":true}`},
		"dry run":            {`"allowed":false`, refuses},
		"of our own group":   {`"allowed":true}`},
	}
	const admitted = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"` + reviewUID + `","allowed":true}}`
	for name, body := range doorReviews(t) {
		t.Run(name, func(t *testing.T) {
			for _, path := range mutating.paths() {
				if got := a.ask(t, path, body); got.code != http.StatusOK || string(got.body) != admitted {
					t.Errorf("%s answers %d: %s, want %s", path, got.code, got.body, admitted)
				}
			}
			direct := a.ask(t, validating.direct, body)
			for _, text := range want[name] {
				if !strings.Contains(string(direct.body), text) {
					t.Errorf("got %d: %s, want %s in it", direct.code, direct.body, text)
				}
			}
			resource := a.ask(t, validating.resource, body)
			if resource.code != direct.code || !bytes.Equal(resource.body, direct.body) || resource.header.Get("Content-Type") != jsonType {
				t.Errorf("the resource answers %d, %v: %s, want what the path does: %d: %s", resource.code, resource.header, resource.body, direct.code, direct.body)
			}
		})
	}
}

// testDoorRefusals sends what cannot be judged: an HTTP error, and no response that
// allows.
func testDoorRefusals(t *testing.T, a *api) {
	tests := []struct {
		name string
		request
		code   int
		reason metav1.StatusReason
		want   string
	}{
		{"no body", request{}, 400, "BadRequest", "not a usable AdmissionReview: not JSON at byte 0"},
		{"no JSON", request{body: []byte("{")}, 400, "BadRequest", "not JSON at byte 1"},
		{"YAML that says so", request{body: []byte("a: b"), contentType: "application/yaml"}, 415, "UnsupportedMediaType", "only application/json is judged"},
		{"protobuf", request{body: demoReview(t), contentType: "application/vnd.kubernetes.protobuf"}, 415, "UnsupportedMediaType", "only application/json is judged"},
		{"another version", request{body: bytes.Replace(demoReview(t), []byte(`io/v1"`), []byte(`io/v1beta1"`), 1)}, 400, "BadRequest", "register the webhook with admissionReviewVersions: [v1]"},
		{"another kind", request{body: encode(t, newPolicy("p"))}, 400, "BadRequest", "only admission.k8s.io/v1 AdmissionReview is judged"},
		{"no request", request{body: []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)}, 400, "BadRequest", "request: required"},
		{"too large", request{body: bytes.Repeat([]byte(" "), apiserver.MaxRequestBodyBytes+1)}, 413, "RequestEntityTooLarge", "larger than 16777216 bytes"},
	}
	for _, test := range tests {
		for _, phase := range bothPhases {
			for _, path := range phase.paths() {
				test.method, test.path = http.MethodPost, path
				got := a.do(t, test.request)
				var status metav1.Status
				got.decode(t, &status)
				if got.code != test.code || status.Reason != test.reason || status.Kind != "Status" || !strings.Contains(status.Message, test.want) {
					t.Errorf("%s at %s: got %d: %s, want %d %s: %s", test.name, path, got.code, got.body, test.code, test.reason, test.want)
				}
			}
		}
	}
}

// testDoorTimeouts: the time that the caller gives is the time of the door.
func testDoorTimeouts(t *testing.T, a *api, left *atomic.Int64) {
	tests := []struct {
		query       string
		code        int
		least, most time.Duration
	}{
		{query: "", code: 200, least: 30 * time.Second, most: time.Minute},
		{query: "?timeout=10s", code: 200, least: 5 * time.Second, most: 10 * time.Second},
		{query: "?timeout=soon", code: 400},
	}
	for _, test := range tests {
		for _, phase := range bothPhases {
			for _, path := range phase.paths() {
				left.Store(0)
				got := a.ask(t, path+test.query, demoReview(t))
				had := time.Duration(left.Load()) * time.Millisecond
				if got.code != test.code || had < test.least || had > test.most {
					t.Errorf("%s%s: got %d with %s left, want %d with %s to %s: %s", path, test.query, got.code, had, test.code, test.least, test.most, got.body)
				}
			}
		}
	}
}

// testDoorTooLate: who gave no time gets no verdict. The generic server answers 504 or, where
// the door was just about to say the same, resets the stream.
func testDoorTooLate(t *testing.T, a *api) {
	for _, phase := range bothPhases {
		for _, path := range phase.paths() {
			post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.Config.Host+path+"?timeout=1ns", bytes.NewReader(demoReview(t)))
			if err != nil {
				t.Fatal(err)
			}
			post.Header.Set("Content-Type", jsonType)
			answer, err := a.http.Do(post)
			if err != nil {
				continue
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusGatewayTimeout || bytes.Contains(body, []byte(`"allowed":`)) {
				t.Errorf("%s: got %d: %s (%v), want 504", path, answer.StatusCode, body, err)
			}
		}
	}
}

// testDoorRoutes asks beside the doors: the answers are those to any resource that can
// only be created, and nothing is judged.
func testDoorRoutes(t *testing.T, a *api) {
	for _, phase := range bothPhases {
		tests := []struct {
			method, path string
			code         int
		}{
			{"GET", phase.direct, 405},
			{"DELETE", phase.direct, 405},
			{"POST", phase.direct + "/", 404},
			{"POST", phase.direct + "/x", 404},
			{"GET", phase.resource, 405},
			{"GET", phase.resource + "?watch=true", 405},
			{"PUT", phase.resource, 405},
			{"PATCH", phase.resource, 405},
			{"DELETE", phase.resource, 405},
			{"GET", phase.resource + "/x", 404},
			{"POST", phase.resource + "/", 404},
			{"POST", phase.resource + "/x", 404},
			{"POST", phase.resource + "/x/status", 404},
			{"POST", strings.Replace(phase.resource, "v1alpha1/", "v1alpha1/namespaces/test/", 1), 404},
		}
		for _, test := range tests {
			got := a.do(t, request{method: test.method, path: test.path, body: demoReview(t)})
			if got.code != test.code || bytes.Contains(got.body, []byte(`"allowed":`)) {
				t.Errorf("%s %s: got %d: %s, want %d", test.method, test.path, got.code, got.body, test.code)
			}
		}
	}
}

func testDoorDiscovery(t *testing.T, a *api) {
	var plain metav1.APIResourceList
	a.do(t, request{method: http.MethodGet, path: groupPath}).decode(t, &plain)
	wanted := map[string]string{"validations": "validation", "mutations": "mutation"}
	for _, resource := range plain.APIResources {
		singular, ok := wanted[resource.Name]
		if !ok {
			continue
		}
		delete(wanted, resource.Name)
		if resource.SingularName != singular || resource.Group != "admission.k8s.io" || resource.Version != "v1" || resource.Kind != "AdmissionReview" ||
			resource.Namespaced || len(resource.ShortNames)+len(resource.Categories) != 0 || strings.Join(resource.Verbs, ",") != "create" {
			t.Errorf("discovery has %+v, want an AdmissionReview that can be created and nothing else", resource)
		}
	}
	if len(wanted) != 0 {
		t.Errorf("not discovered: %v", wanted)
	}
	for _, document := range []string{"/openapi/v2", "/openapi/v3" + groupPath} {
		got := a.do(t, request{method: http.MethodGet, path: document, accept: jsonType})
		if got.code != http.StatusOK || !bytes.Contains(got.body, []byte("/admissionpreviews")) {
			t.Errorf("%s: got %d: %.200s", document, got.code, got.body)
		}
		for _, text := range []string{validationsPath, mutationsPath, "AdmissionReview\""} {
			if bytes.Contains(got.body, []byte(text)) {
				t.Errorf("%s is in %s", text, document)
			}
		}
	}
}

func testDoorKubectl(t *testing.T, a *api) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	home := t.TempDir()
	review := writeFile(t, home, "review.json", string(demoReview(t)))
	for _, test := range []struct{ args, want string }{
		{"create --raw " + validationsPath + " -f " + review, `"allowed":false`},
		{"create --raw " + mutationsPath + "?timeout=5s -f " + review, `"allowed":true}`},
		{"api-resources --api-group=policy.portcullis.dev --verbs=create --no-headers -o name", "validations.policy.portcullis.dev\n"},
		{"explain pvap.spec.failurePolicy", "failurePolicy defines how to handle failures"},
		{"explain admissionpreviews.spec", "KIND:       AdmissionPreview"},
	} {
		command := exec.CommandContext(t.Context(), kubectl, append(strings.Fields(test.args), "--kubeconfig", a.Kubeconfig)...)
		command.Env = append(command.Environ(), "HOME="+home)
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("kubectl %s: %v\n%s\nwant\n%s", test.args, err, out, test.want)
		}
	}
}
