// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// recoversWithin is how soon a cluster judges again that was dead as a whole.
const recoversWithin = time.Minute

// TestColdStart kills everything: the cluster, the replicas, and their etcd. Then
// kube-apiserver starts first, with a registration that fails closed and nobody behind
// it. Nothing is admitted unjudged; what the cluster needs to start is admitted; and
// when the rest has been started, writes are judged again, without anybody's help.
func TestColdStart(t *testing.T) {
	s := newScene(t, "cold-start")
	s.storeDenials(1)
	replicas := s.live()
	s.ControllerManager.Kill()
	for _, replica := range replicas {
		replica.Kill()
	}
	s.Storage.Kill()
	s.APIServer.Kill()
	s.Etcd.Kill()

	began := time.Now()
	for _, first := range []interface{ Start(context.Context) error }{s.Etcd, s.APIServer} {
		if err := first.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	serving := time.Since(began)
	client := s.hurried(writeTimeout)
	refused := 0
	for end := time.Now().Add(quickOr(2*time.Second, 15*time.Second)); time.Now().Before(end); {
		s.nothingUnjudged(client, refused)
		s.whatIsNeeded(client, refused)
		refused++
	}

	started := time.Now()
	var starting errgroup.Group
	starting.Go(func() error { return s.ControllerManager.Start(t.Context()) })
	starting.Go(func() error { return s.Storage.Start(t.Context()) })
	for _, replica := range replicas {
		starting.Go(func() error { return replica.Start(t.Context()) })
	}
	s.wait("a write that is judged", func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(s.namespace).Create(ctx, s.configMap("judged", goodKind), metav1.CreateOptions{})
		return err
	})
	recovered := time.Since(started)
	if err := starting.Wait(); err != nil {
		t.Fatal(err)
	}
	s.waitWhole()
	for _, d := range s.doors() {
		if denial, err := d.ask(t.Context(), s.configMap("bad", badKind(0))); err != nil || denial != s.denial(0) {
			t.Errorf("after the start, %s answers %q, %v", d.url, denial, err)
		}
	}
	t.Logf("kube-apiserver ready after       %s", serving)
	t.Logf("refused meanwhile                %d writes, good and bad", 2*refused)
	t.Logf("judged after the rest's start    %s", recovered)
	if recovered > recoversWithin {
		t.Errorf("the cluster was not itself again within %s", recoversWithin)
	}
}

// nothingUnjudged checks that no write is admitted on which policies have a say.
func (s *scene) nothingUnjudged(client kubernetes.Interface, i int) {
	s.Helper()
	for _, kind := range []string{goodKind, badKind(0)} {
		object := s.configMap(fmt.Sprintf("unjudged-%s-%d", kind, i), kind)
		if _, err := client.CoreV1().ConfigMaps(s.namespace).Create(s.Context(), object, metav1.CreateOptions{}); err == nil {
			s.Errorf("ConfigMap %s was admitted unjudged", object.Name)
		}
	}
}

// whatIsNeeded checks that what a cluster needs to start is admitted.
func (s *scene) whatIsNeeded(client kubernetes.Interface, i int) {
	s.Helper()
	ctx, name := s.Context(), fmt.Sprintf("cold-start-%d", i)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	meta := metav1.ObjectMeta{Name: name}
	node := s.as("system:node:cold-start", "system:nodes", "system:masters")
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}}}
	for what, write := range map[string]func() error{
		"a Lease of a node": func() error {
			_, err := node.CoordinationV1().Leases("kube-node-lease").Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, dry)
			return err
		},
		"a Lease in any namespace": func() error {
			_, err := client.CoordinationV1().Leases(s.namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, dry)
			return err
		},
		"a Node": func() error {
			_, err := node.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cold-start"}}, dry)
			return err
		},
		"a SubjectAccessReview": func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "ada", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
			}}
			_, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		},
		"a Pod in kube-system": func() error {
			_, err := client.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, pod, dry)
			return err
		},
		"a ConfigMap in kube-system": func() error {
			_, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, dry)
			return err
		},
		"a ConfigMap in " + cluster.Namespace: func() error {
			_, err := client.CoreV1().ConfigMaps(cluster.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, dry)
			return err
		},
		"a Pod in " + cluster.Namespace: func() error {
			_, err := client.CoreV1().Pods(cluster.Namespace).Create(ctx, restricted(pod), dry)
			return err
		},
	} {
		if err := write(); err != nil {
			s.Errorf("while nobody judges, %s is refused: %v", what, err)
		}
	}
}

// restricted is a Pod as the namespace of Portcullis wants it.
func restricted(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	yes, no := true, false
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   &yes,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return pod
}
