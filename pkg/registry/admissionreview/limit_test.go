// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

// slowJudge says when it was asked, and answers when it is let go.
type slowJudge struct{ asked, letGo chan struct{} }

func (j slowJudge) Run(context.Context, *request.Request, cluster.View) (verdict.Verdict, error) {
	j.asked <- struct{}{}
	<-j.letGo
	return verdict.Allow(), nil
}

// TestReviewsInFlight: reviews count as what they take when they are decoded, of which
// sixteen fit here; the next is turned away at once, whether it says how long it is or not,
// also at a door that shares the room. It has its turn when the others are done.
func TestReviewsInFlight(t *testing.T) {
	const fit = 16
	judge := slowJudge{asked: make(chan struct{}), letGo: make(chan struct{})}
	room := admissionreview.NewRoom()
	handler := admissionreview.NewHandler(judge, func() cluster.View { return nil }, room)
	beside := admissionreview.NewHandler(judge, func() cluster.View { return nil }, room)
	// 250 KiB, and 32 MiB when they are decoded.
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",
		"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"a":[` + strings.Repeat("{},", 84_000) + `{}]}}}`
	ask := func(door http.Handler, length int) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.ContentLength = int64(length)
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	const unsaid = -1

	var group sync.WaitGroup
	for range fit {
		group.Go(func() {
			if w := ask(handler, unsaid); w.Code != http.StatusOK {
				t.Errorf("a review that fits: got %d: %s", w.Code, w.Body)
			}
		})
		<-judge.asked // before it is read it may count as more
	}
	for name, door := range map[string]http.Handler{"the same door": handler, "a door beside it": beside} {
		for _, length := range []int{unsaid, len(body)} {
			w := ask(door, length)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "too many reviews are being judged: try again later") {
				t.Errorf("one too many at %s, length %d: got %d %v: %s", name, length, w.Code, w.Header(), w.Body)
			}
		}
	}
	close(judge.letGo)
	group.Wait()

	for range fit { // nothing is kept
		group.Go(func() { <-judge.asked })
		if w := ask(handler, len(body)); w.Code != http.StatusOK {
			t.Errorf("after the others: got %d: %s", w.Code, w.Body)
		}
	}
	group.Wait()
}
