// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration follows the webhook configurations through which a
// kube-apiserver asks the server, for one thing: in an emergency an administrator
// may write into one of them until when nothing is to be judged. Until then
// BreakGlass says so, and then puts the configuration back: each webhook has
// failurePolicy Fail again, and the annotations are gone.
//
// A configuration that is absent, cannot be read, or says what cannot be understood
// opens nothing. Every replica follows all configurations and tries to put them
// back; whoever is first does.
//
// Of RBAC it needs get, list, watch and patch of the configurations by name. It makes
// and deletes nothing, and does not know who judges, or where requests come in.
package registration

import "time"

// The annotations of a webhook configuration.
const (
	// UntilAnnotation is until when nothing is judged, as in RFC 3339.
	UntilAnnotation = "policy.portcullis.dev/break-glass-until"
	// ReasonAnnotation is why, for whoever asks later.
	ReasonAnnotation = "policy.portcullis.dev/break-glass-reason"
	// LastAnnotation is what became of it. The server writes it.
	LastAnnotation = "policy.portcullis.dev/break-glass-last"
)

// MaxWindow is how long at most nothing is judged after someone has said so. Who
// needs longer says it again.
const MaxWindow = 4 * time.Hour

// skew is how much clocks may differ.
const skew = time.Minute

// maxReason is how many characters of a reason are passed on: it becomes part of each
// answer.
const maxReason = 150
