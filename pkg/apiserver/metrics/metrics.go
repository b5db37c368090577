// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what becomes of reviews and of the stored policies, says
// what state the server is in, and serves both to Prometheus. It hears of what is
// judged and written, and never has a part in it. It does not know how policies
// judge, how they are stored, and who may read the metrics.
package metrics

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/bootstrap"
)

// prefix begins the name of every metric of ours.
const prefix = "portcullis"

// Sources tell what the metrics are about. What is said to be nil somewhere may be.
type Sources struct {
	// Version is that of the server.
	Version string
	// Dialects are those of the policies.
	Dialects []policy.Dialect
	// Report returns what became of a policy or binding, and false when it is neither
	// stored nor a bootstrap policy.
	Report func(policy.ID) (catalog.Report, bool)
	// Complete says whether there is a set of policies in force.
	Complete func() bool
	// Unjudged says whether reviews are admitted without being judged. It is nil where
	// they never are.
	Unjudged func() bool
	// Age says how old the policies in force may be, or that it is not known. It is
	// nil where nobody knows.
	Age func(now time.Time) (time.Duration, bool)
	// Objects says how the manifests that policies read were loaded. It is nil where
	// they read no manifests.
	Objects func() offline.Status
	// HeardAt says when kube-apiserver told of the cluster last; zero when it never has.
	// It is nil where there is none.
	HeardAt func() time.Time
	// Bootstrap says how the bootstrap policies were loaded. It is nil where there are
	// none.
	Bootstrap func() bootstrap.Status
	// Clock measures all durations.
	Clock clock.PassiveClock
}

// Registry holds the metrics of one server. Those about one policy begin when it
// comes into force and end when it is deleted: their number is bounded by that of
// the stored policies. It is safe for concurrent use.
type Registry struct {
	kube     basemetrics.KubeRegistry
	sources  Sources
	dialects map[string]string // by kind
	writes   *propagation

	evaluationDuration *basemetrics.HistogramVec
	reviewDuration     *basemetrics.HistogramVec
	reviewFailures     *basemetrics.CounterVec
	reviewsUnjudged    *basemetrics.Counter
	propagation        *basemetrics.Histogram

	mu       sync.RWMutex
	policies map[policy.ID]*policyCounters
	kinds    map[string]bool // of the policies that are or were there
}

// New returns the metrics of a server. What happens there must be told to them:
// see Changed, WatchWrites, TimeReviews, Judged and Failed.
func New(sources Sources) *Registry {
	r := &Registry{
		kube:     basemetrics.NewKubeRegistry(),
		sources:  sources,
		dialects: map[string]string{},
		policies: map[policy.ID]*policyCounters{},
		kinds:    map[string]bool{},
	}
	for _, dialect := range sources.Dialects {
		for _, kind := range dialect.Kinds() {
			r.dialects[kind] = dialect.Name()
		}
	}
	r.define()
	r.kube.MustRegister(r.evaluationDuration, r.reviewDuration, r.reviewFailures, r.reviewsUnjudged, r.propagation)
	r.kube.CustomMustRegister(newState(sources, r.count), newJudgements(r))
	if sources.Bootstrap != nil {
		r.kube.CustomMustRegister(newBootstrapState(sources.Bootstrap))
	}
	r.writes = newPropagation(sources, r.propagation)
	r.start()
	return r
}

func (r *Registry) define() {
	r.evaluationDuration = histograms("policy_evaluation_duration_seconds",
		"Time that a policy needed to judge a review, through one binding and with one param.", evaluationBuckets(), "dialect")
	r.reviewDuration = histograms("review_duration_seconds",
		"Time from the arrival of a review to its verdict: allowed, denied, or error when there is none.", reviewBuckets(), "verdict")
	r.reviewFailures = newCounters("review_failures_total",
		"Number of reviews that could not be judged, so that the caller applied the failurePolicy of its webhook registration.", "reason")
	r.reviewsUnjudged = basemetrics.NewCounter(&basemetrics.CounterOpts{
		Namespace: prefix, Name: "reviews_unjudged_total", StabilityLevel: basemetrics.ALPHA,
		Help: "Number of reviews that were admitted without being judged, since an administrator said so in the webhook registration (break-glass).",
	})
	r.propagation = basemetrics.NewHistogram(histogramOpts("policy_propagation_seconds",
		"Time from the acknowledgement of a write of a policy or binding by this server until what was written, or a later state, was in force in it.", propagationBuckets()))
}

// start makes the series that no policy begins: a rate over them is known from
// the first event on.
func (r *Registry) start() {
	for _, dialect := range r.sources.Dialects {
		r.evaluationDuration.WithLabelValues(dialect.Name())
	}
	for _, verdict := range []string{verdictAllowed, verdictDenied, verdictError} {
		r.reviewDuration.WithLabelValues(verdict)
	}
	for _, reason := range []string{reasonNotReady, reasonNoTimeLeft, reasonTooManyEvaluations, reasonOther} {
		r.reviewFailures.WithLabelValues(reason)
	}
	build := basemetrics.NewGaugeVec(&basemetrics.GaugeOpts{
		Namespace: prefix, Name: "build_info", Help: "What this server was built from; the value is always 1.", StabilityLevel: basemetrics.ALPHA,
	}, []string{"version", "goversion", "platform"})
	r.kube.MustRegister(build)
	build.WithLabelValues(r.sources.Version, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH).Set(1)
}

// Changed tells that there is something new to report of a stored policy or
// binding, and that it is in force.
func (r *Registry) Changed(id policy.ID) {
	r.follow(id)
	r.writes.changed(id)
}

// Handler serves these metrics together with those of the Kubernetes libraries.
func (r *Registry) Handler() http.Handler {
	all := prometheus.Gatherers{legacyregistry.DefaultGatherer, r.kube}
	serve := basemetrics.HandlerFor(all, basemetrics.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "GET the metrics: they cannot be reset", http.StatusMethodNotAllowed)
			return
		}
		serve.ServeHTTP(w, req)
	})
}

func newCounters(name, help string, labels ...string) *basemetrics.CounterVec {
	return basemetrics.NewCounterVec(&basemetrics.CounterOpts{Namespace: prefix, Name: name, Help: help, StabilityLevel: basemetrics.ALPHA}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *basemetrics.HistogramVec {
	return basemetrics.NewHistogramVec(histogramOpts(name, help, buckets), labels)
}

func histogramOpts(name, help string, buckets []float64) *basemetrics.HistogramOpts {
	return &basemetrics.HistogramOpts{Namespace: prefix, Name: name, Help: help, Buckets: buckets, StabilityLevel: basemetrics.ALPHA}
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
