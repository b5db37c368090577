// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// requestTimeout is the default timeout of a webhook.
const requestTimeout = 10 * time.Second

// sample is what a target needed in a round.
type sample struct {
	requests  int
	elapsed   time.Duration
	cpu       time.Duration
	resident  int64           // bytes, at the end of the round
	latencies []time.Duration // in ascending order
}

// drive asks a target as long and as hard as l says. Any fault is an error, and
// there is no sample.
func drive(ctx context.Context, t *target, question *review, l load) (*sample, error) {
	clients := make([]*http.Client, l.connections)
	for i := range clients {
		transport := t.transport()
		defer transport.CloseIdleConnections()
		clients[i] = &http.Client{Transport: transport, Timeout: requestTimeout}
		// The handshake is not measured.
		if _, err := ask(ctx, clients[i], t, question); err != nil {
			return nil, err
		}
	}
	before, err := readUsage(t.pid)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	latencies, err := askTogether(ctx, clients, t, question, l)
	elapsed := time.Since(start)
	if err != nil {
		return nil, err
	}
	after, err := readUsage(t.pid)
	if err != nil {
		return nil, err
	}
	slices.Sort(latencies)
	return &sample{
		requests: len(latencies), elapsed: elapsed,
		cpu: after.cpu - before.cpu, resident: after.resident, latencies: latencies,
	}, nil
}

// askTogether asks until the time is over or a request has failed, and returns
// how long each took.
func askTogether(ctx context.Context, clients []*http.Client, t *target, question *review, l load) ([]time.Duration, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	end := time.Now().Add(l.duration)
	perWorker := make([][]time.Duration, l.concurrency)
	var workers sync.WaitGroup
	for i := range l.concurrency {
		workers.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				took, err := ask(ctx, clients[i%len(clients)], t, question)
				if err != nil {
					stop(err)
					return
				}
				perWorker[i] = append(perWorker[i], took)
			}
		})
	}
	workers.Wait()
	return slices.Concat(perWorker...), context.Cause(ctx)
}

// askOnce asks over a connection of its own.
func askOnce(ctx context.Context, t *target, question *review) error {
	transport := t.transport()
	defer transport.CloseIdleConnections()
	_, err := ask(ctx, &http.Client{Transport: transport, Timeout: requestTimeout}, t, question)
	return err
}

// ask sends one request as kube-apiserver does and checks the answer. It returns
// the time from sending until the answer was there.
func ask(ctx context.Context, client *http.Client, t *target, question *review) (time.Duration, error) {
	body, uid := question.next()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url+"?timeout="+requestTimeout.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "application/json, */*")
	request.Header.Set("Content-Type", "application/json")
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReviewSize))
	took := time.Since(start)
	switch {
	case err != nil:
		return 0, err
	case response.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("HTTP %s: %.500s", response.Status, answer)
	case response.ProtoMajor != 2:
		return 0, fmt.Errorf("%s and not HTTP/2", response.Proto)
	}
	return took, t.check(answer, uid)
}

// check says what is wrong with an answer.
func (t *target) check(answer []byte, uid string) error {
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &out); err != nil {
		return fmt.Errorf("the answer is no AdmissionReview: %w", err)
	}
	switch {
	case out.Response == nil:
		return fmt.Errorf("the answer has no response: %.500s", answer)
	case string(out.Response.UID) != uid:
		return fmt.Errorf("the answer is to %q, the question was %q", out.Response.UID, uid)
	case out.Response.Allowed != t.allowed:
		return fmt.Errorf("allowed is %t, want %t: %.500s", out.Response.Allowed, t.allowed, answer)
	case len(out.Response.Patch) > 0 != t.changes:
		return fmt.Errorf("the patch is %q, want one: %t", out.Response.Patch, t.changes)
	}
	return nil
}
