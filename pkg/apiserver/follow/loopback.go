// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// loopbackRetryPeriod is how soon the server asks itself again.
const loopbackRetryPeriod = 250 * time.Millisecond

// patientLoopback returns the loopback client configuration for informers. While
// etcd or the watch cache is not there, their requests are repeated below them:
// they would rest for up to a minute otherwise, see the defaults in
// k8s.io/client-go/tools/cache/reflector.go.
func patientLoopback(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patientTransport{next} })
	return config
}

// patientTransport repeats reads until the server can answer them.
type patientTransport struct{ next http.RoundTripper }

// RoundTrip returns the first answer that is not "try again later", or the last
// one when the context of the request ends.
func (t patientTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := t.next.RoundTrip(request)
		if err != nil || request.Method != http.MethodGet ||
			(response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable) {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return response, nil
		case <-time.After(loopbackRetryPeriod):
			_ = response.Body.Close() // nothing is expected from it
		}
	}
}
