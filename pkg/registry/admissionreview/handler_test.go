// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

const envelope = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":%s}`

// valid is the request of a review that is judged.
const valid = `{"uid":"u-1","kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"operation":"CREATE","object":{"metadata":{"name":"n"}}}`

// judge answers what the test wants and keeps what it was asked.
type judge struct {
	answer verdict.Verdict
	err    error

	asked    *request.Request
	view     cluster.View
	timeLeft time.Duration
}

func (j *judge) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	j.asked, j.view = req, view
	if deadline, ok := ctx.Deadline(); ok {
		j.timeLeft = time.Until(deadline)
	}
	return j.answer, j.err
}

// markedView can be told from other views.
type markedView struct {
	cluster.View
	mark int
}

func post(t *testing.T, j *judge, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, j, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
}

func send(t *testing.T, j *judge, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	admissionreview.NewHandler(j, func() cluster.View { return markedView{mark: 7} }, admissionreview.NewRoom()).ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q, want application/json", got)
	}
	return w
}

// wantStatus checks an answer that is an HTTP error.
func wantStatus(t *testing.T, w *httptest.ResponseRecorder, code int32, reason metav1.StatusReason, message string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if w.Code != int(code) || status.Code != code || status.Reason != reason || status.Status != metav1.StatusFailure ||
		status.Kind != "Status" || status.APIVersion != "v1" {
		t.Errorf("got code %d and status %+v, want code %d and reason %s", w.Code, status, code, reason)
	}
	if status.Message != message {
		t.Errorf("got message\n%s\nwant\n%s", status.Message, message)
	}
}

func TestMethods(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		j := &judge{answer: verdict.Allow()}
		w := send(t, j, httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(fmt.Sprintf(envelope, valid))))
		wantStatus(t, w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, method+" is not supported: POST an AdmissionReview")
		if got := w.Header().Get("Allow"); got != http.MethodPost {
			t.Errorf("%s: allows %q, want POST", method, got)
		}
		if j.asked != nil {
			t.Errorf("%s was judged", method)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	tests := map[string]int{
		"":                                    http.StatusOK,
		"application/json":                    http.StatusOK,
		"Application/JSON; charset=utf-8":     http.StatusOK,
		"application/yaml":                    http.StatusUnsupportedMediaType,
		"application/vnd.kubernetes.protobuf": http.StatusUnsupportedMediaType,
		"application/x-www-form-urlencoded":   http.StatusUnsupportedMediaType,
		"application/json, text/plain":        http.StatusUnsupportedMediaType,
		"/":                                   http.StatusUnsupportedMediaType,
	}
	for mediaType, want := range tests {
		j := &judge{answer: verdict.Allow()}
		body := &countedReader{Reader: strings.NewReader(fmt.Sprintf(envelope, valid))}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		r.Header.Set("Content-Type", mediaType)
		w := send(t, j, r)
		if want == http.StatusOK {
			if w.Code != want || j.asked == nil {
				t.Errorf("%q: got code %d: %s", mediaType, w.Code, w.Body)
			}
			continue
		}
		wantStatus(t, w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("the body is of the media type %q: only application/json is judged", mediaType))
		if body.read != 0 || j.asked != nil {
			t.Errorf("%q: %d bytes were read, judged: %v", mediaType, body.read, j.asked != nil)
		}
	}
}

