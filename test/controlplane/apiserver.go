// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net"

	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
)

func (c *ControlPlane) newAPIServer() (*component.Component, error) {
	_, port, err := net.SplitHostPort(c.addresses.apiServer)
	if err != nil {
		return nil, err
	}
	auditPolicy, err := c.writeAuditPolicy()
	if err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	admission, err := c.writeAdmissionConfiguration()
	if err != nil {
		return nil, fmt.Errorf("admission configuration: %w", err)
	}
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return nil, err
	}
	// It is ready when, among others, the default roles are stored.
	ready := func(ctx context.Context) error { return get(ctx, client, c.Host+"/readyz") }
	args := []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + port,
		"--tls-cert-file=" + c.credentials.apiServer.cert,
		"--tls-private-key-file=" + c.credentials.apiServer.key,
		// Nothing reaches Pods here, and endpoints must not be on a loopback address.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--client-ca-file=" + c.credentials.cluster.certFile,
		"--enable-priority-and-fairness=true",
		"--allow-privileged=true",
		"--shutdown-watch-termination-grace-period=5s", // without it, each watch holds up the end for a minute
		"--audit-policy-file=" + auditPolicy,
		"--audit-log-path=" + c.AuditLog,
		"--audit-log-maxsize=4096", // the log of one control plane is one file
		"--admission-control-config-file=" + admission,
	}
	args = append(args, c.storageArgs()...)
	args = append(args, c.frontProxyArgs()...)
	args = append(args, c.serviceAccountArgs()...)
	return c.component("kube-apiserver", append(args, c.options.APIServerArgs...), ready), nil
}

func (c *ControlPlane) storageArgs() []string {
	access := c.EtcdAccess()
	return []string{
		"--etcd-servers=" + access.Endpoint,
		"--etcd-cafile=" + access.CAFile,
		"--etcd-certfile=" + access.CertFile,
		"--etcd-keyfile=" + access.KeyFile,
	}
}

// frontProxyArgs let kube-apiserver pass on the identity of callers to aggregated API servers.
func (c *ControlPlane) frontProxyArgs() []string {
	args := []string{
		"--requestheader-client-ca-file=" + c.credentials.frontProxy.certFile,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.credentials.frontProxyClient.cert,
		"--proxy-client-key-file=" + c.credentials.frontProxyClient.key,
	}
	if !c.options.AnyFrontProxy {
		args = append(args, "--requestheader-allowed-names="+FrontProxyUser)
	}
	return args
}

func (c *ControlPlane) serviceAccountArgs() []string {
	return []string{
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.credentials.serviceAccountPublic,
		"--service-account-signing-key-file=" + c.credentials.serviceAccountKey,
	}
}
