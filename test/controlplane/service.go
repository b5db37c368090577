// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// InstallService makes a namespace and a Service in it that leads to this machine. There
// is nothing between kube-apiserver and the backends that would map ports: the port that an
// APIService or a webhook gives for the Service is the one on which the backends are
// reached, such as that of a balancer. Calling it again changes nothing.
func (c *ControlPlane) InstallService(ctx context.Context, namespace, name string) error {
	options := metav1.ApplyOptions{FieldManager: "controlplane", Force: true}
	if _, err := c.client.CoreV1().Namespaces().Apply(ctx, corev1apply.Namespace(namespace), options); err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	// kube-aggregator and webhooks resolve this type without DNS of the cluster, see proxy.ResolveCluster of k8s.io/apiserver.
	service := corev1apply.Service(name, namespace).WithSpec(corev1apply.ServiceSpec().
		WithType(corev1.ServiceTypeExternalName).WithExternalName("localhost"))
	if _, err := c.client.CoreV1().Services(namespace).Apply(ctx, service, options); err != nil {
		return fmt.Errorf("service %s/%s: %w", namespace, name, err)
	}
	return nil
}
