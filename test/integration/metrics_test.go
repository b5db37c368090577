// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// scrape returns what the server shows as a scraper would see it: the value of
// each series by name and labels.
func (a *api) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	answer := a.do(t, request{method: http.MethodGet, path: "/metrics"})
	if answer.code != http.StatusOK {
		t.Fatalf("GET /metrics: %d: %s", answer.code, answer.body)
	}
	values := map[string]float64{}
	types := map[string]bool{}
	for line := range strings.Lines(string(answer.body)) {
		line = strings.TrimSpace(line)
		if declared, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if types[declared] {
				t.Errorf("%s is declared twice", declared)
			}
			types[declared] = true
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		values[line[:end]] = value
	}
	return values
}

// aboutPolicy names the series about a stored policy.
func aboutPolicy(metric, name string) string {
	return fmt.Sprintf(`portcullis_policy_%s{dialect="cel",kind="ValidatingAdmissionPolicy",policy=%q}`, metric, name)
}

func evaluationsOf(name, outcome string) string {
	return fmt.Sprintf(`portcullis_policy_evaluations_total{dialect="cel",kind="ValidatingAdmissionPolicy",outcome=%q,policy=%q}`, outcome, name)
}

// storeObserved stores policies of ConfigMaps, one for each outcome, and waits with
// previews, which nothing counts, until all are in force.
func (a *api) storeObserved(t *testing.T) []string {
	t.Helper()
	change := map[string]func(*v1alpha1.ValidatingAdmissionPolicy){
		"allowed": func(p *v1alpha1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "true" },
		"denied":  func(*v1alpha1.ValidatingAdmissionPolicy) {},
		"warned":  func(*v1alpha1.ValidatingAdmissionPolicy) {},
		"audited": func(*v1alpha1.ValidatingAdmissionPolicy) {},
		"conditioned": func(p *v1alpha1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
		},
		"closed": func(p *v1alpha1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "object.nothing > 1" },
		"open": func(p *v1alpha1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].Expression = "object.nothing > 1"
			ignore := admissionregistrationv1.Ignore
			p.Spec.FailurePolicy = &ignore
		},
	}
	actions := map[string]admissionregistrationv1.ValidationAction{"warned": admissionregistrationv1.Warn, "audited": admissionregistrationv1.Audit}
	names := make([]string, 0, len(change))
	for name, set := range change {
		names = append(names, name)
		p := configMapPolicy(name, "", "no")
		set(p)
		a.createPolicy(t, p)
		b := newBinding(name, name)
		if action, ok := actions[name]; ok {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{action}
		}
		a.createBinding(t, b)
	}
	waitFor(t, "all policies to be in force", func() bool {
		judged := map[string]bool{}
		for _, evaluation := range a.preview(t, configMapPreview()).Evaluations {
			judged[evaluation.Policy.Name] = evaluation.Outcome != "NotMatched" || strings.HasPrefix(evaluation.Rule, "matchConditions")
		}
		for _, name := range names {
			if !judged[name] {
				return false
			}
		}
		return true
	})
	return names
}

func configMapPreview() v1alpha1.AdmissionPreviewSpec {
	return v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{
		Object: raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test"}}`),
	}}
}

