// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs a standalone Portcullis server inside a test: a real etcd,
// real certificates, real HTTPS on free loopback ports, and the engine.
//
// It holds no assertions and does not know what a test is about.
package harness

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/access"
	"github.com/portcullis-dev/portcullis/pkg/standalone"
)

const (
	readyTimeout = 60 * time.Second
	readyPoll    = 10 * time.Millisecond
	stopTimeout  = 60 * time.Second
)

// Option changes how a server starts.
type Option func(*Server)

// WithObjects gives policies the manifests below dir to read.
func WithObjects(dir string) Option {
	return func(s *Server) { s.objects = dir }
}

// WithBootstrapPolicies puts the policies of the manifests in dir in force.
func WithBootstrapPolicies(dir string) Option {
	return func(s *Server) { s.bootstrap = dir }
}

// WithUsers names the files of the flags --client-ca-file and --token-auth-file.
func WithUsers(clientCAFile, tokenAuthFile string) Option {
	return func(s *Server) { s.clientCAFile, s.tokenAuthFile = clientCAFile, tokenAuthFile }
}

// WithEtcd stores in etcd servers of the test's choice.
func WithEtcd(servers ...string) Option {
	return func(s *Server) { s.etcdServers = servers }
}

// WithoutWaiting returns before the server is ready.
func WithoutWaiting() Option {
	return func(s *Server) { s.hurried = true }
}

// WithConfig lets the test change the configuration before it is completed.
func WithConfig(configure func(*apiserver.Config) error) Option {
	return func(s *Server) { s.configure = append(s.configure, configure) }
}

// Server is a running server.
type Server struct {
	// Config is the administrator's.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Etcd reaches the etcd server behind the API.
	Etcd storagebackend.TransportConfig

	dataDir       string // holds everything that outlives the server
	objects       string
	bootstrap     string
	clientCAFile  string
	tokenAuthFile string
	etcdServers   []string
	hurried       bool
	configure     []func(*apiserver.Config) error
	stop          func(testing.TB)
}

// Start starts a server, waits until it is ready and stops it when the test ends.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{dataDir: t.TempDir()}
	for _, opt := range opts {
		opt(s)
	}
	s.start(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Stop drains the server and waits until it has left its data dir. Stopping
// twice does nothing.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.stop == nil {
		return
	}
	s.stop(t)
	s.stop = nil
}

// Restart stops the server and starts it on the same data dir. Its ports, and so
// Config and Etcd, change.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.start(t)
}

// Anonymous returns a client configuration without credentials.
func (s *Server) Anonymous() *rest.Config { return rest.AnonymousClientConfig(s.Config) }

// As returns a client configuration with a bearer token.
func (s *Server) As(token string) *rest.Config {
	config := s.Anonymous()
	config.QPS = -1
	config.BearerToken = token
	return config
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	env, err := standalone.Start(t.Context(), standalone.Options{
		DataDir: s.dataDir, BindAddress: net.IPv4(127, 0, 0, 1), Etcd: storagebackend.TransportConfig{ServerList: s.etcdServers},
	})
	if err != nil {
		t.Fatalf("start the environment: %v", err)
	}
	server, err := s.newServer(t.Context(), env)
	if err != nil {
		closeEnvironment(t, env)
		t.Fatalf("build the server: %v", err)
	}
	// The context of the test ends before its clean-up runs, and would cut off
	// the drain.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	s.stop = func(t testing.TB) {
		t.Helper()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("server ended with an error: %v", err)
			}
		case <-time.After(stopTimeout):
			t.Errorf("server has not stopped within %v", stopTimeout)
		}
		closeEnvironment(t, env)
	}
	s.Kubeconfig, s.Etcd = env.Kubeconfig, env.Etcd
	if s.Config, err = clientcmd.BuildConfigFromFlags("", env.Kubeconfig); err != nil {
		s.Stop(t)
		t.Fatalf("read the kubeconfig: %v", err)
	}
	s.Config.QPS = -1
	if !s.hurried {
		s.WaitReady(t)
	}
}

// WaitReady waits until the server is ready.
func (s *Server) WaitReady(t testing.TB) {
	t.Helper()
	if err := waitReady(t.Context(), s.Config); err != nil {
		s.Stop(t)
		t.Fatalf("server has not become ready: %v", err)
	}
}

func (s *Server) newServer(ctx context.Context, env *standalone.Environment) (*apiserver.Server, error) {
	objects, err := apiserver.LoadObjects(s.objects)
	if err != nil {
		return nil, err
	}
	bootstrap, err := apiserver.LoadBootstrap(ctx, s.bootstrap)
	if err != nil {
		return nil, err
	}
	users, err := access.LoadUsers(ctx, s.clientCAFile, s.tokenAuthFile)
	if err != nil {
		return nil, err
	}
	config, err := apiserver.NewStandaloneConfig(apiserver.StandaloneOptions{
		Listener:    env.Listener,
		ServingCert: env.ServingCert,
		ClientCA:    env.ClientCA,
		Users:       users,
		View:        objects.View,
		Etcd:        env.Etcd,
	})
	if err != nil {
		return nil, err
	}
	config.SetBootstrap(bootstrap)
	if err := config.AddEngine(objects); err != nil {
		return nil, err
	}
	for _, configure := range s.configure {
		if err := configure(config); err != nil {
			return nil, err
		}
	}
	return config.Complete().New()
}

func waitReady(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		var code int
		result := client.Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		last = result.Error()
		return code == http.StatusOK, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

func closeEnvironment(t testing.TB, env *standalone.Environment) {
	t.Helper()
	if err := env.Close(); err != nil {
		t.Errorf("close the environment: %v", err)
	}
}
