// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
)

// newControllerManager runs all controllers that are on by default, each as its own service account.
func (c *ControlPlane) newControllerManager() (*component.Component, error) {
	_, port, err := net.SplitHostPort(c.addresses.controllerManager)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.Kubeconfig(controllerManagerUser)
	if err != nil {
		return nil, err
	}
	client, err := c.credentials.cluster.httpClient(nil)
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error {
		if err := get(ctx, client, "https://"+c.addresses.controllerManager+"/healthz"); err != nil {
			return err
		}
		return c.controlled(ctx)
	}
	return c.component("kube-controller-manager", []string{
		"--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + port,
		"--tls-cert-file=" + c.credentials.controllerManager.cert,
		"--tls-private-key-file=" + c.credentials.controllerManager.key,
		"--controllers=*",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.credentials.serviceAccountKey,
		"--root-ca-file=" + c.credentials.cluster.certFile,
		"--cluster-signing-cert-file=" + c.credentials.cluster.certFile,
		"--cluster-signing-key-file=" + c.credentials.cluster.keyFile,
		"--leader-elect=false",
		// With the default of 20 a second, it takes four seconds to ask for the tokens of all controllers.
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
	}, ready), nil
}

// controlled is nil when a cluster has what its users take for granted: the service account
// without which no Pod can be created, and the rules of the roles that aggregate others.
func (c *ControlPlane) controlled(ctx context.Context) error {
	if _, err := c.client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("service account of Pods in the namespace default: %w", err)
	}
	for _, name := range []string{"admin", "edit", "view"} {
		role, err := c.client.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("cluster role %s: %w", name, err)
		}
		if len(role.Rules) == 0 {
			return errors.New("cluster role " + name + " has no rules yet")
		}
	}
	return nil
}
