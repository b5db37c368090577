// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/bootstrap"
)

const policyKindName = "ValidatingAdmissionPolicy"

func policyID(name string) policy.ID { return policy.ID{Kind: policyKindName, Name: name} }

// storedPolicies is what a catalog reports.
type storedPolicies map[policy.ID]catalog.Report

func (s storedPolicies) report(id policy.ID) (catalog.Report, bool) {
	report, ok := s[id]
	return report, ok
}

func newTestMetrics(names ...string) (*Registry, storedPolicies) {
	stored := storedPolicies{}
	for _, name := range names {
		stored[policyID(name)] = catalog.Report{}
	}
	return New(sourcesOf(stored)), stored
}

// sourcesOf are those of a server that is in a good state.
func sourcesOf(stored storedPolicies) Sources {
	return Sources{
		Version:  "v0.0.0",
		Dialects: dialect.All(),
		Report:   stored.report,
		Complete: func() bool { return true },
		Age:      func(time.Time) (time.Duration, bool) { return 0, true },
		Objects:  func() offline.Status { return offline.Status{} },
		Clock:    clock.RealClock{},
	}
}

// samples returns the value of each series by name and labels, a histogram as its
// count.
func samples(t *testing.T, m *Registry) map[string]float64 {
	t.Helper()
	families, err := m.kube.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			values[family.GetName()+labelsOf(metric)] = valueOf(metric)
		}
	}
	return values
}

func labelsOf(metric *dto.Metric) string {
	var labels []string
	for _, label := range metric.GetLabel() {
		labels = append(labels, label.GetName()+"="+label.GetValue())
	}
	return "{" + strings.Join(labels, ",") + "}"
}

func valueOf(metric *dto.Metric) float64 {
	switch {
	case metric.GetCounter() != nil:
		return metric.GetCounter().GetValue()
	case metric.GetGauge() != nil:
		return metric.GetGauge().GetValue()
	}
	return float64(metric.GetHistogram().GetSampleCount())
}

// counted returns what is not zero of the series about the policy p, with the
// labels that differ.
func counted(t *testing.T, m *Registry) string {
	t.Helper()
	var got []string
	for _, name := range []string{
		"evaluations_total{dialect=cel,kind=ValidatingAdmissionPolicy,outcome=%s,policy=p}", "errors_total{dialect=cel,kind=ValidatingAdmissionPolicy,policy=p}",
		"fail_open_total{dialect=cel,kind=ValidatingAdmissionPolicy,policy=p}", "evaluation_duration_seconds{dialect=cel}",
	} {
		for i, outcome := range outcomeLabels() {
			key := "portcullis_policy_" + name
			short := strings.SplitN(name, "{", 2)[0]
			if strings.Contains(name, "%s") {
				key, short = fmt.Sprintf(key, outcome), outcome
			} else if i > 0 {
				continue
			}
			if value := samples(t, m)[key]; value != 0 {
				got = append(got, fmt.Sprintf("%s=%v", short, value))
			}
		}
	}
	return strings.Join(got, " ")
}