func TestMetrics(t *testing.T) {
	objects := t.TempDir()
	writeFile(t, objects, "namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: test}\n")
	a := newAPI(t, harness.WithObjects(objects))

	names := a.storeObserved(t)
	waitFor(t, "the writes to be told of", func() bool {
		values := a.scrape(t)
		_, known := values["portcullis_snapshot_age_seconds"]
		return known && values["portcullis_policy_propagation_seconds_count"] == float64(2*len(names))
	})
	before := a.scrape(t)
	for _, name := range names {
		if value, ok := before[aboutPolicy("fail_open_total", name)]; !ok || value != 0 {
			t.Errorf("before any review, the policy %q has %v, %v of fail_open_total; want 0", name, value, ok)
		}
	}
	const reviews = 3
	for range reviews {
		a.review(t, configMapReview(t, "c"))
	}
	a.preview(t, configMapPreview())
	a.review(t, newReview(t, "Deployment", "deployments", "nginx", deployment)) // matched by none

	after := a.scrape(t)
	want := map[string]float64{
		aboutPolicy("errors_total", "closed"):    reviews,
		aboutPolicy("errors_total", "open"):      reviews,
		aboutPolicy("errors_total", "denied"):    0,
		aboutPolicy("fail_open_total", "closed"): 0,
		aboutPolicy("fail_open_total", "open"):   reviews,

		`portcullis_policy_evaluation_duration_seconds_count{dialect="cel"}`: float64(reviews * len(names)),
		`portcullis_review_duration_seconds_count{verdict="denied"}`:         reviews,
		`portcullis_review_duration_seconds_count{verdict="allowed"}`:        1,
		`portcullis_review_duration_seconds_count{verdict="error"}`:          0,
		`portcullis_review_failures_total{reason="no_time_left"}`:            0,

		`portcullis_policies{compiled="true",kind="ValidatingAdmissionPolicy"}`:  float64(len(names)),
		`portcullis_policies{compiled="false",kind="ValidatingAdmissionPolicy"}`: 0,

		"portcullis_snapshot_synced":                         1,
		"portcullis_objects":                                 1,
		"portcullis_objects_last_reload_success":             1,
		`portcullis_objects_reloads_total{result="success"}`: 0,
		`portcullis_objects_reloads_total{result="failure"}`: 0,
	}
	for _, name := range names {
		for _, outcome := range []string{"allowed", "denied", "warned", "audited", "notmatched", "skipped", "error"} {
			want[evaluationsOf(name, outcome)] = 0
		}
	}
	for name, outcome := range map[string]string{
		"allowed": "allowed", "denied": "denied", "warned": "warned", "audited": "audited", "conditioned": "notmatched", "closed": "error", "open": "error",
	} {
		want[evaluationsOf(name, outcome)] = reviews
	}
	for series, value := range want {
		if got, ok := after[series]; !ok || got != value {
			t.Errorf("%s is %v, %v; want %v", series, got, ok, value)
		}
	}
	for _, generic := range []string{"apiserver_request_total{", "etcd_request_duration_seconds_count{", "workqueue_adds_total{", "go_goroutines", "portcullis_build_info{"} {
		if !hasSeries(after, generic) {
			t.Errorf("there is no series %s", generic)
		}
	}

	testMetricsOfDeletedPolicy(t, a)
	testMetricsAccess(t, a)
}

func hasSeries(values map[string]float64, prefix string) bool {
	for series := range values {
		if strings.HasPrefix(series, prefix) {
			return true
		}
	}
	return false
}

func testMetricsOfDeletedPolicy(t *testing.T, a *api) {
	if err := a.policies().Delete(t.Context(), "denied", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the series of a deleted policy to end", func() bool {
		for series := range a.scrape(t) {
			if strings.Contains(series, `policy="denied"`) {
				return false
			}
		}
		return true
	})
	if _, ok := a.scrape(t)[aboutPolicy("errors_total", "closed")]; !ok {
		t.Error("the series of another policy have ended too")
	}
}

func testMetricsAccess(t *testing.T, a *api) {
	if got := a.do(t, request{method: http.MethodGet, path: "/metrics", client: a.stranger(t)}); got.code != http.StatusForbidden {
		t.Errorf("GET /metrics by anonymous: got %d, want 403: %s", got.code, got.body)
	}
	if got := a.do(t, request{method: http.MethodDelete, path: "/metrics"}); got.code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE /metrics: got %d, want 405: %s", got.code, got.body)
	}
	if got := a.do(t, request{method: http.MethodGet, path: "/metrics/slis"}); got.code != http.StatusOK {
		t.Errorf("GET /metrics/slis: got %d, want 200: %s", got.code, got.body)
	}
}

// TestMetricsBeforeAllPoliciesAreRead: what is refused for that is counted.
func TestMetricsBeforeAllPoliciesAreRead(t *testing.T) {
	a := newAPI(t, harness.WithoutWaiting(), harness.WithConfig(func(c *apiserver.Config) error {
		const hook = "portcullis-follow-policies"
		if c.Extra.Hooks[hook] == nil {
			t.Errorf("there is no hook %q", hook)
		}
		c.Extra.Hooks[hook] = func(genericapiserver.PostStartHookContext) error { return nil }
		return nil
	}))
	if got := a.do(t, request{method: http.MethodPost, path: apiserver.ReviewPath, body: configMapReview(t, "c")}); got.code != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503: %s", got.code, got.body)
	}
	values := a.scrape(t)
	for series, want := range map[string]float64{
		`portcullis_review_failures_total{reason="not_ready"}`:      1,
		`portcullis_review_failures_total{reason="other"}`:          0,
		`portcullis_review_duration_seconds_count{verdict="error"}`: 1,
		"portcullis_snapshot_synced":                                0,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", series, got, ok, want)
		}
	}
	if hasSeries(values, "portcullis_snapshot_age_seconds") {
		t.Error("an age is shown that nobody knows")
	}
}
