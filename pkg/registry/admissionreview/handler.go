// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionreview is the review doors: AdmissionReviews in, AdmissionReviews
// out, on paths of their own and as resources of the API group, with the same Handler
// behind both. It only translates; it does not know where policies come from, how they
// judge, or who may ask.
package admissionreview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

const (
	// MaxBodyBytes bounds a review: twice the largest object that etcd takes,
	// old and new, with room for the envelope and for escapes.
	MaxBodyBytes = 16 << 20
	// maxDuration bounds the judging of one review, whatever the caller allows.
	// Webhooks of an API server time out after 30 s at most.
	maxDuration = 30 * time.Second
	// answerMargin is what is kept of the caller's time for the answer.
	answerMargin = 500 * time.Millisecond
)

// Judge judges requests with the stored policies. An error means that the
// request must not be admitted.
type Judge interface {
	Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error)
}

// Handler answers POSTed AdmissionReviews of admission.k8s.io/v1. It expects
// that callers have been authenticated and authorized. It is safe for
// concurrent use. How long a caller may take to send a body is for
// WithBodyTimeout to bound.
type Handler struct {
	judge Judge
	view  func() cluster.View
	room  *Room
}

// NewHandler returns a door to judge, which reads the cluster through what view
// returns for each review.
func NewHandler(judge Judge, view func() cluster.View, room *Room) *Handler {
	return &Handler{judge: judge, view: view, room: room}
}

// ServeHTTP implements http.Handler. What cannot be judged is answered with an
// HTTP error, on which the caller applies the failurePolicy of its webhook
// registration.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, fmt.Errorf("%s is not supported: POST an AdmissionReview", r.Method))
		return
	}
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		fail(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, err)
		return
	}
	claim, ok := h.room.claim(r.ContentLength)
	if !ok {
		failFull(w)
		return
	}
	defer claim.release()
	buffer := h.room.buffers.get()
	body, ok := read(w, r, buffer)
	if !ok {
		return
	}
	if !claim.resize(footprint(body)) {
		failFull(w)
		return
	}
	req, err := decode(body)
	h.room.buffers.put(buffer)
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Errorf("not a usable AdmissionReview: %w", err))
		return
	}
	ctx, cancel := withDeadline(r.Context())
	defer cancel()
	answer, err := h.judge.Run(ctx, req, h.view())
	if err != nil {
		fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err)
		return
	}
	audit.AddAuditAnnotationsMap(ctx, answer.AuditAnnotations) // with the keys of upstream, for our own audit log
	response, err := review(req, &answer)
	if err != nil {
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err)
		return
	}
	write(w, http.StatusOK, response)
}

// checkMediaType refuses what says that it is no JSON. A body that says nothing is
// taken for JSON, as the generic server does.
func checkMediaType(contentType string) error {
	if contentType == "" || contentType == runtime.ContentTypeJSON {
		return nil
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && mediaType == runtime.ContentTypeJSON {
		return nil
	}
	return fmt.Errorf("the body is of the media type %q: only %s is judged", contentType, runtime.ContentTypeJSON)
}

// failFull answers that there is no room.
func failFull(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	fail(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, errors.New("too many reviews are being judged: try again later"))
}

// read reads the body into buffer and returns it, or answers why it cannot be
// read. It is valid as long as the buffer is not used again.
func read(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer) ([]byte, bool) {
	if length := r.ContentLength; length > 0 && length <= MaxBodyBytes { // no more than it has claimed
		buffer.Grow(int(length) + bytes.MinRead)
	}
	_, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err == nil {
		return buffer.Bytes(), true
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		fail(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
			fmt.Errorf("the review is larger than %d bytes: exclude objects of that size in the webhook registration", MaxBodyBytes))
		return nil, false
	}
	fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Errorf("reading the body: %w", err))
	return nil, false
}

// withDeadline leaves time to answer before the caller gives up. The generic
// server has turned ?timeout= into the deadline of ctx.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, maxDuration)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, min(left-min(answerMargin, left/5), maxDuration))
}

// fail answers with a status, as every other path of an API server does.
func fail(w http.ResponseWriter, code int32, reason metav1.StatusReason, err error) {
	write(w, int(code), &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  err.Error(),
		Reason:   reason,
		Code:     code,
	})
}

func write(w http.ResponseWriter, code int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil { // unreachable: all types marshal
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(encoded); err != nil {
		klog.V(4).InfoS("The caller did not wait for the answer", "err", err)
	}
}
