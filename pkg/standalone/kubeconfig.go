// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

const (
	// contextName is the cluster and the context in the kubeconfig.
	contextName = "portcullis"
	// administrator is the user in the kubeconfig and in its certificate.
	administrator = "portcullis-admin"
)

// writeKubeconfig writes the administrator's kubeconfig. Certificates are
// embedded, so that it can be used from any directory and copied.
func writeKubeconfig(path, server string, certs *certificates) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: certs.ca.CertPEM,
	}
	config.AuthInfos[administrator] = &clientcmdapi.AuthInfo{
		ClientCertificateData: certs.admin.CertPEM,
		ClientKeyData:         certs.admin.KeyPEM,
	}
	config.Contexts[contextName] = &clientcmdapi.Context{
		Cluster:  contextName,
		AuthInfo: administrator,
	}
	config.CurrentContext = contextName

	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := pki.WritePrivate(path, data); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
