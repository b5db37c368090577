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

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
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
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, metric := range families["apiserver_admission_webhook_request_total"].GetMetric() {
		if label(metric, "name") == webhook {
			total += metric.GetCounter().GetValue()
		}
	}
	return int(total)
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
