// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestHeardAt: that there is nothing new is heard, too.
func TestHeardAt(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_900_000_000, 0))
	began := clock.Now()
	s := &script{}
	m := start(t, s, clock)
	eventually(t, "watched", func() bool { return m.Usable() == nil && s.last() != nil && m.State().HeardAt.Equal(began) })
	clock.SetTime(began.Add(time.Minute))
	if got := m.State().HeardAt; !got.Equal(began) {
		t.Errorf("heard at %v, want %v", got, began)
	}
	s.last().Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	eventually(t, "heard", func() bool { return m.State().HeardAt.Equal(began.Add(time.Minute)) })
}
