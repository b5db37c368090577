// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

const (
	metricsPath = "/metrics"
	// metricsPrefix begins the name of every metric of ours.
	metricsPrefix = "portcullis"
)

var _ plugin.Observer = (*serverMetrics)(nil)

// serverMetrics are the metrics of one server, in a registry of its own. They
// hear of what is judged and never have a part in it. Those about one policy
// begin when it comes into force and end when it is deleted: their number is
// bounded by that of the stored policies. They are safe for concurrent use.
type serverMetrics struct {
	registry basemetrics.KubeRegistry
	dialects map[string]string // by kind
	stored   func(policy.ID) (catalog.Report, bool)
	clock    clock.PassiveClock

	evaluations        *basemetrics.CounterVec
	failures           *basemetrics.CounterVec
	failOpen           *basemetrics.CounterVec
	evaluationDuration *basemetrics.HistogramVec
	reviewDuration     *basemetrics.HistogramVec
	reviewFailures     *basemetrics.CounterVec
	propagation        *basemetrics.Histogram

	mu       sync.RWMutex
	policies map[policy.ID]*policySeries
	kinds    map[string]bool // of the policies that are or were there
}

// newServerMetrics returns the metrics of a server with the given dialects, whose
// stored policies are those that stored reports.
func newServerMetrics(dialects []policy.Dialect, stored func(policy.ID) (catalog.Report, bool)) *serverMetrics {
	m := &serverMetrics{
		registry: basemetrics.NewKubeRegistry(),
		dialects: map[string]string{},
		stored:   stored,
		clock:    clock.RealClock{},
		policies: map[policy.ID]*policySeries{},
		kinds:    map[string]bool{},
	}
	for _, dialect := range dialects {
		for _, kind := range dialect.Kinds() {
			m.dialects[kind] = dialect.Name()
		}
	}
	m.define()
	m.registry.MustRegister(m.evaluations, m.failures, m.failOpen, m.evaluationDuration, m.reviewDuration, m.reviewFailures, m.propagation)
	m.start(dialects)
	return m
}

func (m *serverMetrics) define() {
	perPolicy := []string{"dialect", "kind", "policy"}
	m.evaluations = counters("policy_evaluations_total",
		"Number of times that a policy judged a review, through one binding and with one param. The outcome is the gravest of what its rules led to.",
		append(perPolicy, "outcome")...)
	m.failures = counters("policy_errors_total",
		"Number of evaluations in which a policy, its binding or its param could not be used or judged, whatever the failurePolicy.", perPolicy...)
	m.failOpen = counters("policy_fail_open_total",
		"Number of evaluations in which something could not be used or judged and the failurePolicy Ignore let that pass.", perPolicy...)
	m.evaluationDuration = histograms("policy_evaluation_duration_seconds",
		"Time that a policy needed to judge a review, through one binding and with one param.", evaluationBuckets(), "dialect")
	m.reviewDuration = histograms("review_duration_seconds",
		"Time from the arrival of a review to its verdict: allowed, denied, or error when there is none.", reviewBuckets(), "verdict")
	m.reviewFailures = counters("review_failures_total",
		"Number of reviews that could not be judged, so that the caller applied the failurePolicy of its webhook registration.", "reason")
	m.propagation = basemetrics.NewHistogram(histogramOpts("policy_propagation_seconds",
		"Time from the acknowledgement of a write of a policy or binding by this server until what was written, or a later state, was in force in it.", propagationBuckets()))
}

// start makes the series that no policy begins: a rate over them is known from
// the first event on.
func (m *serverMetrics) start(dialects []policy.Dialect) {
	for _, dialect := range dialects {
		m.evaluationDuration.WithLabelValues(dialect.Name())
	}
	for _, verdict := range []string{verdictAllowed, verdictDenied, verdictError} {
		m.reviewDuration.WithLabelValues(verdict)
	}
	for _, reason := range []string{reasonNotReady, reasonNoTimeLeft, reasonTooManyEvaluations, reasonOther} {
		m.reviewFailures.WithLabelValues(reason)
	}
	build := basemetrics.NewGaugeVec(&basemetrics.GaugeOpts{
		Namespace: metricsPrefix, Name: "build_info", Help: "What this server was built from; the value is always 1.", StabilityLevel: basemetrics.ALPHA,
	}, []string{"version", "goversion", "platform"})
	m.registry.MustRegister(build)
	build.WithLabelValues(buildVersion(), runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH).Set(1)
}

// handler serves these metrics together with those of the Kubernetes libraries.
func (m *serverMetrics) handler() http.Handler {
	all := prometheus.Gatherers{legacyregistry.DefaultGatherer, m.registry}
	serve := basemetrics.HandlerFor(all, basemetrics.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "GET the metrics: they cannot be reset", http.StatusMethodNotAllowed)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

func counters(name, help string, labels ...string) *basemetrics.CounterVec {
	return basemetrics.NewCounterVec(&basemetrics.CounterOpts{Namespace: metricsPrefix, Name: name, Help: help, StabilityLevel: basemetrics.ALPHA}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *basemetrics.HistogramVec {
	return basemetrics.NewHistogramVec(histogramOpts(name, help, buckets), labels)
}

func histogramOpts(name, help string, buckets []float64) *basemetrics.HistogramOpts {
	return &basemetrics.HistogramOpts{Namespace: metricsPrefix, Name: name, Help: help, Buckets: buckets, StabilityLevel: basemetrics.ALPHA}
}

func evaluationBuckets() []float64 {
	return []float64{
		10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10,
	}
}

func reviewBuckets() []float64 {
	return []float64{100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30}
}

func propagationBuckets() []float64 {
	return []float64{1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60, 300}
}