// countedReader counts what is read.
type countedReader struct {
	io.Reader
	read int
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func TestBodyLimit(t *testing.T) {
	review := fmt.Sprintf(envelope, valid)
	fill := admissionreview.MaxBodyBytes - len(review)
	j := &judge{answer: verdict.Allow()}
	if w := post(t, j, io.MultiReader(strings.NewReader(review), bytes.NewReader(bytes.Repeat([]byte(" "), fill)))); w.Code != http.StatusOK {
		t.Errorf("as large as is allowed: got code %d: %s", w.Code, w.Body)
	}
	w := post(t, &judge{}, io.MultiReader(strings.NewReader(review), bytes.NewReader(bytes.Repeat([]byte(" "), fill+1))))
	wantStatus(t, w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		"the review is larger than 16777216 bytes: exclude objects of that size in the webhook registration")

	w = post(t, &judge{}, io.MultiReader(strings.NewReader(review), brokenReader{}))
	wantStatus(t, w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "reading the body: connection lost")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection lost") }

func TestUnusableReviews(t *testing.T) {
	deep := `{"uid":"u","object":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + "}"
	const (
		wantVersion  = "only admission.k8s.io/v1 AdmissionReview is judged; register the webhook with admissionReviewVersions: [v1]"
		wantKind     = `request.kind: version and kind are required, as in {"group":"apps","version":"v1","kind":"Deployment"}`
		wantResource = `request.resource: version and resource are required, as in {"group":"apps","version":"v1","resource":"deployments"}`
	)
	tests := []struct{ name, body, want string }{
		{"empty", ``, "not JSON at byte 0: unexpected end of JSON input"},
		{"cut off", `{"apiVersion":`, "not JSON at byte 14: unexpected end of JSON input"},
		{"YAML", "apiVersion: v1", "not JSON at byte 1: invalid character 'a' looking for beginning of value"},
		{"two documents", `{} {}`, "not JSON at byte 4: invalid character '{' after top-level value"},
		{"a list", `[]`, "the body: found JSON array, want object"},
		{"null", `null`, `apiVersion "" and kind "": ` + wantVersion},
		{"old version", `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{}}`, `apiVersion "admission.k8s.io/v1beta1" and kind "AdmissionReview": ` + wantVersion},
		{"another kind", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReviews","request":{}}`, `apiVersion "admission.k8s.io/v1" and kind "AdmissionReviews": ` + wantVersion},
		{"keys in the wrong case", `{"apiversion":"admission.k8s.io/v1","Kind":"AdmissionReview","request":{}}`, `apiVersion "" and kind "": ` + wantVersion},
		{"no request", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "request: required: say which request to judge"},
		{"null request", fmt.Sprintf(envelope, `null`), "request: required: say which request to judge"},
		{"request of the wrong type", fmt.Sprintf(envelope, `[]`), "request: found JSON array, want object"},
		{"uid of the wrong type", fmt.Sprintf(envelope, `{"uid":1}`), "request.uid: found JSON number, want string"},
		{"kind of the wrong type", fmt.Sprintf(envelope, `{"kind":"Pod"}`), "request.kind: found JSON string, want object"},
		{"groups of the wrong type", fmt.Sprintf(envelope, `{"userInfo":{"groups":"a"}}`), "request.userInfo.groups: found JSON string, want array"},
		{"extra of the wrong type", fmt.Sprintf(envelope, `{"userInfo":{"extra":[]}}`), "request.userInfo.extra: found JSON array, want object"},
		{"dryRun of the wrong type", fmt.Sprintf(envelope, `{"dryRun":"true"}`), "request.dryRun: found JSON string, want bool"},
		{"nested too deep", fmt.Sprintf(envelope, deep), "nested more than 10000 levels deep at byte 50082: flatten the object"},
		{"no uid", fmt.Sprintf(envelope, strings.Replace(valid, `"u-1"`, `""`, 1)), "request.uid: required: set a text that no other request has"},
		{"no kind", fmt.Sprintf(envelope, strings.Replace(valid, `"ConfigMap"`, `""`, 1)), wantKind},
		{"no resource", fmt.Sprintf(envelope, strings.Replace(valid, `"configmaps"`, `""`, 1)), wantResource},
		{"no operation", fmt.Sprintf(envelope, strings.Replace(valid, `"CREATE"`, `""`, 1)), `request.operation: "" is not CREATE, UPDATE, DELETE or CONNECT`},
		{"object of the wrong type", fmt.Sprintf(envelope, strings.Replace(valid, `{"metadata":{"name":"n"}}`, `[]`, 1)), "request.object: must be a JSON object"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := &judge{answer: verdict.Allow()}
			wantStatus(t, post(t, j, strings.NewReader(test.body)), http.StatusBadRequest, metav1.StatusReasonBadRequest,
				"not a usable AdmissionReview: "+test.want)
			if j.asked != nil {
				t.Error("it was judged")
			}
		})
	}
}

