// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// configuration is one in which annotations were written at written.
func configuration(kind, name string, written time.Time, annotations map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
		"webhooks": []any{
			map[string]any{
				"name": "a.example.com", "failurePolicy": "Ignore", "timeoutSeconds": int64(10),
				"clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "kubernetes", "path": "/" + kind + "/" + name}},
			},
			map[string]any{"name": "b.example.com", "failurePolicy": "Fail"},
		},
	}}
	object.SetName(name)
	object.SetResourceVersion("1")
	object.SetAnnotations(annotations)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{}}`), Time: &metav1.Time{Time: now().Add(time.Hour)}},
		{Manager: "kubectl-patch", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + UntilAnnotation + `":{}}}}`), Time: &metav1.Time{Time: written}},
	})
	return object
}

func TestWhatAConfigurationSays(t *testing.T) {
	hour := now().Add(time.Hour)
	tests := []struct {
		name    string
		until   string // not set when empty
		reason  string // not set when empty
		written time.Time
		change  func(*unstructured.Unstructured)
		open    string // reason
		close   string // part of it
	}{
		{name: "nothing"},
		{name: "an hour", until: stamp(hour), reason: "INC-1", open: "INC-1"},
		{name: "another zone", until: "2026-03-01T15:00:00+02:00", reason: "INC-1", open: "INC-1"},
		{name: "as long as may be", until: stamp(now().Add(MaxWindow)), reason: "INC-1", open: "INC-1"},
		{name: "no reason", until: stamp(hour), close: "refused: " + ReasonAnnotation + " does not say why"},
		{name: "a blank reason", until: stamp(hour), reason: " \n", close: "refused: " + ReasonAnnotation + " does not say why"},
		{name: "a reason with lines", until: stamp(hour), reason: "one\r\n\ttwo\x00\xff three", open: "one two three"},
		{name: "a long reason", until: stamp(hour), reason: strings.Repeat("é", 500), open: strings.Repeat("é", maxReason) + "..."},
		{name: "over", until: stamp(now()), reason: "INC-1", close: "ended: it was until 2026-03-01T12:00:00Z: INC-1"},
		{name: "too far", until: stamp(now().Add(MaxWindow + 2*skew)), close: "refused: " + UntilAnnotation + " 2026-03-01T16:02:00Z is more than 4h0m0s after it was written"},
		{name: "years", until: "9999-12-31T23:59:59Z", close: "refused: "},
		// A server that comes up later must not take it for sound.
		{name: "too far when it was written", until: stamp(hour), written: now().Add(-4 * time.Hour), close: "refused: "},
		{name: "written by others later", until: stamp(hour), reason: "INC-1", written: now().Add(-3 * time.Hour), open: "INC-1"},
		{name: "no time", until: "tomorrow", close: `refused: ` + UntilAnnotation + ` "tomorrow" is no time as in RFC 3339, such as 2026-03-01T13:00:00Z`},
		{name: "no zone", until: "2026-03-01T13:00:00", close: "is no time"},
		{name: "seconds", until: "1772370000", close: "is no time"},
		{name: "an empty time", until: " ", close: "is no time"},
		{name: "only a reason", reason: "INC-1", close: "ended: " + UntilAnnotation + " was removed: INC-1"},
		{name: "nobody wrote it", until: stamp(hour), change: func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }, close: "refused: no managedFields"},
		{name: "written at no time", until: stamp(hour), change: func(o *unstructured.Unstructured) {
			fields := o.GetManagedFields()
			fields[1].Time = nil
			o.SetManagedFields(fields)
		}, close: "refused: no managedFields"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			annotations := map[string]string{"other": "value", LastAnnotation: "before"}
			if tc.until != "" {
				annotations[UntilAnnotation] = tc.until
			}
			if tc.reason != "" {
				annotations[ReasonAnnotation] = tc.reason
			}
			if tc.written.IsZero() {
				tc.written = now()
			}
			object := configuration("ValidatingWebhookConfiguration", "portcullis", tc.written, annotations)
			if tc.change != nil {
				tc.change(object)
			}
			got := read(object, now())
			switch {
			case (tc.open != "") != (got.open != nil), got.open != nil && got.open.Reason != tc.open:
				t.Errorf("got window %s, want reason %q", shown(got.open), tc.open)
			case (tc.close == "") != (got.close == ""), !strings.Contains(got.close, tc.close):
				t.Errorf("got %q, want %q", got.close, tc.close)
			}
		})
	}
}

// FuzzWhatAConfigurationSays: whatever is written, a window is short, and its reason
// fits into a header.
func FuzzWhatAConfigurationSays(f *testing.F) {
	f.Add(stamp(now().Add(time.Hour)), "INC-1")
	f.Add("9999-12-31T23:59:59.999999999+23:59", "\x00\u2028\r\n")
	f.Fuzz(func(t *testing.T, until, reason string) {
		object := configuration("ValidatingWebhookConfiguration", "portcullis", now(), map[string]string{UntilAnnotation: until, ReasonAnnotation: reason})
		open := read(object, now()).open
		if open == nil {
			return
		}
		if left := open.Until.Sub(now()); left <= 0 || left > MaxWindow+skew {
			t.Errorf("%q is open for %s", until, left)
		}
		if open.Reason == "" || len([]rune(open.Reason)) > maxReason+3 || strings.ContainsAny(open.Reason, "\r\n\x00") {
			t.Errorf("%q became %q", reason, open.Reason)
		}
	})
}

func shown(w *Window) string {
	if w == nil {
		return "none"
	}
	return fmt.Sprintf("until %s: %q", stamp(w.Until), w.Reason)
}
