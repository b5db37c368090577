// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

// hurriedWriter notes whether the body has a deadline.
type hurriedWriter struct {
	*httptest.ResponseRecorder
	hurried bool
}

func (w *hurriedWriter) SetReadDeadline(deadline time.Time) error {
	w.hurried = w.hurried || !deadline.IsZero()
	return nil
}

// TestReviewsAreAnsweredAtTheResource: what is POSTed to exactly the resource never
// reaches the generic server, whose filters it has passed, and every question has to be
// sent in time.
func TestReviewsAreAnsweredAtTheResource(t *testing.T) {
	config, err := NewConfig()
	if err != nil {
		t.Fatal(err)
	}
	filtered := false
	config.Generic.BuildHandlerChainFunc = func(next http.Handler, _ *genericapiserver.Config) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			filtered = true
			next.ServeHTTP(w, r)
		})
	}
	config.addReviewDoors(nil, nil, func(_ string, judge admissionreview.Judge) admissionreview.Judge { return judge }, func() cluster.View { return nil })
	config.hurryQuestions()
	generic := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := config.Generic.BuildHandlerChainFunc(generic, config.Generic)

	const group = "/apis/policy.portcullis.dev/v1alpha1/"
	tests := []struct {
		method, path  string
		door, hurried bool
	}{
		{"POST", group + "validations", true, true},
		{"POST", group + "mutations", true, true},
		{"GET", group + "validations", false, false},
		{"PUT", group + "mutations", false, false},
		{"POST", group + "validations/", false, false},
		{"POST", group + "validations/x", false, false},
		{"POST", group + "validationss", false, false},
		{"POST", group + "namespaces/n/validations", false, false},
		{"POST", "/apis/policy.portcullis.dev/v1/validations", false, false},
		{"POST", group + "admissionpreviews", false, true},
		{"POST", group + "validatingadmissionpolicies", false, false},
		// The generic server finds the handlers of these.
		{"POST", "/admission/v1/validate", false, true},
		{"POST", "/admission/v1/mutate", false, true},
	}
	for _, test := range tests {
		filtered = false
		w := &hurriedWriter{ResponseRecorder: httptest.NewRecorder()}
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil))
		want := http.StatusTeapot
		if test.door {
			want = http.StatusBadRequest // the door finds no review in the body
		}
		if w.Code != want || w.hurried != test.hurried || !filtered {
			t.Errorf("%s %s: got code %d, hurried: %v, filtered: %v; want %d, %v, true", test.method, test.path, w.Code, w.hurried, filtered, want, test.hurried)
		}
	}
	for _, path := range []string{ReviewPath, MutationPath} {
		if config.Extra.Handlers[path] == nil {
			t.Errorf("nobody answers %s", path)
		}
	}
}