// TestNotReady lets the caller apply the failurePolicy of its registration.
func TestNotReady(t *testing.T) {
	j := &judge{answer: verdict.Allow(), err: errors.New("not yet ready")}
	wantStatus(t, post(t, j, strings.NewReader(fmt.Sprintf(envelope, valid))), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not yet ready")
}

func review(t *testing.T, answer verdict.Verdict) *admissionv1.AdmissionResponse {
	t.Helper()
	j := &judge{answer: answer}
	w := post(t, j, strings.NewReader(fmt.Sprintf(envelope, valid)))
	if w.Code != http.StatusOK {
		t.Fatalf("got code %d: %s", w.Code, w.Body)
	}
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if out.APIVersion != "admission.k8s.io/v1" || out.Kind != "AdmissionReview" || out.Request != nil || out.Response == nil {
		t.Fatalf("got %s, want a v1 AdmissionReview with a response alone", w.Body)
	}
	if out.Response.UID != "u-1" {
		t.Errorf("got uid %q, want that of the request", out.Response.UID)
	}
	if j.asked.Object.GetName() != "n" || j.view != (markedView{mark: 7}) {
		t.Errorf("judged %+v in view %v", j.asked.Fields, j.view)
	}
	return out.Response
}

func denials(messages ...string) verdict.Verdict {
	var v verdict.Verdict
	for _, message := range messages {
		v.Denied++
		v.Denials = append(v.Denials, verdict.Denial{Message: message, Reason: metav1.StatusReasonForbidden})
	}
	return v
}

func TestAnswer(t *testing.T) {
	tests := []struct {
		name    string
		verdict verdict.Verdict
		message string // empty when allowed
		causes  int
	}{
		{name: "allowed", verdict: verdict.Allow()},
		{name: "one denial", verdict: denials("first"), message: "first", causes: 1},
		{name: "two denials", verdict: denials("first", "second"), message: "first (and 1 more: see causes)", causes: 2},
		{name: "four denials", verdict: denials("first", "2", "3", "4"), message: "first (and 3 more: see causes)", causes: 4},
		{
			name: "more denials than are listed", causes: 1, message: "first (and 149 more: see causes for the first 100)",
			verdict: verdict.Verdict{Denied: 150, Denials: denials("first").Denials},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := review(t, test.verdict)
			if test.message == "" {
				if !got.Allowed || got.Result != nil {
					t.Errorf("got %+v, want an admission", got)
				}
				return
			}
			if got.Allowed || got.Result == nil {
				t.Fatalf("got %+v, want a denial", got)
			}
			if got.Result.Message != test.message || got.Result.Code != http.StatusForbidden || got.Result.Reason != metav1.StatusReasonForbidden {
				t.Errorf("got %d, %s and message %q, want message %q", got.Result.Code, got.Result.Reason, got.Result.Message, test.message)
			}
			if n := len(got.Result.Details.Causes); n != test.causes {
				t.Errorf("got %d causes, want %d", n, test.causes)
			}
		})
	}
	if zero := review(t, verdict.Verdict{}); zero.Allowed || zero.Result.Code != http.StatusUnprocessableEntity {
		t.Errorf("the zero verdict: got %+v, want a denial", zero)
	}
}

func TestWarningsAreReturned(t *testing.T) {
	answer := verdict.Allow()
	answer.Warnings = []string{"b", "a", "b"}
	if got := review(t, answer).Warnings; strings.Join(got, ",") != "b,a,b" {
		t.Errorf("got %q, want all as they are: the API server that asked limits them", got)
	}
}

// TestDeadline leaves a part of the caller's time for the answer.
func TestDeadline(t *testing.T) {
	tests := []struct {
		name    string
		allowed time.Duration // none when 0
		want    time.Duration
	}{
		{name: "no deadline", want: 30 * time.Second},
		{name: "more than a webhook may take", allowed: time.Hour, want: 30 * time.Second},
		{name: "a usual timeout", allowed: 10 * time.Second, want: 9500 * time.Millisecond},
		{name: "a short timeout", allowed: 500 * time.Millisecond, want: 400 * time.Millisecond},
		{name: "too late", allowed: -time.Second, want: -time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, began := t.Context(), time.Now()
			if test.allowed != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.allowed)
				defer cancel()
			}
			j := &judge{answer: verdict.Allow()}
			w := send(t, j, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(fmt.Sprintf(envelope, valid))))
			took := time.Since(began)
			if w.Code != http.StatusOK {
				t.Errorf("got code %d: %s", w.Code, w.Body)
			}
			if j.timeLeft > test.want || j.timeLeft < test.want-took {
				t.Errorf("%s was left to judge, want %s less at most %s", j.timeLeft, test.want, took)
			}
		})
	}
}
