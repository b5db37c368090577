// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package controlplane_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portcullis-dev/portcullis/test/controlplane"
	"github.com/portcullis-dev/portcullis/test/controlplane/controlplanetest"
)

const (
	// patience is how long a step may take on a busy machine before it counts as stuck.
	patience     = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
)

// TestControlPlane takes one control plane through what others rely on.
func TestControlPlane(t *testing.T) {
	gate := newGate(t)
	began := time.Now()
	c := controlplanetest.Start(t, controlplane.Options{WebhookUsers: map[string]string{gate.Address(): "webhook-caller"}})
	t.Logf("ready after %s", time.Since(began).Round(10*time.Millisecond))
	admin := client(t, c.Admin())

	t.Run("an administrator may do everything", func(t *testing.T) {
		if _, err := admin.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a user without rights is known and refused", func(t *testing.T) {
		config, err := c.Config("alice", "developers")
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "alice" cannot list resource "namespaces"`) {
			t.Errorf("got %v, want 403 that names alice", err)
		}
	})
	t.Run("a service account is known by its token", func(t *testing.T) { testServiceAccount(t, c) })
	t.Run("kubectl is of the version of the server", func(t *testing.T) { testKubectl(t, c) })
	t.Run("controllers work", func(t *testing.T) { testControllers(t, admin) })
	t.Run("the aggregator passes on who asks", func(t *testing.T) { testAggregation(t, c, admin, gate) })
	t.Run("webhooks are called as a user", func(t *testing.T) { testWebhookUser(t, admin, gate) })
	t.Run("restarts recover", func(t *testing.T) { testRestarts(t, c, admin) })
	t.Run("requests are audited", func(t *testing.T) {
		log, err := os.ReadFile(c.AuditLog)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"username":"alice"`, `"authorization.k8s.io/decision":"forbid"`} {
			if !strings.Contains(string(log), want) {
				t.Errorf("the audit log lacks %s", want)
			}
		}
	})
}

func testServiceAccount(t *testing.T, c *controlplane.ControlPlane) {
	file, err := c.ServiceAccountKubeconfig(t.Context(), "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:serviceaccount:default:default"`) {
		t.Errorf("got %v, want 403 that names the service account", err)
	}
}

func testKubectl(t *testing.T, c *controlplane.ControlPlane) {
	output, err := c.Kubectl(t.Context(), c.AdminKubeconfig, "version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, want := range []string{"Client Version: v1.36.3\n", "Server Version: v1.36.3\n"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("kubectl version lacks %s, got:\n%s", want, output)
		}
	}
}

// testControllers needs the deployment, replicaset and namespace controllers, and the garbage collector.
func testControllers(t *testing.T, admin kubernetes.Interface) {
	const namespace = "controlled"
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "demo"}
	replicas := int32(2)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "demo", Image: "demo"}}},
			},
		},
	}
	if _, err := admin.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := func(want int) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			list, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == want, err
		}
	}
	waitFor(t, "the Pods of the Deployment", pods(2))
	if err := admin.AppsV1().Deployments(namespace).Delete(t.Context(), "demo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the garbage collector", pods(0))
	if err := admin.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the namespace", func(ctx context.Context) (bool, error) {
		_, err := admin.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func testRestarts(t *testing.T, c *controlplane.ControlPlane, admin kubernetes.Interface) {
	for _, tc := range []struct {
		name string
		do   func() error
	}{
		{"kube-apiserver is restarted", func() error { return c.APIServer.Restart(t.Context()) }},
		{"kube-apiserver is killed", func() error {
			c.APIServer.Kill()
			return c.APIServer.Start(t.Context())
		}},
		{"etcd is killed", func() error {
			c.Etcd.Kill()
			return c.Etcd.Start(t.Context())
		}},
		{"kube-controller-manager is restarted", func() error { return c.ControllerManager.Restart(t.Context()) }},
	} {
		began := time.Now()
		if err := tc.do(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		waitFor(t, tc.name, func(ctx context.Context) (bool, error) {
			_, err := admin.CoreV1().Services("gate").Get(ctx, "gate", metav1.GetOptions{})
			return err == nil, nil
		})
		t.Logf("%s: %s", tc.name, time.Since(began).Round(10*time.Millisecond))
	}
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func waitFor(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), pollInterval, patience, true, condition); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}
