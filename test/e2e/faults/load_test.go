// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// writeTimeout is how long a write is waited for: longer than kube-apiserver waits for
// a webhook.
const writeTimeout = 30 * time.Second

// tally counts what became of writes.
type tally struct {
	// right were stored and are good, or were denied by the policy about them.
	right int
	// bypassed are bad and were stored.
	bypassed int
	// failed are good and were not stored, or are bad and were refused for another
	// reason than the policy.
	failed int
	// why says for which reasons writes failed, and how many for each.
	why map[string]int
	// took says how long writes took.
	took figures
}

func (t *tally) String() string {
	text := fmt.Sprintf("%d writes: %d right, %d bypassed, %d failed; %s", t.right+t.bypassed+t.failed, t.right, t.bypassed, t.failed, t.took)
	for _, reason := range slices.Sorted(maps.Keys(t.why)) {
		text += fmt.Sprintf("\n    %d times: %s", t.why[reason], reason)
	}
	return text
}

// load writes ConfigMaps to kube-apiserver at a steady rate, whether it answers or
// not. Every other one is bad.
type load struct {
	scene    *scene
	client   kubernetes.Interface
	policies int
	stop     func()
	writing  sync.WaitGroup

	mu         sync.Mutex
	sent       int
	open       map[int]time.Time // when writes began that have no answer yet
	lastFailed time.Time         // when the last write began that has failed
	tally      tally
}

// startLoad begins to write. There must be as many denials as it is told.
func (s *scene) startLoad(policies, perSecond int) *load {
	s.Helper()
	l := &load{scene: s, client: s.hurried(writeTimeout), policies: policies, open: map[int]time.Time{}, tally: tally{why: map[string]int{}}}
	ctx, cancel := context.WithCancel(s.Context())
	l.stop = cancel
	l.writing.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			l.mu.Lock()
			l.sent++
			l.mu.Unlock()
			l.writing.Go(func() { l.write(context.WithoutCancel(ctx), i) })
		}
	})
	return l
}

func (l *load) write(ctx context.Context, i int) {
	kind, denial := goodKind, ""
	if i%2 == 1 {
		number := i / 2 % l.policies
		kind, denial = badKind(number), l.scene.denial(number)
	}
	began := time.Now()
	l.mu.Lock()
	l.open[i] = began
	l.mu.Unlock()
	object := l.scene.configMap(fmt.Sprintf("load-%06d", i), kind)
	_, err := l.client.CoreV1().ConfigMaps(l.scene.namespace).Create(ctx, object, metav1.CreateOptions{})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, i)
	l.tally.took = append(l.tally.took, time.Since(began))
	switch {
	case err == nil && denial == "", err != nil && denial != "" && strings.Contains(err.Error(), denial):
		l.tally.right++
	case err == nil:
		l.tally.bypassed++
	default:
		l.tally.failed++
		if began.After(l.lastFailed) {
			l.lastFailed = began
		}
		l.tally.why[strings.ReplaceAll(err.Error(), object.Name, "NAME")]++
	}
}

// count is how many writes were begun.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// end stops writing, waits for all answers, and looks for what was stored: a write may
// be stored whose writer was told that it failed.
func (l *load) end() *tally {
	l.scene.Helper()
	l.stop()
	l.writing.Wait()
	stored, err := l.client.CoreV1().ConfigMaps(l.scene.namespace).List(l.scene.Context(), metav1.ListOptions{})
	if err != nil {
		l.scene.Fatal(err)
	}
	bad := 0
	for i := range stored.Items {
		if kind := stored.Items[i].Data[kindKey]; strings.HasPrefix(kind, "bad-") {
			bad++
		}
	}
	if bad > l.tally.bypassed {
		l.tally.bypassed = bad
	}
	return &l.tally
}

// atLeast is an error until so many writes are answered.
func (l *load) atLeast(count int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have := len(l.tally.took); have < count {
		return fmt.Errorf("%d writes are answered", have)
	}
	return nil
}

// calmSince is an error when a write that was begun after then, and not for a while, has
// failed or has no answer.
func (l *load) calmSince(then time.Time, calm time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := then
	if l.lastFailed.After(began) {
		began = l.lastFailed
	}
	for _, open := range l.open {
		if open.After(began) && time.Since(open) > time.Second {
			began = open
		}
	}
	if since := time.Since(began); since < calm {
		return fmt.Errorf("a write of %s ago has failed or has no answer", since)
	}
	return nil
}

// failed is how many writes have failed.
func (l *load) failed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally.failed
}

// stuckWithin says whether a write gets no answer for a second. It is not looked for
// longer than patience.
func (l *load) stuckWithin(ctx context.Context, patience time.Duration) bool {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, began := range l.open {
			if time.Since(began) > time.Second {
				return true, nil
			}
		}
		return false, nil
	})
	return err == nil
}
