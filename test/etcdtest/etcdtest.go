// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdtest runs etcd servers inside a test, behind a network that the test
// can cut. It knows nothing of who stores in them.
package etcdtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/util/wait"
)

const startTimeout = 30 * time.Second

// Cluster is a number of etcd servers that hold the same.
type Cluster struct {
	members []*member
	tls     *Certificates
	initial string
}

type member struct {
	name         string
	dir          string
	client, peer string // addresses
	proxy        *proxy
	server       *embed.Etcd // nil while it is stopped
}

// New returns a cluster that is not started yet. Its addresses stay the same
// whatever becomes of it. With certificates, it asks its clients for theirs.
func New(t testing.TB, size int, certificates *Certificates) *Cluster {
	t.Helper()
	c := &Cluster{tls: certificates}
	var initial []string
	for i := range size {
		m := &member{name: fmt.Sprintf("etcd-%d", i), dir: t.TempDir(), client: freeAddress(t), peer: freeAddress(t)}
		m.proxy = newProxy(t, m.client)
		c.members = append(c.members, m)
		initial = append(initial, m.name+"=http://"+m.peer)
	}
	c.initial = strings.Join(initial, ",")
	t.Cleanup(c.Stop)
	return c
}

// Start returns a running cluster.
func Start(t testing.TB, size int) *Cluster {
	t.Helper()
	c := New(t, size, nil)
	c.Start(t)
	return c
}

// Endpoints are the addresses of the cluster behind the network.
func (c *Cluster) Endpoints() []string {
	endpoints := make([]string, 0, len(c.members))
	for _, m := range c.members {
		endpoints = append(endpoints, c.scheme()+"://"+m.proxy.address)
	}
	return endpoints
}

// Start starts the members that do not run, and waits until they serve.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	c.StartHidden(t)
	for _, m := range c.members {
		m.proxy.open(t)
	}
}

// StartHidden is Start behind a network that is cut, see Heal.
func (c *Cluster) StartHidden(t testing.TB) {
	t.Helper()
	var started []*member
	for _, m := range c.members {
		if m.server != nil {
			continue
		}
		server, err := embed.StartEtcd(c.config(m))
		if err != nil {
			t.Fatalf("start %s: %v", m.name, err)
		}
		m.server = server
		started = append(started, m)
	}
	for _, m := range started {
		select {
		case <-m.server.Server.ReadyNotify():
		case <-time.After(startTimeout):
			t.Fatalf("%s is not ready after %s", m.name, startTimeout)
		}
	}
}

// Stop stops all members.
func (c *Cluster) Stop() {
	for _, m := range c.members {
		m.stop()
	}
}

func (m *member) stop() {
	if m.server != nil {
		m.proxy.refuse() // it would wait for its clients
		m.server.Close()
		m.server = nil
	}
}

// Copy copies the data of the members, which must be stopped, and returns what
// puts the copy in the place of the data, which needs the same.
func (c *Cluster) Copy(t testing.TB) (restore func(testing.TB)) {
	t.Helper()
	copies := map[*member]string{}
	for _, m := range c.members {
		copies[m] = filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copies[m], os.DirFS(m.dir)); err != nil {
			t.Fatal(err)
		}
	}
	return func(t testing.TB) {
		t.Helper()
		for m, dir := range copies {
			if err := os.RemoveAll(m.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(m.dir, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Cut ends all connections through the network, and refuses new ones.
func (c *Cluster) Cut() {
	for _, m := range c.members {
		m.proxy.refuse()
	}
}

// Freeze lets the network carry nothing, and tell nobody.
func (c *Cluster) Freeze() {
	for _, m := range c.members {
		m.proxy.freeze()
	}
}

// Heal mends the network.
func (c *Cluster) Heal(t testing.TB) {
	t.Helper()
	for _, m := range c.members {
		m.proxy.thaw()
		if m.server != nil {
			m.proxy.open(t)
		}
	}
}

// KillLeader stops the leader without letting it hand over, and cuts it off.
func (c *Cluster) KillLeader(t testing.TB) {
	t.Helper()
	leader, _ := c.leaderAndOther(t)
	leader.server.Server.HardStop()
	leader.stop()
}

// MoveLeader makes another member the leader. Members that are slow may have elected
// another one meanwhile, so it tries again.
func (c *Cluster) MoveLeader(t testing.TB) {
	t.Helper()
	var err error
	for range 5 {
		leader, other := c.leaderAndOther(t)
		if err = leader.handOver(t, other); err == nil {
			return
		}
	}
	t.Fatalf("move the leader: %v", err)
}

func (m *member) handOver(t testing.TB, to *member) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return m.server.Server.MoveLeader(ctx, uint64(m.server.Server.MemberID()), uint64(to.server.Server.MemberID()))
}

// leaderAndOther waits for a leader.
func (c *Cluster) leaderAndOther(t testing.TB) (leader, other *member) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		leader, other = nil, nil
		for _, m := range c.members {
			switch {
			case m.server == nil:
			case m.server.Server.Leader() == m.server.Server.MemberID():
				leader = m
			default:
				other = m
			}
		}
		return leader != nil && other != nil, nil
	})
	if err != nil {
		t.Fatalf("the cluster has no leader, or nobody else: %v", err)
	}
	return leader, other
}

// Client returns a client that does not need the network.
func (c *Cluster) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Context: t.Context()}
	for _, m := range c.members {
		config.Endpoints = append(config.Endpoints, c.scheme()+"://"+m.client)
	}
	if c.tls != nil {
		var err error
		if config.TLS, err = c.tls.client().ClientConfig(); err != nil {
			t.Fatal(err)
		}
	}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (c *Cluster) scheme() string {
	if c.tls != nil {
		return "https"
	}
	return "http"
}

func (c *Cluster) config(m *member) *embed.Config {
	config := embed.NewConfig()
	config.Name = m.name
	config.Dir = m.dir
	config.LogLevel = "fatal"
	client, peer := url.URL{Scheme: c.scheme(), Host: m.client}, url.URL{Scheme: "http", Host: m.peer}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = c.initial
	config.TickMs, config.ElectionMs = 50, 500
	config.UnsafeNoFsync = true
	if c.tls != nil {
		config.ClientTLSInfo = c.tls.server()
	}
	return config
}