// TestJudgedCountsEvaluations folds findings and looks at what is counted.
func TestJudgedCountsEvaluations(t *testing.T) {
	first, second := &verdict.ParamRef{Name: "same"}, &verdict.ParamRef{Name: "same"}
	type step struct {
		binding string
		param   *verdict.ParamRef
		kind    verdict.Kind
		onError verdict.FailurePolicy
		action  verdict.Action
	}
	const open = verdict.Ignore
	tests := []struct {
		name  string
		steps []step
		want  string
	}{
		{name: "nothing", want: ""},
		{name: "one rule", steps: []step{{kind: verdict.Pass}}, want: "allowed=1 evaluation_duration_seconds=1"},
		{name: "rules of one evaluation", steps: []step{{kind: verdict.Pass}, {kind: verdict.Fail}, {kind: verdict.Pass}}, want: "denied=1 evaluation_duration_seconds=1"},
		{name: "bindings", steps: []step{{binding: "a", kind: verdict.Pass}, {binding: "b", kind: verdict.Fail}}, want: "allowed=1 denied=1 evaluation_duration_seconds=2"},
		{name: "params", steps: []step{{param: first, kind: verdict.Pass}, {param: first, kind: verdict.Pass}, {param: second, kind: verdict.Pass}}, want: "allowed=2 evaluation_duration_seconds=2"},
		{name: "skipped", steps: []step{{kind: verdict.Skip}}, want: "skipped=1 evaluation_duration_seconds=1"},
		{name: "mutated, after a rule that is skipped", steps: []step{{kind: verdict.Skip}, {kind: verdict.Mutated}}, want: "mutated=1 evaluation_duration_seconds=1"},
		{name: "a match condition is false", steps: []step{{kind: verdict.NotMatched}}, want: "notmatched=1 evaluation_duration_seconds=1"},
		{name: "annotations alone", steps: []step{{kind: verdict.Annotation}}, want: ""},
		{name: "warned is graver than audited", steps: []step{{kind: verdict.Fail, action: verdict.Audit}, {kind: verdict.Fail, action: verdict.Warn}, {kind: verdict.Pass}}, want: "warned=1 evaluation_duration_seconds=1"},
		{name: "audited", steps: []step{{kind: verdict.Fail, action: verdict.Audit}}, want: "audited=1 evaluation_duration_seconds=1"},
		{name: "an error is graver than a warning", steps: []step{{kind: verdict.Error}, {kind: verdict.Fail, action: verdict.Warn}}, want: "error=1 errors_total=1 evaluation_duration_seconds=1"},
		{name: "two errors are one evaluation", steps: []step{{kind: verdict.Error, onError: open}, {kind: verdict.Error, onError: open}}, want: "error=1 errors_total=1 fail_open_total=1 evaluation_duration_seconds=1"},
		{name: "misconfigured", steps: []step{{kind: verdict.Misconfigured}}, want: "error=1 errors_total=1 evaluation_duration_seconds=1"},
		{name: "misconfigured, ignored", steps: []step{{kind: verdict.Misconfigured, onError: open}}, want: "error=1 errors_total=1 fail_open_total=1 evaluation_duration_seconds=1"},
		{name: "undecided", steps: []step{{kind: verdict.Undecided}}, want: "error=1 errors_total=1 evaluation_duration_seconds=1"},
		{name: "denied is graver than an error", steps: []step{{kind: verdict.Error, onError: open}, {kind: verdict.Fail}}, want: "denied=1 errors_total=1 fail_open_total=1 evaluation_duration_seconds=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, _ := newTestMetrics("p")
			var steps []verdict.Step
			for _, s := range test.steps {
				steps = append(steps, verdict.Step{
					Origin: verdict.Origin{
						Policy: policyID("p"), Binding: s.binding, Param: s.param, OnError: s.onError,
						Actions: []verdict.Action{s.action},
					},
					Took:    time.Millisecond,
					Finding: verdict.Finding{Kind: s.kind},
				})
			}
			v := verdict.Fold(steps)
			m.Judged(&v)
			if got := counted(t, m); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestJudgedKnowsNoOutcome(t *testing.T) {
	m, _ := newTestMetrics("p")
	m.Judged(&verdict.Verdict{Evaluations: []verdict.Evaluation{{Origin: &verdict.Origin{Policy: policyID("p")}, Finding: &verdict.Finding{}, Outcome: 255}}})
	if got, want := counted(t, m), "error=1 errors_total=1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFailedReasons(t *testing.T) {
	m, _ := newTestMetrics()
	for _, err := range []error{
		chain.ErrNotReady, fmt.Errorf("plugin: %w", chain.ErrNoTimeLeft), verdict.ErrTooManyEvaluations, errors.New("unheard of"), nil,
	} {
		m.Failed(err)
	}
	got := samples(t, m)
	for reason, want := range map[string]float64{"not_ready": 1, "no_time_left": 1, "too_many_evaluations": 1, "other": 2} {
		if value := got["portcullis_review_failures_total{reason="+reason+"}"]; value != want {
			t.Errorf("%s: got %v, want %v", reason, value, want)
		}
	}
}

// TestUnjudged: what was not judged is counted, and whether that is so is shown where
// it can be.
func TestUnjudged(t *testing.T) {
	open := false
	sources := sourcesOf(storedPolicies{})
	if _, ok := samples(t, New(sources))["portcullis_break_glass_open{}"]; ok {
		t.Error("it is shown where nobody can break the glass")
	}
	sources.Unjudged = func() bool { return open }
	m := New(sources)
	for _, want := range []float64{0, 1, 0} {
		open = want == 1
		if got := samples(t, m)["portcullis_break_glass_open{}"]; got != want {
			t.Errorf("open: got %v, want %v", got, want)
		}
	}
	m.Unjudged()
	if got := samples(t, m)["portcullis_reviews_unjudged_total{}"]; got != 1 {
		t.Errorf("got %v reviews that were not judged, want 1", got)
	}
}

// TestSeriesFollowThePolicies: they are there from the beginning and end with the
// policy; what is judged late does not bring them back.
func TestSeriesFollowThePolicies(t *testing.T) {
	m, stored := newTestMetrics("p", "q")
	m.Changed(policyID("p"))
	m.Changed(policyID("q"))
	const series = "portcullis_policy_errors_total{dialect=cel,kind=ValidatingAdmissionPolicy,policy=p}"
	if value, ok := samples(t, m)[series]; !ok || value != 0 {
		t.Errorf("%s is %v, %v: want 0 before anything is judged", series, value, ok)
	}
	stored[policyID("q")] = catalog.Report{Faults: field.ErrorList{field.Required(field.NewPath("spec"), "")}}
	m.Changed(policyID("q"))
	if got, want := m.count()[policyKindName], (policyCount{compiled: 1, faulty: 1}); got != want {
		t.Errorf("count: got %+v, want %+v", got, want)
	}

	before := len(samples(t, m))
	delete(stored, policyID("p"))
	m.Changed(policyID("p"))
	v := verdict.Fold([]verdict.Step{{Origin: verdict.Origin{Policy: policyID("p")}, Finding: verdict.Finding{Kind: verdict.Fail}}})
	m.Judged(&v)
	for name := range samples(t, m) {
		if strings.Contains(name, "policy=p") {
			t.Errorf("%s is there after the policy was deleted", name)
		}
	}
	if got, want := len(samples(t, m)), before-10; got != want {
		t.Errorf("%d series after the deletion, want %d", got, want)
	}

	stored[policyID("p")] = catalog.Report{}
	m.Judged(&v) // in force, but not notified yet
	if got := samples(t, m)["portcullis_policy_evaluations_total{dialect=cel,kind=ValidatingAdmissionPolicy,outcome=denied,policy=p}"]; got != 1 {
		t.Errorf("a policy that was judged before its notification has %v denials, want 1", got)
	}
	delete(stored, policyID("p"))
	delete(stored, policyID("q"))
	m.Changed(policyID("p"))
	m.Changed(policyID("q"))
	if got, ok := m.count()[policyKindName]; !ok || got != (policyCount{}) {
		t.Errorf("count: got %+v, %v: want zeros", got, ok)
	}
}

// TestBindingsHaveNoSeries: their changes settle their writes, and no more.
func TestBindingsHaveNoSeries(t *testing.T) {
	m, stored := newTestMetrics()
	binding := policy.ID{Kind: policyKindName + "Binding", Name: "b"}
	m.writes.acknowledged(binding.Kind, &policyapi.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "1", Generation: 1}}, false)
	before := len(samples(t, m))
	stored[binding] = catalog.Report{UID: "1", Generation: 1, Binding: true}
	m.Changed(binding)
	if got := len(samples(t, m)); got != before || len(m.count()) != 0 {
		t.Errorf("%d series after a change of a binding, want %d", got, before)
	}
	if m.writes.count != 0 {
		t.Errorf("%d writes wait, want none", m.writes.count)
	}
}

func TestPolicyLabel(t *testing.T) {
	for id, want := range map[policy.ID]string{
		{Kind: "K", Name: "a"}:                      "a",
		{Kind: "K", Namespace: "ns", Name: "a"}:     "ns/a",
		{Kind: "K", Name: "written past\xff\xfeus"}: "written past\uFFFDus",
	} {
		if got := policyLabel(id); got != want {
			t.Errorf("%+v: got %q, want %q", id, got, want)
		}
	}
	m, stored := newTestMetrics()
	id := policyID("\xff")
	stored[id] = catalog.Report{}
	m.Changed(id) // must not panic
}

// fixedJudge answers with what it holds.
type fixedJudge struct {
	answer verdict.Verdict
	err    error
}

func (j fixedJudge) Run(context.Context, *request.Request, cluster.View) (verdict.Verdict, error) {
	return j.answer, j.err
}

func TestReviewsAreTimedFromTheirArrival(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for label, judge := range map[string]fixedJudge{
		verdictAllowed: {answer: verdict.Allow()},
		verdictDenied:  {},
		verdictError:   {answer: verdict.Allow(), err: chain.ErrNotReady},
	} {
		sources := sourcesOf(nil)
		sources.Clock = clocktesting.NewFakePassiveClock(now)
		m := New(sources)
		ctx := genericapirequest.WithReceivedTimestamp(t.Context(), now.Add(-7*time.Second))
		answer, err := m.TimeReviews(judge).Run(ctx, nil, nil)
		if answer.Allowed != judge.answer.Allowed || !errors.Is(err, judge.err) {
			t.Errorf("%s: got %+v and %v, want those of the judge", label, answer, err)
		}
		var metric dto.Metric
		histogram, err := m.reviewDuration.GetMetricWithLabelValues(label)
		if err != nil {
			t.Fatal(err)
		}
		if err := histogram.(interface{ Write(*dto.Metric) error }).Write(&metric); err != nil {
			t.Fatal(err)
		}
		if got := metric.GetHistogram(); got.GetSampleCount() != 1 || got.GetSampleSum() != 7 {
			t.Errorf("%s: got %v samples that sum up to %v, want 1 of 7", label, got.GetSampleCount(), got.GetSampleSum())
		}
	}
}

func TestStateMetrics(t *testing.T) {
	now := time.Unix(1_900_000_000, 500_000_000)
	status := offline.Status{Objects: 3, LoadedAt: now, Err: errors.New("broken"), Reloads: 4, Failures: 5}
	known, complete := true, true
	sources := sourcesOf(storedPolicies{policyID("p"): {}})
	sources.Clock = clocktesting.NewFakePassiveClock(now)
	sources.Complete = func() bool { return complete }
	sources.Age = func(at time.Time) (time.Duration, bool) { return now.Add(1500 * time.Millisecond).Sub(at), known }
	sources.Objects = func() offline.Status { return status }
	heard := now.Add(-2 * time.Second)
	sources.HeardAt = func() time.Time { return heard }
	m := New(sources)
	m.Changed(policyID("p"))
	check := func(want map[string]float64) {
		t.Helper()
		got := samples(t, m)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: got %v, want %v", name, got[name], value)
			}
		}
	}
	check(map[string]float64{
		"portcullis_policies{compiled=true,kind=ValidatingAdmissionPolicy}": 1,
		"portcullis_snapshot_synced{}":                                      1,
		"portcullis_snapshot_age_seconds{}":                                 1.5,
		"portcullis_cluster_unheard_seconds{}":                              2,
		"portcullis_objects{}":                                              3,
		"portcullis_objects_last_reload_success{}":                          0,
		"portcullis_objects_last_reload_timestamp_seconds{}":                1_900_000_000.5,
		"portcullis_objects_reloads_total{result=success}":                  4,
		"portcullis_objects_reloads_total{result=failure}":                  5,
	})
	known, complete, status.Err, heard = false, false, nil, time.Time{}
	check(map[string]float64{"portcullis_snapshot_synced{}": 0, "portcullis_objects_last_reload_success{}": 1})
	for _, name := range []string{"portcullis_snapshot_age_seconds{}", "portcullis_cluster_unheard_seconds{}"} {
		if _, ok := samples(t, m)[name]; ok {
			t.Errorf("%s is shown although nobody knows it", name)
		}
	}
}

