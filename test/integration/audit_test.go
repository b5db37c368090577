// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// auditRules log everything that is asked for by its resource as metadata, and
// paths in full, as far as that goes.
const auditRules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:apiserver"]}
- {level: RequestResponse, nonResourceURLs: ["*"]}
- {level: Metadata}
`

// canary is in the object that is judged and must not be in the audit log.
const canary = "4711-canary"

// auditEvents reads the complete lines of the log.
func auditEvents(t *testing.T, path string) []auditv1.Event {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events []auditv1.Event
	for line := range strings.Lines(string(content)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, event)
	}
	return events
}

// waitForEvent returns the last event that is looked for.
func waitForEvent(t *testing.T, path, what string, is func(*auditv1.Event) bool) *auditv1.Event {
	t.Helper()
	var found *auditv1.Event
	waitFor(t, "the audit event of "+what, func() bool {
		for _, event := range auditEvents(t, path) {
			if is(&event) {
				found = &event
			}
		}
		return found != nil
	})
	return found
}

func withAudit(rules, log string) harness.Option {
	return harness.WithConfig(func(c *apiserver.Config) error {
		options := apiserver.NewAuditOptions()
		options.PolicyFile, options.LogPath = rules, log
		audit, err := apiserver.LoadAudit(options)
		if err != nil {
			return err
		}
		c.SetAudit(audit)
		return nil
	})
}

func TestAudit(t *testing.T) {
	files := t.TempDir()
	log := filepath.Join(files, "audit.log")
	a := newAPI(t, withAudit(writeFile(t, files, "rules.yaml", auditRules), log))

	p := configMapPolicy("named", "", "no")
	p.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "seen", ValueExpression: "'name ' + object.metadata.name"}}
	a.createPolicy(t, p)
	b := newBinding("named", "named")
	b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	a.createBinding(t, b)

	write := waitForEvent(t, log, "the write", func(e *auditv1.Event) bool {
		return e.Verb == "create" && e.ObjectRef != nil && e.ObjectRef.Resource == "validatingadmissionpolicies"
	})
	if write.User.Username != "portcullis-admin" || write.ObjectRef.Name != "named" || write.ResponseStatus.Code != http.StatusCreated || write.RequestObject != nil {
		t.Errorf("got %+v, want the creation of the policy by the administrator without the object", write)
	}

	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test"},"data":{"key":"` + canary + `"}}`
	body := newReview(t, "ConfigMap", "configmaps", "c", object)
	waitFor(t, "the policy to be in force", func() bool { return len(a.review(t, body).AuditAnnotations) == 2 })
	const failureKey = "validation.policy.admission.k8s.io/validation_failure"
	review := waitForEvent(t, log, "the review", func(e *auditv1.Event) bool {
		return e.RequestURI == apiserver.ReviewPath && e.Annotations[failureKey] != ""
	})
	if got, want := review.Annotations["named/seen"], "name c"; got != want {
		t.Errorf("the annotation of the policy is %q, want %q", got, want)
	}
	const failure = `[{"message":"no","policy":"named","binding":"named","expressionIndex":0,"validationActions":["Audit"]}]`
	if got := review.Annotations[failureKey]; got != failure {
		t.Errorf("%s is\n%s\nwant\n%s", failureKey, got, failure)
	}
	if review.Verb != "post" || review.Level != auditv1.LevelRequestResponse || review.ResponseStatus.Code != http.StatusOK {
		t.Errorf("got %+v, want an answered POST at the level RequestResponse", review)
	}

	spec := configMapPreview()
	spec.Request.Object = raw(object)
	if annotations := a.preview(t, spec).AuditAnnotations; len(annotations) != 2 {
		t.Errorf("the preview shows the annotations %v, want two", annotations)
	}
	preview := waitForEvent(t, log, "the preview", func(e *auditv1.Event) bool {
		return e.ObjectRef != nil && e.ObjectRef.Resource == "admissionpreviews"
	})
	for key := range preview.Annotations {
		if !strings.HasPrefix(key, "authorization.k8s.io/") {
			t.Errorf("the event of a preview, which has no effect, has the annotation %s", key)
		}
	}

	a.do(t, request{method: http.MethodPost, path: apiserver.ReviewPath, body: body, client: a.stranger(t)})
	refused := waitForEvent(t, log, "the refused review", func(e *auditv1.Event) bool {
		return e.RequestURI == apiserver.ReviewPath && e.User.Username == "system:anonymous"
	})
	if refused.ResponseStatus.Code != http.StatusForbidden || refused.Annotations[failureKey] != "" {
		t.Errorf("got %+v, want a refusal that no policy has heard of", refused)
	}

	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), canary) {
		t.Error("what was reviewed and previewed is in the audit log")
	}
}
