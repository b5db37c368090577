// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "testing"

func TestHistory(t *testing.T) {
	h := newHistory()
	note := func(began mark, revision int64) { h.note(t.Context(), began, revision) }
	first, ended := h.join()
	note(first, 100)
	overtaken := h.mark()
	note(overtaken, 102)
	note(overtaken, 101) // answered later, asked at the same time
	note(h.mark(), 0)    // an answer without a revision
	if got := h.mark(); got != (mark{revision: 102}) {
		t.Fatalf("history at %+v, want revision 102 of the first epoch", got)
	}
	select {
	case <-ended:
		t.Fatal("the history has ended without reason")
	default:
	}
	before := h.mark()
	note(before, 50)
	note(before, 51) // asked before it was known
	if got := h.mark(); got != (mark{epoch: 1, revision: 50}) {
		t.Errorf("history at %+v, want revision 50 of the second epoch", got)
	}
	select {
	case <-ended:
	default:
		t.Error("the history has gone back unnoticed")
	}
	second, ended := h.join()
	select {
	case <-ended:
		t.Error("the second epoch has ended, too")
	default:
	}
	h.tell(first, 200) // a watch of the past
	h.tell(second, 60)
	if got := h.mark(); got != (mark{epoch: 1, revision: 60}) {
		t.Errorf("history at %+v, want revision 60 of the second epoch", got)
	}
	doubts := h.doubted()
	h.end()
	select {
	case <-ended:
	default:
		t.Error("the second epoch has not ended")
	}
	if h.doubted() == doubts {
		t.Error("nobody doubts")
	}
}
