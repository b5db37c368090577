// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
)

// EtcdAccess is what a client of etcd needs.
type EtcdAccess struct {
	Endpoint                  string
	CAFile, CertFile, KeyFile string
}

// EtcdAccess is how kube-apiserver reaches etcd. Who shares it must store under another prefix than /registry.
func (c *ControlPlane) EtcdAccess() EtcdAccess {
	return EtcdAccess{
		Endpoint: "https://" + c.addresses.etcd,
		CAFile:   c.credentials.etcd.certFile,
		CertFile: c.credentials.etcdClient.cert,
		KeyFile:  c.credentials.etcdClient.key,
	}
}

func (c *ControlPlane) newEtcd() (*component.Component, error) {
	url, peer := "https://"+c.addresses.etcd, "http://"+c.addresses.etcdPeer
	client, err := c.credentials.etcd.httpClient(&c.credentials.etcdClient)
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error { return get(ctx, client, url+"/readyz") }
	return c.component("etcd", []string{
		"--name=etcd",
		"--data-dir=" + filepath.Join(c.options.Dir, "etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		"--client-cert-auth",
		"--trusted-ca-file=" + c.credentials.etcd.certFile,
		"--cert-file=" + c.credentials.etcdServer.cert,
		"--key-file=" + c.credentials.etcdServer.key,
		"--heartbeat-interval=50",
		"--election-timeout=500",
		"--unsafe-no-fsync", // processes are killed here, machines are not
		"--log-level=warn",
	}, ready), nil
}

// get is nil when the answer is 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // as far as it came
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
