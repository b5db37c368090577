// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/controlplane"
	"github.com/portcullis-dev/portcullis/test/controlplane/component"
	"github.com/portcullis-dev/portcullis/test/controlplane/controlplanetest"
	"github.com/portcullis-dev/portcullis/test/controlplane/loopback"
)

const members = 3

// TestServerWithItsEtcd runs what the Pods of the manifests run, with the flags of the
// manifests: a server that comes first and makes the certificates, and three members of
// etcd that show them to each other and to the server. Two members are enough.
func TestServerWithItsEtcd(t *testing.T) {
	c := controlplanetest.Start(t, controlplane.Options{})
	must(t, c, "", "apply", "--server-side", "-k", manifests(t, ""))
	kubeconfig, err := c.ServiceAccountKubeconfig(t.Context(), cluster.Namespace, cluster.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	options, err := cluster.FromRepository(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := newPods(t)
	server := p.server(options.Server, argsOf(t, c, "deployment/portcullis"), kubeconfig)
	started := make(chan error, 1)
	go func() { started <- server.Start(t.Context()) }()
	pki := secretFiles(t, c, "portcullis-etcd", "ca.crt", "server.crt", "server.key")

	var etcd []*component.Component
	args := argsOf(t, c, "statefulset/portcullis-etcd")
	for i := range members {
		etcd = append(etcd, p.member(filepath.Join(options.ControlPlane.BinDir, "etcd"), i, args, pki))
	}
	ready := make(chan error, members)
	for _, member := range etcd {
		go func() { ready <- member.Start(t.Context()) }()
	}
	for range etcd {
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	// A write takes a quorum.
	etcd[1].Kill()
	p.write(c)
}

// argsOf are those of the container of a workload.
func argsOf(t *testing.T, c *controlplane.ControlPlane, workload string) []string {
	t.Helper()
	for _, object := range objects(t, must(t, c, "", "-n", cluster.Namespace, "get", workload, "-o", "json")) {
		var pods appsv1.Deployment // a StatefulSet has its template in the same place
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pods); err != nil {
			t.Fatal(err)
		}
		if containers := pods.Spec.Template.Spec.Containers; len(containers) == 1 {
			return containers[0].Args
		}
	}
	t.Fatalf("%s has no container of its own", workload)
	return nil
}

// secretFiles waits until a Secret has all keys, and writes them to files.
func secretFiles(t *testing.T, c *controlplane.ControlPlane, name string, keys ...string) (dir string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	var secret *corev1.Secret
	eventually(t, "the server has made certificates", func() string {
		var err error
		if secret, err = client.CoreV1().Secrets(cluster.Namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		for _, key := range keys {
			if len(secret.Data[key]) == 0 {
				return "there is no " + key
			}
		}
		return ""
	})
	dir = t.TempDir()
	for _, key := range keys {
		if err := os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pods are processes in place of Pods.
type pods struct {
	*testing.T
	address               string // of the server
	clients, peers, state [members]string
}

func newPods(t *testing.T) *pods {
	t.Helper()
	p := &pods{T: t}
	all := []*string{&p.address}
	for i := range members {
		all = append(all, &p.clients[i], &p.peers[i], &p.state[i])
	}
	for _, address := range all {
		var err error
		if *address, err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// local replaces what Pods would have by what there is here.
func (p *pods) local(args []string, own ...string) []string {
	var elsewhere []string
	for i := range members {
		host := fmt.Sprintf("portcullis-etcd-%d.portcullis-etcd.portcullis-system.svc", i)
		elsewhere = append(elsewhere, host+":2379", p.clients[i], host+":2380", p.peers[i])
	}
	var local []string
	for _, arg := range args {
		local = append(local, strings.NewReplacer(elsewhere...).Replace(strings.NewReplacer(own...).Replace(arg)))
	}
	return local
}

func (p *pods) member(binary string, i int, args []string, pki string) *component.Component {
	name := fmt.Sprintf("portcullis-etcd-%d", i)
	return p.run(name, binary, "http://"+p.state[i]+"/readyz", p.local(args,
		"$(POD_NAME)", name, "/pki/", pki+"/", "/data/etcd", filepath.Join(p.TempDir(), "etcd"),
		"0.0.0.0:2379", p.clients[i], "0.0.0.0:2380", p.peers[i], "0.0.0.0:2381", p.state[i]))
}

func (p *pods) server(binary string, args []string, kubeconfig string) *component.Component {
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		p.Fatal(err)
	}
	return p.run("portcullis-0", binary, "https://"+p.address+"/readyz", p.local(args,
		"--in-cluster", "--kubeconfig="+kubeconfig, "$(POD_NAME)", "portcullis-0", "$(POD_NAMESPACE)", cluster.Namespace,
		"0.0.0.0", "127.0.0.1", "7443", port, "/data/portcullis", filepath.Join(p.TempDir(), "portcullis")))
}

// run returns a program that is ended with the test.
func (p *pods) run(name, binary, ready string, args []string) *component.Component {
	program := component.New(component.Config{
		Name: name, Binary: binary, Args: args, LogFile: filepath.Join(p.TempDir(), "log"),
		Ready: func(ctx context.Context) error { return get(ctx, ready) },
	})
	p.Cleanup(func() {
		program.Kill()
		if p.Failed() {
			p.Logf("the end of the log of %s:\n%s", name, program.Tail())
		}
	})
	return program
}

// get asks as a kubelet does.
func get(ctx context.Context, url string) error {
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
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
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}

// write stores a policy on the server's own port, as the administrator.
func (p *pods) write(c *controlplane.ControlPlane) {
	p.Helper()
	config := c.Admin()
	config.Host, config.CAData, config.CAFile, config.Insecure = "https://"+p.address, nil, "", true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		p.Fatal(err)
	}
	url := config.Host + "/apis/policy.portcullis.dev/v1alpha1/validatingadmissionpolicies"
	_, policy, _ := strings.Cut(storedPolicy("stored.example.com", "denied"), "---\n")
	eventually(p.T, "two members store a policy", func() string {
		request, err := http.NewRequestWithContext(p.Context(), http.MethodPost, url, strings.NewReader(policy))
		if err != nil {
			p.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/yaml")
		response, err := client.Do(request)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusConflict {
			return fmt.Sprintf("%s, error %v: %s", response.Status, err, body)
		}
		return ""
	})
}
