//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestZZBurst(t *testing.T) {
	s := newScene(t, "zz")
	s.storeDenials(1)
	client := s.hurried(writeTimeout)
	var failed atomic.Int64
	var last atomic.Value
	for round := range 10 {
		for _, old := range s.live()[:1] {
			old.Kill()
			if err := old.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.waitWhole()
		}
		var g sync.WaitGroup
		for i := range 150 {
			g.Go(func() {
				_, err := client.CoreV1().ConfigMaps(s.namespace).Create(context.Background(), s.configMap(fmt.Sprintf("b-%d-%d", round, i), goodKind), metav1.CreateOptions{})
				if err != nil {
					failed.Add(1)
					last.Store(err.Error())
				}
			})
		}
		g.Wait()
		t.Log(round, failed.Load(), last.Load())
	}
}