// TestBootstrapState: what became of the bootstrap policies is shown where there are
// any.
func TestBootstrapState(t *testing.T) {
	m, _ := newTestMetrics("p")
	for name := range samples(t, m) {
		if strings.HasPrefix(name, "portcullis_bootstrap") {
			t.Errorf("without bootstrap policies there is %s", name)
		}
	}
	sources := sourcesOf(storedPolicies{})
	sources.Bootstrap = func() bootstrap.Status {
		return bootstrap.Status{Objects: 3, Hash: "sha256:1", LoadedAt: time.Unix(1_900_000_000, 5e8), Err: errors.New("bad"), Reloads: 4, Failures: 5}
	}
	m = New(sources)
	got := samples(t, m)
	for name, want := range map[string]float64{
		"portcullis_bootstrap_objects{}":                       3,
		"portcullis_bootstrap_info{hash=sha256:1}":             1,
		"portcullis_bootstrap_last_reload_success{}":           0,
		"portcullis_bootstrap_last_reload_timestamp_seconds{}": 1_900_000_000.5,
		"portcullis_bootstrap_reloads_total{result=success}":   4,
		"portcullis_bootstrap_reloads_total{result=failure}":   5,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}

// TestMetricsFollowTheConventions checks all metrics with the linter of
// Prometheus.
func TestMetricsFollowTheConventions(t *testing.T) {
	sources := sourcesOf(storedPolicies{policyID("p"): {}})
	sources.Bootstrap = func() bootstrap.Status { return bootstrap.Status{} }
	sources.HeardAt = time.Now
	m := New(sources)
	m.Changed(policyID("p"))
	families, err := m.kube.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(families), 22; got != want {
		t.Errorf("%d metrics, want %d", got, want)
	}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "portcullis_") {
			t.Errorf("%s does not begin with our prefix", family.GetName())
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func TestMetricsHandler(t *testing.T) {
	m, _ := newTestMetrics("p")
	m.Changed(policyID("p"))
	tests := []struct {
		method string
		code   int
		want   []string
	}{
		{http.MethodGet, http.StatusOK, []string{"portcullis_build_info{", "portcullis_policy_fail_open_total{dialect=\"cel\",kind=\"ValidatingAdmissionPolicy\",policy=\"p\"} 0", "go_goroutines"}},
		{http.MethodDelete, http.StatusMethodNotAllowed, []string{"cannot be reset"}},
	}
	for _, test := range tests {
		recorder := httptest.NewRecorder()
		m.Handler().ServeHTTP(recorder, httptest.NewRequest(test.method, "/metrics", nil))
		if recorder.Code != test.code {
			t.Errorf("%s: got code %d, want %d", test.method, recorder.Code, test.code)
		}
		for _, want := range test.want {
			if !strings.Contains(recorder.Body.String(), want) {
				t.Errorf("%s: the answer has no %s", test.method, want)
			}
		}
	}
}

// tenPolicies is a verdict of ten policies with two rules each.
func tenPolicies() (*Registry, *verdict.Verdict) {
	var names []string
	var steps []verdict.Step
	for i := range 10 {
		name := fmt.Sprintf("policy-%d.example.com", i)
		names = append(names, name)
		for range 2 {
			steps = append(steps, verdict.Step{Origin: verdict.Origin{Policy: policyID(name), Binding: name + "-binding"}, Took: 30 * time.Microsecond, Finding: verdict.Finding{Kind: verdict.Pass}})
		}
	}
	m, _ := newTestMetrics(names...)
	v := verdict.Fold(steps)
	m.Judged(&v)
	return m, &v
}

func TestJudgedAllocatesNothing(t *testing.T) {
	m, v := tenPolicies()
	judge := m.TimeReviews(fixedJudge{})
	ctx := genericapirequest.WithReceivedTimestamp(t.Context(), time.Now())
	if got := testing.AllocsPerRun(100, func() { m.Judged(v); _, _ = judge.Run(ctx, nil, nil) }); got != 0 {
		t.Errorf("%v allocations for each review, want none", got)
	}
}

func BenchmarkJudged(b *testing.B) {
	m, v := tenPolicies()
	b.ReportAllocs()
	for b.Loop() {
		m.Judged(v)
	}
}

// BenchmarkScrape reads the metrics of a server with a thousand policies.
func BenchmarkScrape(b *testing.B) {
	var names []string
	for i := range 1_000 {
		names = append(names, fmt.Sprint("policy-", i))
	}
	m, stored := newTestMetrics(names...)
	for id := range stored {
		m.Changed(id)
	}
	handler := m.Handler()
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	}
}
