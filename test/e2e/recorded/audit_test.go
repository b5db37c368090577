// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/component-base/metrics/testutil"
)

// annotationsOf returns what kube-apiserver wrote into its audit log with the requests of
// these numbers.
func (w *world) annotationsOf(t *testing.T, ids []string) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	eventually(t, "the audit log", func(context.Context) error {
		content, err := os.ReadFile(w.AuditLog)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(content) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break // it is being written
			}
			var event auditv1.Event
			if err := json.Unmarshal(line, &event); err != nil {
				return err
			}
			found[string(event.AuditID)] = event.Annotations
		}
		for _, id := range ids {
			if _, ok := found[id]; !ok {
				return fmt.Errorf("it has no event %s", id)
			}
		}
		return nil
	})
	return found
}

// asked is how many requests kube-apiserver has sent to the webhook.
func (w *world) asked(t *testing.T) int {
	t.Helper()
	raw, err := w.client.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	metrics := testutil.NewMetrics()
	if err := testutil.ParseMetrics(string(raw), &metrics); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, sample := range metrics["apiserver_admission_webhook_request_total"] {
		if sample.Metric["name"] == webhook {
			total += int(sample.Value)
		}
	}
	return total
}
