// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditLog is the audit log of kube-apiserver from a position on. A request is in it
// before it is answered, and a watch when it has ended.
type auditLog struct{ from int64 }

// newAuditLog is the audit log from now on.
func newAuditLog(t *testing.T) auditLog {
	t.Helper()
	info, err := os.Stat(shared.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	return auditLog{info.Size()}
}

// events are those that mention something and are wanted.
func (l auditLog) events(t *testing.T, mention string, wanted func(*auditv1.Event) bool) []auditv1.Event {
	t.Helper()
	file, err := os.Open(shared.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(l.from, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	var events []auditv1.Event
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		if !bytes.Contains(line, []byte(mention)) {
			continue
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		if wanted(&event) {
			events = append(events, event)
		}
	}
	return events
}

func describe(events []auditv1.Event) string {
	text := ""
	for _, event := range events {
		code := int32(0)
		if event.ResponseStatus != nil {
			code = event.ResponseStatus.Code
		}
		text += fmt.Sprintf("\n%s %s: %d, from %s to %s", event.Verb, event.RequestURI, code, event.RequestReceivedTimestamp, event.StageTimestamp)
	}
	return text
}
