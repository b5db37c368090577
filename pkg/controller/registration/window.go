// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Window is a time in which nothing is judged.
type Window struct {
	// Until is its end.
	Until time.Time
	// Reason is why, in one short line.
	Reason string
}

// state is what a configuration says at a time: nothing, or a window that is open, or
// one that is to be closed and why.
type state struct {
	open  *Window
	close string // why; empty for nothing to do
}

// read says what object says at now. Nothing that was read before counts: a server
// that has just been started decides as all others.
func read(object *unstructured.Unstructured, now time.Time) state {
	annotations := object.GetAnnotations()
	reason := oneLine(annotations[ReasonAnnotation])
	raw, ok := annotations[UntilAnnotation]
	if !ok {
		if _, forgotten := annotations[ReasonAnnotation]; forgotten {
			return state{close: strings.TrimSuffix("ended: "+UntilAnnotation+" was removed: "+reason, ": ")}
		}
		return state{}
	}
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(raw))
	if err != nil {
		return state{close: fmt.Sprintf("refused: %s %q is no time as in RFC 3339, such as %s", UntilAnnotation, oneLine(raw), now.Add(time.Hour).UTC().Format(time.RFC3339))}
	}
	if !now.Before(until) {
		return state{close: strings.TrimSuffix(fmt.Sprintf("ended: it was until %s: %s", stamp(until), reason), ": ")}
	}
	written, ok := writtenAt(object)
	switch {
	case !ok:
		return state{close: "refused: no managedFields say when " + UntilAnnotation + " was written"}
	case until.Sub(now) > MaxWindow+skew, until.Sub(written) > MaxWindow+skew:
		return state{close: fmt.Sprintf("refused: %s %s is more than %s after it was written", UntilAnnotation, stamp(until), MaxWindow)}
	case reason == "":
		return state{close: "refused: " + ReasonAnnotation + " does not say why"}
	}
	return state{open: &Window{Until: until.UTC(), Reason: reason}}
}

// writtenAt is when kube-apiserver was last told until when, and false when nobody
// knows.
func writtenAt(object *unstructured.Unstructured) (time.Time, bool) {
	entry := writer(object)
	if entry == nil || entry.Time == nil {
		return time.Time{}, false
	}
	return entry.Time.Time, true
}

// writer is the latest entry of those who have written until when, or nil.
func writer(object *unstructured.Unstructured) *metav1.ManagedFieldsEntry {
	var latest *metav1.ManagedFieldsEntry
	entries := object.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if entry.FieldsV1 == nil || !strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+UntilAnnotation+`"`) {
			continue
		}
		if latest == nil || entry.Time != nil && latest.Time.Before(entry.Time) {
			latest = entry
		}
	}
	return latest
}

// oneLine is text without what would break a line or a header, and not longer than
// maxReason.
func oneLine(text string) string {
	line := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(line); len(runes) > maxReason {
		return string(runes[:maxReason]) + "..."
	}
	return line
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
