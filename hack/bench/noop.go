// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/util/cert"
)

const (
	noopAddress   = "127.0.0.1"
	maxReviewSize = 16 << 20
)

// announcement is the line with which the webhook says where it is.
type announcement struct {
	URL string `json:"url"`
	CA  []byte `json:"ca"`
}

// serveNoop is the measure of all others: a webhook as one writes it with the
// libraries of Kubernetes, which decodes the review and its object and admits it.
// It announces itself on out and ends when nobody holds the other end of in.
func serveNoop(in io.Reader, out io.Writer) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey(noopAddress, nil, nil)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	handler, err := newNoopHandler()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(noopAddress, "0")) //nolint:noctx // it ends with the process
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	line, err := json.Marshal(announcement{URL: "https://" + listener.Addr().String() + "/", CA: certificate})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", line)
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newNoopHandler() (http.Handler, error) {
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewSize))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := admit(decoder, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}), nil
}

// admit returns the answer to a review. The object is decoded, and not looked at.
func admit(decoder runtime.Decoder, body []byte) ([]byte, error) {
	var in admissionv1.AdmissionReview
	if _, _, err := decoder.Decode(body, nil, &in); err != nil {
		return nil, err
	}
	if in.Request == nil {
		return nil, errors.New("the review has no request")
	}
	if len(in.Request.Object.Raw) > 0 {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(in.Request.Object.Raw); err != nil {
			return nil, fmt.Errorf("object: %w", err)
		}
	}
	return json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true},
	})
}
