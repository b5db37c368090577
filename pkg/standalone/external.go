// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// ExternalEtcd says where etcd servers of others are, as the flags of that name
// of kube-apiserver do.
type ExternalEtcd struct {
	// Servers are URLs, scheme://host:port. With nil, an etcd server is started in
	// the process, and no other field may be set.
	Servers []string
	// CAFile, CertFile and KeyFile name PEM files for https. All may be empty.
	CAFile, CertFile, KeyFile string
	// Prefix is put before all keys. Empty means the default.
	Prefix string
}

// Transport is how the servers are reached.
func (e ExternalEtcd) Transport() storagebackend.TransportConfig {
	return storagebackend.TransportConfig{ServerList: e.Servers, TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
}

// Validate returns everything that is wrong, each with the name of its flag. It
// reads the files and asks no server.
func (e ExternalEtcd) Validate() error {
	if e.Servers == nil {
		return e.validateNone()
	}
	schemes := sets.New[string]()
	var errs []error
	for _, server := range e.Servers {
		scheme, err := schemeOf(server)
		errs = append(errs, err)
		schemes.Insert(scheme)
	}
	switch {
	case len(e.Servers) == 0:
		// An empty variable of a script must not mean the etcd in the process.
		errs = append(errs, errors.New("--etcd-servers is empty: name the servers, or leave it out to use the etcd inside the process"))
	case schemes.HasAll("http", "https"):
		// The client of etcd would use one of them for all.
		errs = append(errs, errors.New("--etcd-servers mixes http and https: use one of them for all servers"))
	default:
		errs = append(errs, e.validateFiles(schemes.Has("http")))
	}
	if e.Prefix != "" && (!path.IsAbs(e.Prefix) || path.Clean(e.Prefix) != e.Prefix || e.Prefix == "/") {
		errs = append(errs, fmt.Errorf("--etcd-prefix %q is not a path such as /portcullis.dev", e.Prefix))
	}
	return utilerrors.NewAggregate(errs)
}

// validateNone refuses what would silently have no effect.
func (e ExternalEtcd) validateNone() error {
	var errs []error
	for _, flag := range []struct{ name, value string }{
		{"--etcd-cafile", e.CAFile}, {"--etcd-certfile", e.CertFile}, {"--etcd-keyfile", e.KeyFile}, {"--etcd-prefix", e.Prefix},
	} {
		if flag.value != "" {
			errs = append(errs, fmt.Errorf("%s is set without --etcd-servers: name the servers, or leave it out to use the etcd inside the process", flag.name))
		}
	}
	return utilerrors.NewAggregate(errs)
}

func schemeOf(server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || parsed.Port() == "" ||
		parsed.User != nil || strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return "", fmt.Errorf("--etcd-servers: %q is not an address such as https://etcd-0:2379", server)
	}
	return parsed.Scheme, nil
}

func (e ExternalEtcd) validateFiles(insecure bool) error {
	switch {
	case e.CAFile == "" && e.CertFile == "" && e.KeyFile == "":
		return nil
	case insecure:
		return errors.New("--etcd-cafile, --etcd-certfile and --etcd-keyfile have no effect on http: use https in --etcd-servers")
	case e.CertFile != "" && e.KeyFile == "":
		return errors.New("--etcd-certfile is set without --etcd-keyfile: name the key of the certificate")
	case e.CertFile == "" && e.KeyFile != "":
		return errors.New("--etcd-keyfile is set without --etcd-certfile: name the certificate of the key")
	}
	info := transport.TLSInfo{TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
	config, err := info.ClientConfig()
	switch {
	case err != nil:
		return fmt.Errorf("--etcd-cafile, --etcd-certfile, --etcd-keyfile cannot be used: %w", err)
	case e.CAFile != "" && config.RootCAs.Equal(x509.NewCertPool()):
		return fmt.Errorf("--etcd-cafile %s holds no certificate", e.CAFile)
	}
	return nil
}
