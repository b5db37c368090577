// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// judged is what becomes of ConfigMaps, with and without the label that bootstrapPolicy
// denies, that are created all the time.
type judged struct {
	admitted, denied atomic.Int64
	mu               sync.Mutex
	wrong            []string // what was neither admitted as it should be nor denied as it should be
	stop             context.CancelFunc
	asking           sync.WaitGroup
}

// judge creates ConfigMaps as dry runs until stop, of which every second one is to be
// denied with message.
func judge(t *testing.T, c *cluster.Cluster, message string) *judged {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	j := &judged{stop: stop}
	for range 2 {
		j.asking.Go(func() {
			for bad := false; ctx.Err() == nil; bad = !bad {
				err := create(ctx, client, bad)
				if ctx.Err() == nil {
					j.add(bad, err, message)
				}
			}
		})
	}
	t.Cleanup(j.end)
	return j
}

// end returns when all questions are answered.
func (j *judged) end() {
	j.stop()
	j.asking.Wait()
}

func create(ctx context.Context, client kubernetes.Interface, bad bool) error {
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "judged-", Labels: map[string]string{"denied": fmt.Sprint(bad)}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (j *judged) add(bad bool, err error, message string) {
	switch {
	case !bad && err == nil:
		j.admitted.Add(1)
	case bad && err != nil && strings.Contains(err.Error(), message):
		j.denied.Add(1)
	default:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.wrong = append(j.wrong, fmt.Sprintf("bad %v: %v", bad, err))
	}
}

// more waits until n more of each kind were judged.
func (j *judged) more(t *testing.T, n int64) {
	t.Helper()
	admitted, denied := j.admitted.Load()+n, j.denied.Load()+n
	eventually(t, "more was judged", func() string {
		if j.admitted.Load() < admitted || j.denied.Load() < denied {
			return fmt.Sprintf("%d admitted, %d denied, wrong: %v", j.admitted.Load(), j.denied.Load(), j.told())
		}
		return ""
	})
}

func (j *judged) told() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wrong
}

// check ends the questions and fails the test if something was wrong.
func (j *judged) check(t *testing.T, what string) {
	t.Helper()
	j.end()
	t.Logf("%s: %d admitted, %d denied, %d wrong", what, j.admitted.Load(), j.denied.Load(), len(j.told()))
	for _, wrong := range j.told() {
		t.Errorf("%s: %s", what, wrong)
	}
}

// storedPolicy is bootstrapPolicy as it may be stored.
func storedPolicy(name, message string) string {
	return strings.NewReplacer("denied.static.k8s.io", name, "denied by a bootstrap policy", message).Replace(bootstrapPolicy)
}

// deny stores a policy on ConfigMaps with the label denied, for the duration of a test,
// and returns what it says to them.
func deny(t *testing.T, c *cluster.Cluster, name string) (message string) {
	t.Helper()
	message = "denied by " + name
	must(t, c.ControlPlane, storedPolicy(name, message), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, c.ControlPlane, "", "delete", "pvap,pvapb", name) })
	must(t, c.ControlPlane, "", "wait", "--for=condition=Ready", "pvap/"+name, "--timeout=1m")
	return message
}
