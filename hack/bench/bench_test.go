// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// examples are the files that are measured with when no others are given.
func examples(name string) string { return filepath.Join("..", "..", "artifacts", "bench", name) }

func exampleReview(t *testing.T) *review {
	t.Helper()
	question, err := readReview(examples("review.json"))
	if err != nil {
		t.Fatal(err)
	}
	return question
}

func TestParse(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{args: nil},
		{args: []string{"--concurrency=1", "--rounds=1", "--duration=1s", "--policies="}},
		{args: []string{"--url=https://localhost", "--pid=1", "--ca=ca.pem"}},
		{args: []string{"--set=kyverno-jsonpatch"}},
		{args: []string{"--phase=mutate", "--policies=p.yaml"}},
		{args: []string{"--phase=mutate"}, want: "--phase=mutate needs --policies that change objects; or give --set"},
		{args: []string{"--phase=both"}, want: "--phase must be validate or mutate"},
		{args: []string{"--set=kyverno-merge-1", "--unmatched=10,1000", "--max-growth=1.1"}},
		{args: []string{"--set=none"}, want: `there is no set "none", want one of ["kyverno-jsonpatch" "kyverno-merge-1" "kyverno-merge-10"]`},
		{args: []string{"--set=kyverno-jsonpatch", "--phase=mutate"}, want: "--set stands in place of --policies and --phase: give either"},
		{args: []string{"--unmatched=10"}, want: "--unmatched needs --phase=mutate, and takes no --url"},
		{args: []string{"--unmatched=10,-1"}, want: `invalid value "10,-1" for flag -unmatched: want numbers with commas between them, such as 10,1000`},
		{args: []string{"more"}, want: `unknown argument "more": only flags are taken`},
		{args: []string{"--concurrency=0"}, want: "--concurrency must be 1 or more, and --connections from 1 to --concurrency"},
		{args: []string{"--connections=9"}, want: "--concurrency must be 1 or more, and --connections from 1 to --concurrency"},
		{args: []string{"--rounds=0"}, want: "--rounds must be 1 or more"},
		{args: []string{"--duration=100ms"}, want: "--duration must be 500ms or more: CPU time is counted in steps of 10ms"},
		{args: []string{"--url=https://localhost"}, want: "--url, --pid and --ca belong together: give all three or none"},
	}
	for _, test := range tests {
		_, err := parse(test.args, io.Discard)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q: got error %q, want %q", test.args, got, test.want)
		}
	}
}

func TestReviewsHaveUIDsOfTheirOwn(t *testing.T) {
	question := exampleReview(t)
	seen := map[string]bool{}
	for range 3 {
		body, uid := question.next()
		var in admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &in); err != nil {
			t.Fatal(err)
		}
		if string(in.Request.UID) != uid || in.Request.Name == "" || bytes.ContainsAny(body, "\n") {
			t.Errorf("got uid %s in\n%s\nwant %s on one line", in.Request.UID, body, uid)
		}
		seen[uid] = true
	}
	if len(seen) != 3 {
		t.Errorf("got the uids %v, want three", seen)
	}
}

