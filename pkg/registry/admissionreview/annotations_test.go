// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

func annotationsOf(t *testing.T, in map[string]string) map[string]string {
	t.Helper()
	answer := verdict.Allow()
	answer.AuditAnnotations = in
	out := review(t, answer).AuditAnnotations
	for key := range out {
		// An API server puts the name of the webhook in front and drops what is
		// then no qualified name.
		if faults := validation.IsQualifiedName("validate.policy.portcullis.dev/" + key); len(faults) > 0 {
			t.Errorf("an API server drops the key %q: %s", key, faults)
		}
	}
	return out
}

func TestAuditAnnotations(t *testing.T) {
	exact := "p/" + strings.Repeat("k", 61)
	tests := []struct {
		name     string
		in, want map[string]string
	}{
		{name: "none"},
		{
			name: "a slash becomes a dot",
			in:   map[string]string{"demo-policy.example.com/high-replica-count": "6", verdict.ValidationFailureKey: "[]"},
			want: map[string]string{"demo-policy.example.com.high-replica-count": "6", "validation.policy.admission.k8s.io.validation_failure": "[]"},
		},
		{name: "as long as is allowed", in: map[string]string{exact: "v"}, want: map[string]string{"p." + strings.Repeat("k", 61): "v"}},
		{
			name: "too long",
			in:   map[string]string{exact + "k": "v"},
			want: map[string]string{"p." + strings.Repeat("k", 40) + "-354ecfcaad97911d00e0": "v"},
		},
		{
			name: "two keys with one name",
			in:   map[string]string{"a/b.c": "1", "a.b/c": "2", "a/c": "3"},
			want: map[string]string{"a.b.c-c06205148f780eb7bafc": "1", "a.b.c-fc7cd9c4e073b50b1ba8": "2", "a.c": "3"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := annotationsOf(t, test.in); !maps.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestLongKeysStayDistinct uses more keys than a hash of 32 bits could tell apart.
func TestLongKeysStayDistinct(t *testing.T) {
	const keys = 200_000
	prefix := strings.Repeat("a-long-name-of-a-policy.", 4) + "example.com/"
	in := make(map[string]string, keys)
	for i := range keys {
		in[fmt.Sprintf("%s%d", prefix, i)] = ""
	}
	if got := len(annotationsOf(t, in)); got != keys {
		t.Errorf("%d of %d annotations are left", got, keys)
	}
}
