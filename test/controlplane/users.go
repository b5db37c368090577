// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config is the access of a user, by client certificate and without a limit on the
// rate of calls. What the user may do is a question of RBAC.
func (c *ControlPlane) Config(user string, groups ...string) (*rest.Config, error) {
	file, err := c.kubeconfig(user, groups)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Kubeconfig writes the access of a user, by client certificate, to a file and returns
// its path. It takes the place of what was written for a user of that name before.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) (file string, err error) {
	config, err := c.kubeconfig(user, groups)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(user, config)
}

// ServiceAccountKubeconfig writes the access of a service account, which must exist, by a token
// that is good for as long as the control plane, to a file and returns its path.
func (c *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (file string, err error) {
	seconds := int64(validity.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	user := "system:serviceaccount:" + namespace + ":" + name
	return c.writeKubeconfig(user, c.kubeconfigOf(user, &clientcmdapi.AuthInfo{Token: token.Status.Token}))
}

// Kubectl returns kubectl with the access of a kubeconfig, yet to be run. It neither reads
// nor writes the files of whoever runs this process.
func (c *ControlPlane) Kubectl(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(c.options.BinDir, "kubectl"), args...)
	command.Env = append(command.Environ(),
		"KUBECONFIG="+kubeconfig,
		"HOME="+c.options.Dir,
		"KUBECACHEDIR="+filepath.Join(c.options.Dir, "kubectl"),
	)
	return command
}

func (c *ControlPlane) kubeconfig(user string, groups []string) (*clientcmdapi.Config, error) {
	p, err := c.credentials.cluster.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return c.kubeconfigOf(user, &clientcmdapi.AuthInfo{ClientCertificateData: p.cert, ClientKeyData: p.key}), nil
}

func (c *ControlPlane) kubeconfigOf(user string, access *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	const cluster = "portcullis"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.credentials.cluster.pem}
	config.AuthInfos[user] = access
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	return config
}

func (c *ControlPlane) writeKubeconfig(user string, config *clientcmdapi.Config) (file string, err error) {
	name := strings.NewReplacer(":", "-", "/", "-").Replace(user)
	file = filepath.Join(c.options.Dir, kubeconfigDir, name)
	return file, clientcmd.WriteToFile(*config, file)
}
