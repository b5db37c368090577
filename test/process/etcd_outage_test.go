// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/etcdtest"
)

const (
	// outageVariable says for how long TestProveEtcdOutage stops etcd.
	outageVariable = "PORTCULLIS_ETCD_OUTAGE"

	reviewsPerSecond = 50
	// outagePolicies deny a ConfigMap each; as many names are denied by nobody.
	outagePolicies = 100
	// calm is how long the load runs before etcd goes and after it is back.
	calm = 5 * time.Second
)

// TestProveEtcdOutage stops etcd under load and counts what goes wrong. It takes
// minutes and runs only when it is asked for, see make prove-etcd-outage.
func TestProveEtcdOutage(t *testing.T) {
	outage, err := time.ParseDuration(os.Getenv(outageVariable))
	if err != nil {
		t.Skipf("set %s to a duration, such as 60s", outageVariable)
	}
	cluster := etcdtest.Start(t, 1)
	s := launch(t, filepath.Join(t.TempDir(), "data"), "--secure-port=0", "--etcd-servers="+cluster.Endpoints()[0])
	s.waitReady(t)
	pid := s.command.Process.Pid
	for i := range outagePolicies {
		s.storeDenial(t, deniedName(i))
	}
	s.wait(t, "all policies in force", func() bool { return s.denies(t, deniedName(outagePolicies-1)) })

	load := startLoad(t, s)
	time.Sleep(calm)
	cluster.Stop()
	probes := s.probeWithoutEtcd(t, outage)
	cluster.Start(t)
	back := time.Now()
	s.wait(t, "a write", func() bool {
		policy, _ := newDenial("returned")
		_, err := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	_, binding := newDenial("returned")
	if _, err := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait(t, "the write in force", func() bool { return s.denies(t, "returned") })
	inStep := time.Since(back)
	time.Sleep(calm)
	load.end()

	restarts := 0
	if s.get(t, "/livez") != http.StatusOK || s.command.Process.Pid != pid {
		restarts++
	}
	t.Logf("etcd stopped for     %s", outage)
	t.Logf("reviews              %d, %d a second", len(load.latencies), reviewsPerSecond)
	t.Logf("wrong verdicts       %d", load.wrong)
	t.Logf("reviews unanswered   %d", load.failed)
	t.Logf("latency of a review  median %s, p99 %s, longest %s", load.percentile(50), load.percentile(99), load.percentile(100))
	t.Logf("writes refused       %d of %d, the slowest after %s", probes.refused, probes.writes, probes.slowest)
	t.Logf("other calls failed   %d of %d (discovery, OpenAPI, /livez, /readyz)", probes.failed, probes.calls)
	t.Logf("restarts             %d", restarts)
	t.Logf("in step after        %s", inStep)
	if load.wrong+load.failed+probes.failed+restarts != 0 || probes.refused != probes.writes || probes.slowest > refusedWithin || inStep > inStepWithin {
		t.Error("a promise is broken")
	}
	s.terminate(t)
}

func deniedName(i int) string { return fmt.Sprintf("denied-%03d", i%outagePolicies) }

func (s *server) storeDenial(t *testing.T, name string) {
	t.Helper()
	policy, binding := newDenial(name)
	client := s.client(t).PolicyV1alpha1()
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// load asks for verdicts at a steady rate, whether they are answered or not.
type load struct {
	stop func()

	mu        sync.Mutex
	latencies []time.Duration
	wrong     int
	failed    int
}

func startLoad(t *testing.T, s *server) *load {
	t.Helper()
	config := s.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	l := &load{}
	done := make(chan struct{})
	var group sync.WaitGroup
	l.stop = func() { close(done); group.Wait() }
	group.Go(func() {
		tick := time.NewTicker(time.Second / reviewsPerSecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			name, want := fmt.Sprintf("allowed-%03d", i), ""
			if i%2 == 0 {
				name = deniedName(i / 2)
				want = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: failed expression: object.metadata.name != '%s'", name, name, name)
			}
			group.Go(func() {
				began := time.Now()
				got, err := review(t.Context(), client, config.Host+reviewPath, name)
				l.note(time.Since(began), err, got == want)
			})
		}
	})
	return l
}

func (l *load) note(took time.Duration, err error, right bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = append(l.latencies, took)
	switch {
	case err != nil:
		l.failed++
	case !right:
		l.wrong++
	}
}

func (l *load) end() {
	l.stop()
	slices.Sort(l.latencies)
}

func (l *load) percentile(p int) time.Duration {
	return l.latencies[max(len(l.latencies)*p/100-1, 0)]
}

// outageProbes are calls that were made while etcd was gone.
type outageProbes struct {
	writes, refused int
	slowest         time.Duration
	calls, failed   int
}

// probeWithoutEtcd makes calls until the outage is over.
func (s *server) probeWithoutEtcd(t *testing.T, outage time.Duration) outageProbes {
	t.Helper()
	var probes outageProbes
	for end := time.Now().Add(outage); time.Now().Before(end); {
		began := time.Now()
		policy, _ := newDenial("refused")
		_, err := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
		probes.writes++
		probes.slowest = max(probes.slowest, time.Since(began))
		if apierrors.IsServiceUnavailable(err) && strings.Contains(err.Error(), "does not answer") {
			probes.refused++
		} else {
			t.Logf("a write without etcd: %v", err)
		}
		for _, path := range []string{"/livez", "/readyz", "/apis", groupPath, "/openapi/v3"} {
			probes.calls++
			if code := s.get(t, path); code != http.StatusOK {
				probes.failed++
				t.Logf("%s: %d", path, code)
			}
		}
	}
	return probes
}
