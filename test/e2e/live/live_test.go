// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package live proves what policies see of a cluster that changes while they judge,
// what users may do with policies and previews there, and that a preview says what
// kube-apiserver then does.
package live

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

// shared is the cluster of all tests, and admin who may do everything there. Each test
// has namespaces, kinds and policies of its own.
var (
	shared *cluster.Cluster
	admin  *person
)

func TestMain(m *testing.M) {
	os.Exit(clustertest.Main(m, func(c *cluster.Cluster) {
		shared = c
		var err error
		if admin, err = newPerson(c.Config, c.AdminKubeconfig); err != nil {
			panic(fmt.Sprintf("clients of the administrator: %v", err))
		}
	}))
}

// person is a user of the cluster.
type person struct {
	config     *rest.Config
	kubeconfig string
	kube       kubernetes.Interface
	ours       versioned.Interface
	objects    dynamic.Interface
}

func newPerson(config *rest.Config, kubeconfig string) (*person, error) {
	p := &person{config: rest.CopyConfig(config), kubeconfig: kubeconfig}
	if p.config.WarningHandler == nil && p.config.WarningHandlerWithContext == nil {
		p.config.WarningHandler = rest.NoWarnings{}
	}
	var err error
	if p.kube, err = kubernetes.NewForConfig(p.config); err != nil {
		return nil, err
	}
	if p.ours, err = versioned.NewForConfig(p.config); err != nil {
		return nil, err
	}
	p.objects, err = dynamic.NewForConfig(p.config)
	return p, err
}

// user is someone with a client certificate, who may do what RBAC says.
func user(t *testing.T, name string, groups ...string) *person {
	t.Helper()
	config, err := shared.ControlPlane.Config(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := shared.Kubeconfig(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPerson(config, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// replicas are the administrator who asks each replica itself.
func replicas(t *testing.T) []*person {
	t.Helper()
	var all []*person
	for _, replica := range shared.Replicas {
		config := rest.CopyConfig(admin.config)
		config.Host = "https://" + replica.Address
		config.CAData, config.Insecure = nil, true // its certificate is for the Service
		p, err := newPerson(config, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}
