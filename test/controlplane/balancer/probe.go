// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"time"
)

// How often and how patiently replicas are probed. One answer counts, good or bad.
const (
	probeInterval = 100 * time.Millisecond
	probeTimeout  = time.Second
)

// prober asks replicas whether they are ready, as the kubelet does: over a connection of its
// own each time, without verifying who answers.
type prober struct {
	client *http.Client
}

func newProber() *prober {
	return &prober{client: &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run tells of each answer until ctx ends. It is not called after that with what was asked before.
func (p *prober) run(ctx context.Context, address string, tell func(ready bool)) {
	next := time.NewTicker(probeInterval)
	defer next.Stop()
	for {
		ready := p.ready(ctx, address)
		if ctx.Err() != nil {
			return
		}
		tell(ready)
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *prober) ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := p.client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4<<10)) // so that the server can write it
	return response.StatusCode == http.StatusOK
}
