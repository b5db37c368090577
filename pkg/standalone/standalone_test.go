// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func startTestEnvironment(t *testing.T, dataDir string) *Environment {
	t.Helper()
	env, err := Start(t.Context(), Options{DataDir: dataDir, BindAddress: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestKubeconfigReachesTheListener calls a server that serves with what an
// Environment holds, with nothing but the kubeconfig.
func TestKubeconfigReachesTheListener(t *testing.T) {
	env := startTestEnvironment(t, filepath.Join(t.TempDir(), "data"))
	defer func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	}()

	info, err := os.Stat(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("kubeconfig: got mode %#o, want 0600", got)
	}
	config, err := clientcmd.LoadFromFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "portcullis" {
		t.Errorf("got current context %q, want portcullis", config.CurrentContext)
	}

	server := serveWith(t, env)
	defer server.Close()
	client, err := kubeconfigClient(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(env.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Caller"); got != "portcullis-admin" {
		t.Errorf("called as %q, want portcullis-admin", got)
	}
}

func serveWith(t *testing.T, env *Environment) *http.Server {
	t.Helper()
	pair, err := tls.X509KeyPair(env.ServingCert.CurrentCertKeyContent())
	if err != nil {
		t.Fatal(err)
	}
	verify, ok := env.ClientCA.VerifyOptions()
	if !ok {
		t.Fatal("no client certificate authority")
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Caller", r.TLS.PeerCertificates[0].Subject.CommonName)
	})}
	listener := tls.NewListener(env.Listener, &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    verify.Roots,
		MinVersion:   tls.VersionTLS12,
	})
	go func() { _ = server.Serve(listener) }()
	return server
}

func kubeconfigClient(path string) (*http.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

func TestStartAgainOnTheSameDataDir(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	first := startTestEnvironment(t, dataDir)
	ca := string(first.ClientCA.CurrentCABundleContent())

	if _, err := Start(t.Context(), Options{DataDir: dataDir, BindAddress: net.IPv4(127, 0, 0, 1)}); err == nil || !strings.Contains(err.Error(), "is in use by another portcullis-apiserver") {
		t.Errorf("while the first runs: got error %v, want one that says so", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := startTestEnvironment(t, dataDir)
	defer second.Close()
	if string(second.ClientCA.CurrentCABundleContent()) != ca {
		t.Error("the certificate authority did not outlive the process")
	}
	config, err := clientcmd.LoadFromFile(second.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Clusters["portcullis"].Server; got != second.URL {
		t.Errorf("kubeconfig names %s, want the new address %s", got, second.URL)
	}
}

// TestStartLeavesNothingOpen frees what was taken before the step that failed.
func TestStartLeavesNothingOpen(t *testing.T) {
	dataDir := t.TempDir()
	pki := filepath.Join(dataDir, "pki")
	if err := os.WriteFile(pki, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{DataDir: dataDir, BindAddress: net.IPv4(127, 0, 0, 1)}); err == nil {
		t.Fatal("started without a place for certificates")
	}
	if err := os.Remove(pki); err != nil {
		t.Fatal(err)
	}
	if err := startTestEnvironment(t, dataDir).Close(); err != nil {
		t.Error(err)
	}
}
