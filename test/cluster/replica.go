// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
	"github.com/portcullis-dev/portcullis/test/controlplane/loopback"
)

// Replica is one server.
type Replica struct {
	*component.Component
	// Identity is its name among the others.
	Identity string
	// Address is host:port of its own port.
	Address string
}

// NewReplica adds a server to those behind the Service. It is not started yet, and
// keeps its address when it is started again.
func (c *Cluster) NewReplica() (*Replica, error) {
	address, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	identity := fmt.Sprintf("portcullis-%d", len(c.Replicas))
	args := []string{
		"--kubeconfig=" + c.kubeconfig,
		"--namespace=" + Namespace,
		"--identity=" + identity,
		"--data-dir=" + c.dir(identity),
		"--etcd-servers=" + c.etcd,
		"--secure-port=" + port,
		// The balancer hears at once that a replica is not ready any more.
		"--shutdown-delay-duration=2s",
	}
	replica := &Replica{Identity: identity, Address: address, Component: component.New(component.Config{
		Name:    identity,
		Binary:  c.options.Server,
		Args:    append(args, c.options.ServerArgs...),
		LogFile: c.dir(identity + ".log"),
		Ready:   func(ctx context.Context) error { return ready(ctx, "https://"+address+"/readyz") },
	})}
	c.Replicas = append(c.Replicas, replica)
	c.Balancer.Add(address)
	return replica, nil
}

// startStorage starts the etcd of Portcullis, without TLS: only this machine reaches it.
func (c *Cluster) startStorage(ctx context.Context) error {
	address, err := loopback.FreeAddress()
	if err != nil {
		return err
	}
	peer, err := loopback.FreeAddress()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir(""), 0o700); err != nil {
		return err
	}
	c.etcd = "http://" + address
	c.Storage = component.New(component.Config{
		Name:   "etcd of Portcullis",
		Binary: filepath.Join(c.options.ControlPlane.BinDir, "etcd"),
		Args: []string{
			"--name=portcullis-etcd-0",
			"--data-dir=" + c.dir("etcd"),
			"--listen-client-urls=" + c.etcd,
			"--advertise-client-urls=" + c.etcd,
			"--listen-peer-urls=http://" + peer,
			"--initial-advertise-peer-urls=http://" + peer,
			"--initial-cluster=portcullis-etcd-0=http://" + peer,
			"--log-level=warn",
		},
		LogFile: c.dir("etcd.log"),
		Ready:   func(ctx context.Context) error { return ready(ctx, c.etcd+"/readyz") },
	})
	return c.Storage.Start(ctx)
}

// ready asks as a kubelet does, which verifies no certificate.
func ready(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // as far as it came
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