func TestUnusableReviews(t *testing.T) {
	for body, want := range map[string]string{
		`{"request":{}}`:                     "no AdmissionReview with a request and its uid",
		`{}`:                                 "no AdmissionReview with a request and its uid",
		`{"request":{"uid":"n","name":"n"}}`: `the uid "n" is there 2 times`,
		`[]`:                                 "cannot unmarshal",
	} {
		if _, err := newReview([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", body, err, want)
		}
	}
}

func TestReadPolicies(t *testing.T) {
	content, err := os.ReadFile(examples("policies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	home := bytes.ReplaceAll(content, []byte("policy.portcullis.dev/v1alpha1"), []byte("admissionregistration.k8s.io/v1"))
	write := func(content []byte) string {
		file := filepath.Join(t.TempDir(), "policies.yaml")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, file := range []string{examples("policies.yaml"), write(home)} {
		objects, err := readPolicies(file, phaseValidate)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, object := range objects {
			kinds[object.GetKind()]++
			if got := object.GetAPIVersion(); got != "policy.portcullis.dev/v1alpha1" {
				t.Errorf("%s %s: got apiVersion %s", object.GetKind(), object.GetName(), got)
			}
		}
		if kinds[policyKind] != 16 || kinds[bindingKind] != 16 {
			t.Errorf("got %v, want 16 of each", kinds)
		}
	}
	if _, err := readPolicies(write([]byte("kind: Pod\n")), phaseValidate); err == nil || !strings.Contains(err.Error(), `kind "Pod"`) {
		t.Errorf("a Pod is taken for a policy: %v", err)
	}
}

func TestFirstIdle(t *testing.T) {
	const metrics = `# HELP portcullis_policy_evaluations_total Number
portcullis_policy_evaluations_total{dialect="cel",kind="K",outcome="allowed",policy="busy"} 12
portcullis_policy_evaluations_total{dialect="cel",kind="K",outcome="denied",policy="busy"} 0
portcullis_policy_evaluations_total{dialect="cel",kind="K",outcome="allowed",policy="idle"} 0
portcullis_policy_evaluations_total{dialect="cel",kind="K",outcome="notmatched",policy="idle"} 3
portcullis_policy_evaluations_total{dialect="kyverno",kind="K",outcome="changed",policy="changing"} 1
`
	for name, phase := range map[string]string{"busy": phaseValidate, "changing": phaseMutate} {
		if got := firstIdle([]byte(metrics), map[string]bool{name: true}, phase); got != "" {
			t.Errorf("%s: got %q, want nothing", phase, got)
		}
	}
	if got := firstIdle([]byte(metrics), map[string]bool{"busy": true, "changing": true}, phaseMutate); got != "busy has not changed it" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"idle", "absent"} {
		if got := firstIdle([]byte(metrics), map[string]bool{name: true}, phaseValidate); got != name+" has not evaluated it" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	const stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 7 0 100 1000000 250 0\n"
	got, err := parseStat([]byte(stat))
	if err != nil {
		t.Fatal(err)
	}
	if want := (usage{cpu: 2 * time.Second, resident: 250 * int64(os.Getpagesize())}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, broken := range []string{"", "42 (a) S 1", strings.Replace(stat, "150", "x", 1)} {
		if _, err := parseStat([]byte(broken)); err == nil {
			t.Errorf("%q: got no error", broken)
		}
	}
}

// TestUsageIsThatOfTheProcess uses CPU time until it is seen.
func TestUsageIsThatOfTheProcess(t *testing.T) {
	before, err := readUsage(os.Getpid())
	if err != nil {
		t.Skipf("the system has no /proc: %v", err)
	}
	for t.Context().Err() == nil {
		after, err := readUsage(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after.cpu > before.cpu && after.resident > 0 {
			return
		}
	}
}

func TestCheck(t *testing.T) {
	for answer, want := range map[string]string{
		`{"response":{"uid":"u","allowed":true}}`:  "",
		`{"response":{"uid":"v","allowed":true}}`:  `the answer is to "v", the question was "u"`,
		`{"response":{"uid":"u","allowed":false}}`: "allowed is false, want true",
		`{"request":{}}`: "the answer has no response",
		`no`:             "the answer is no AdmissionReview",
	} {
		err := (&target{allowed: true}).check([]byte(answer), "u")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got error %v, want %q", answer, err, want)
		}
	}
}

func TestCheckPatch(t *testing.T) {
	const patched, unchanged = `{"response":{"uid":"u","allowed":true,"patch":"W10="}}`, `{"response":{"uid":"u","allowed":true}}`
	for _, changes := range []bool{true, false} {
		for answer, has := range map[string]bool{patched: true, unchanged: false} {
			if err := (&target{allowed: true, changes: changes}).check([]byte(answer), "u"); (err == nil) != (has == changes) {
				t.Errorf("%s, want a patch %t: got error %v", answer, changes, err)
			}
		}
	}
}

func TestSets(t *testing.T) {
	counts := map[string]int{"kyverno-jsonpatch": 10, "kyverno-merge-1": 1, "kyverno-merge-10": 10}
	for name, set := range sets() {
		objects, err := readPolicies(filepath.Join("..", "..", set.file), set.phase)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, object := range objects {
			names[object.GetName()] = true
		}
		if len(names) != counts[name] {
			t.Errorf("%s: got %d policies, want %d", name, len(names), counts[name])
		}
		if !strings.HasPrefix(name, "kyverno-merge") {
			continue
		}
		for _, object := range objects {
			if text := fmt.Sprint(object.Object); strings.Contains(text, "patchesJson6902") || !strings.Contains(text, "patchStrategicMerge") {
				t.Errorf("%s: %s has no strategic merge patch alone", name, object.GetName())
			}
		}
	}
}

// serve returns a target that this process serves.
func serve(t *testing.T, name string, handler http.Handler) *target {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig //nolint:forcetypeassert // that of httptest
	return &target{name: name, url: server.URL, pid: os.Getpid(), allowed: true, tls: &tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12}}
}

func shortLoad() load { return load{concurrency: 3, connections: 2, duration: 50 * time.Millisecond} }

func TestDrive(t *testing.T) {
	noop, err := newNoopHandler()
	if err != nil {
		t.Fatal(err)
	}
	s, err := drive(t.Context(), serve(t, "no-op", noop), exampleReview(t), shortLoad())
	if err != nil {
		t.Fatal(err)
	}
	if s.requests == 0 || len(s.latencies) != s.requests || s.elapsed <= 0 || s.resident <= 0 || s.latency(99) < s.latency(50) || s.latency(50) <= 0 {
		t.Errorf("got %d requests in %s, %d latencies, %d bytes", s.requests, s.elapsed, len(s.latencies), s.resident)
	}
}

// TestFaultsMakeARoundVoid: for all targets, and too many end the measurement.
func TestFaultsMakeARoundVoid(t *testing.T) {
	noop, err := newNoopHandler()
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]http.Handler{
		"HTTP 503 Service Unavailable": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }),
		"the answer is to": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"response":{"uid":"another","allowed":true}}`)
		}),
	}
	for want, handler := range faults {
		targets := []*target{serve(t, "no-op", noop), serve(t, "other", handler)}
		var out bytes.Buffer
		r, err := playRounds(t.Context(), &options{load: shortLoad(), rounds: 2}, targets, exampleReview(t), &out)
		if err != nil {
			t.Fatal(err)
		}
		if r.void != 2 || len(r.samples) != 0 || !strings.Contains(out.String(), "round 2 is void: other: ") {
			t.Errorf("%s: got %d void rounds and\n%s", want, r.void, &out)
		}
		if err := r.believable(); err == nil || !strings.Contains(err.Error(), "2 of 2 rounds are void: other: "+want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func TestInterruptEndsTheRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() })
	_, err := playRounds(ctx, &options{load: shortLoad(), rounds: 2}, []*target{serve(t, "no-op", handler)}, exampleReview(t), io.Discard)
	if err == nil || ctx.Err() == nil {
		t.Errorf("got error %v, want that of the context", err)
	}
}

// newRounds returns rounds in which the first target needs 100 µs a request and
// the second one the given times.
func newRounds(void int, micros ...int) *rounds {
	r := &rounds{void: void}
	for _, m := range micros {
		samples := make([]*sample, 2)
		for i, cpu := range []int{100, m} {
			samples[i] = &sample{requests: 10, elapsed: time.Second, cpu: time.Duration(cpu) * 10 * time.Microsecond, resident: 1 << 20, latencies: []time.Duration{time.Millisecond}}
		}
		r.samples = append(r.samples, samples)
	}
	return r
}

func TestReport(t *testing.T) {
	r := newRounds(1, 300, 200, 250, 1000)
	if err := r.believable(); err != nil {
		t.Errorf("one void round of five: %v", err)
	}
	if err := newRounds(2, 1, 1, 1, 1).believable(); err == nil {
		t.Error("two void rounds of six are not too many")
	}
	if err := newRounds(0).believable(); err == nil {
		t.Error("no round at all is enough")
	}
	targets := []*target{{name: "no-op"}, {name: "portcullis"}}
	var out bytes.Buffer
	r.print(&out, targets)
	for _, want := range []string{
		"Medians over 4 rounds (smallest to largest), 1 void",
		"275.0 (200.0 to 1000.0)", "2.75 (2.00 to 10.00)", "10 (10 to 10)", "1000 (1000 to 1000)", "1.0 (1.0 to 1.0)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestNoopRefusesWhatIsNoReview(t *testing.T) {
	noop, err := newNoopHandler()
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"`
	for _, body := range []string{``, `{}`, head + `}`, head + `,"request":{"uid":"u","object":[]}}`} {
		w := httptest.NewRecorder()
		noop.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: got HTTP %d: %s", body, w.Code, w.Body)
		}
	}
}
