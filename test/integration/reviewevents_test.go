// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// TestReviewDoorsBeforeAllPoliciesAreRead: nothing is admitted until then, at either
// phase, but what no policy may judge.
func TestReviewDoorsBeforeAllPoliciesAreRead(t *testing.T) {
	a := newAPI(t, harness.WithoutWaiting(), harness.WithConfig(func(c *apiserver.Config) error {
		c.Extra.Hooks["portcullis-follow-policies"] = func(genericapiserver.PostStartHookContext) error { return nil }
		return nil
	}))
	exempt := doorReviews(t)["of our own group"]
	for _, phase := range bothPhases {
		for _, path := range phase.paths() {
			got := a.ask(t, path, demoReview(t))
			if got.code != http.StatusServiceUnavailable || !strings.Contains(string(got.body), "not yet ready to handle request: ") {
				t.Errorf("%s: got %d: %s, want 503 with the reason", path, got.code, got.body)
			}
			if got := a.ask(t, path, exempt); got.code != http.StatusOK || !strings.Contains(string(got.body), `"allowed":true`) {
				t.Errorf("%s: got %d: %s, want an admission of what is exempt", path, got.code, got.body)
			}
		}
	}
}

// TestReviewDoorsAudit: the event of a review has the annotations of the policies, and at
// no level the review.
func TestReviewDoorsAudit(t *testing.T) {
	files := t.TempDir()
	log := filepath.Join(files, "audit.log")
	rules := strings.Replace(auditRules, "{level: Metadata}", "{level: RequestResponse}", 1)
	a := newAPI(t, withAudit(writeFile(t, files, "rules.yaml", rules), log))
	a.createPolicy(t, configMapPolicy("named", "", "no"))
	binding := newBinding("named", "named")
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	a.createBinding(t, binding)
	body := newReview(t, "ConfigMap", "configmaps", "c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test"},"data":{"key":"`+canary+`"}}`)
	waitFor(t, "the policy to be in force", func() bool { return len(a.review(t, body).AuditAnnotations) != 0 })

	const failureKey = "validation.policy.admission.k8s.io/validation_failure"
	for _, path := range []string{validationsPath, mutationsPath} {
		a.ask(t, path, body)
		event := waitForEvent(t, log, path, func(e *auditv1.Event) bool { return e.RequestURI == path })
		if event.Verb != "create" || event.ObjectRef == nil || groupPath+"/"+event.ObjectRef.Resource != path || event.ObjectRef.APIGroup != "policy.portcullis.dev" ||
			event.Level != auditv1.LevelRequestResponse || event.ResponseStatus.Code != http.StatusOK || event.RequestObject != nil || event.ResponseObject != nil {
			t.Errorf("got %+v, want an answered creation without the review", event)
		}
	}
	failed := waitForEvent(t, log, "the denial", func(e *auditv1.Event) bool { return e.RequestURI == validationsPath })
	const failure = `[{"message":"no","policy":"named","binding":"named","expressionIndex":0,"validationActions":["Audit"]}]`
	if got := failed.Annotations[failureKey]; got != failure {
		t.Errorf("%s is\n%s\nwant\n%s", failureKey, got, failure)
	}
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte(canary)) {
		t.Error("what was reviewed is in the audit log")
	}
}
