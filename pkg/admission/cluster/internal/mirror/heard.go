// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// heardWatch is a watch that notes each time that the API server says anything. When
// nothing changes, it says so about once a minute.
type heardWatch struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

func listen(given watch.Interface, heard func()) watch.Interface {
	w := &heardWatch{Interface: given, events: make(chan watch.Event), stopped: make(chan struct{})}
	go w.pass(heard)
	return w
}

func (w *heardWatch) pass(heard func()) {
	defer close(w.events)
	for event := range w.Interface.ResultChan() {
		heard()
		select {
		case w.events <- event:
		case <-w.stopped:
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (w *heardWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *heardWatch) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}
