// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain serves the handler of a generic API server, in the place of its HTTP
// server, so that it can be stopped without losing a request.
//
// The HTTP/2 server of Go ends a connection with a GOAWAY frame that names the last
// request it has seen, and drops what is on its way at that moment. A client may send
// such a request again. kube-aggregator cannot, since it passes bodies on as they come:
// it answers 503, and a webhook has failed. RFC 9113, section 6.8, has a better way: a
// GOAWAY frame that names no last request. The client sends no more, and all that it
// has sent is answered. This package adds that frame.
//
// It does not know what is served, when to stop, and who callers are.
package drain
