// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tally counts what pairs are examples of, so that a generator which proves
// little is found out.
type tally struct {
	pairs  int
	counts map[string]int
}

// enough is the number of pairs from which on shares are looked at: what the
// questions of one scenario have in common comes in lumps.
const enough = 10_000

// shares are the smallest shares of pairs, in one of so many.
var shares = map[string]int{
	"matched":                     4,
	"allowed":                     10,
	"allowed by what matches":     20,
	"denied":                      4,
	"denied by an expression":     20,
	"denied for a configuration":  200,
	"warned":                      20,
	"annotated":                   20,
	"failures in the audit event": 20,
	"error of an expression":      20,
	"error of a variable":         100,
	"error of compiling":          200,
	"over the limit of a call":    800,
	"out of budget":               800,
	"dear message":                4000,
	"equivalent":                  200,
	"converted":                   400,
	"forwarded otherwise":         400,
	"with params":                 20,
	"with several params":         100,
	"reason other than Invalid":   50,
}

// trouble is in messages of denials that no expression has decided.
var trouble = regexp.MustCompile(`resulted in error|compilation error|failed to configure|cost budget|failed messageExpression`)

func (t *tally) add(q *question, r *result) {
	t.pairs++
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	a := &r.upstream
	all := a.Message + "\n" + strings.Join(a.Warnings, "\n") + "\n" + strings.Join(slices.Collect(maps.Values(a.Annotations)), "\n")
	_, failures := a.Annotations["validation.policy.admission.k8s.io/validation_failure"]
	for name, is := range map[string]bool{
		"skipped":                     r.skipped,
		"matched":                     r.sight.matched,
		"allowed":                     a.Allowed,
		"allowed by what matches":     a.Allowed && r.sight.matched,
		"denied":                      !a.Allowed && a.Failed == "",
		"denied by an expression":     !a.Allowed && a.Failed == "" && !trouble.MatchString(a.Message),
		"denied for a configuration":  strings.Contains(a.Message, "failed to configure"),
		"warned":                      len(a.Warnings) > 0,
		"annotated":                   len(a.Annotations) > 0 && (!failures || len(a.Annotations) > 1),
		"failures in the audit event": failures,
		"error of an expression":      strings.Contains(all, "resulted in error"),
		"error of a variable":         strings.Contains(all, "composited variable"),
		"error of compiling":          strings.Contains(all, "compilation error") || strings.Contains(all, "fails to compile"),
		"over the limit of a call":    strings.Contains(all, "actual cost limit exceeded"),
		"out of budget":               strings.Contains(all, "running out of cost budget"),
		"annotation of another type":  strings.Contains(all, "unsupported return type"),
		"dear message":                strings.Contains(all, "failed messageExpression"),
		"equivalent":                  r.sight.equivalent,
		"converted":                   r.sight.converted,
		"forwarded otherwise":         r.sight.matched && q.ForwardedAs != "",
		"with params":                 r.sight.params > 0,
		"with several params":         r.sight.params > 1,
		"reason other than Invalid":   a.Reason != "" && a.Reason != "Invalid",
	} {
		if is {
			t.counts[name]++
		}
	}
}

func (t *tally) merge(other *tally) {
	t.pairs += other.pairs
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	for name, n := range other.counts {
		t.counts[name] += n
	}
}

func (t *tally) check(tb testing.TB) {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&lines, "\n%8d %s", t.counts[name], name)
	}
	tb.Logf("of %d pairs:%s", t.pairs, lines.String())
	for name, share := range shares {
		if t.pairs >= enough && t.counts[name] < t.pairs/share {
			tb.Errorf("only %d of %d pairs are %q, want one in %d: the generator proves little", t.counts[name], t.pairs, name, share)
		}
	}
}
