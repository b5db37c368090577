// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	policyv1alpha1client "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

const (
	// faultsVariable says how long the tests go on; see full.
	faultsVariable = "PORTCULLIS_FAULTS"

	// patience is how long a step may take on a busy machine before it counts as stuck.
	patience     = 2 * time.Minute
	pollInterval = 10 * time.Millisecond
)

// shared is the cluster of all tests. Each waits until it is whole.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(clustertest.Main(m, func(c *cluster.Cluster) { shared = c }))
}

// full says that the figures are wanted for which make prove-faults runs the tests,
// and not only whether there is something wrong.
func full() bool { return os.Getenv(faultsVariable) == "full" }

// quickOr is quick, unless the full figures are wanted.
func quickOr[T any](quick, whole T) T {
	if full() {
		return whole
	}
	return quick
}

// scene is what a test acts in: a namespace in a cluster that is whole.
type scene struct {
	*testing.T
	*cluster.Cluster
	namespace string
	kube      kubernetes.Interface
	policies  policyv1alpha1client.PolicyV1alpha1Interface
}

// newScene makes a namespace of this name, which is deleted at the end.
func newScene(t *testing.T, namespace string) *scene {
	t.Helper()
	s := &scene{T: t, Cluster: shared, namespace: namespace}
	var err error
	if s.kube, err = kubernetes.NewForConfig(s.Config); err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	s.policies = client.PolicyV1alpha1()
	s.waitWhole()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.kube.CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := s.kube.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return s
}

// live are the replicas that belong to the Service.
func (s *scene) live() []*cluster.Replica {
	var live []*cluster.Replica
	for _, replica := range s.Replicas {
		for _, known := range s.Balancer.Replicas() {
			if known.Address == replica.Address {
				live = append(live, replica)
			}
		}
	}
	return live
}

func addresses(replicas []*cluster.Replica) []string {
	var all []string
	for _, replica := range replicas {
		all = append(all, replica.Address)
	}
	return all
}

// waitWhole waits until all replicas are ready and kube-apiserver forwards to them.
func (s *scene) waitWhole() {
	s.Helper()
	s.waitBalanced(s.live()...)
	if err := s.WaitAvailable(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// waitBalanced waits until exactly these replicas are given connections.
func (s *scene) waitBalanced(replicas ...*cluster.Replica) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.Balancer.WaitReady(ctx, addresses(replicas)...); err != nil {
		s.Fatal(err)
	}
}

// wait waits until check returns nil.
func (s *scene) wait(what string, check func(ctx context.Context) error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("%s: %v: %v", what, err, last)
	}
}

// run runs kubectl as the administrator, which must succeed.
func (s *scene) run(input string, args ...string) string {
	s.Helper()
	output, err := s.try(input, args...)
	if err != nil {
		s.Fatal(err)
	}
	return output
}

// try runs kubectl as the administrator.
func (s *scene) try(input string, args ...string) (string, error) {
	command := s.Kubectl(s.Context(), s.AdminKubeconfig, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), err
}

// as is the access of another user.
func (s *scene) as(user string, groups ...string) kubernetes.Interface {
	s.Helper()
	config, err := s.ControlPlane.Config(user, groups...)
	if err != nil {
		s.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	return client
}

// hurried is the access of the administrator, who waits for no call longer than this.
func (s *scene) hurried(timeout time.Duration) kubernetes.Interface {
	s.Helper()
	config := rest.CopyConfig(s.Config)
	config.Timeout = timeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	return client
}

// figures are durations that were measured.
type figures []time.Duration

func (f figures) String() string {
	if len(f) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(f))
	at := func(percent int) time.Duration {
		return sorted[max(len(sorted)*percent/100-1, 0)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("median %s, p99 %s, longest %s of %d", at(50), at(99), at(100), len(sorted))
}
