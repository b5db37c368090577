// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs the control plane of a Kubernetes cluster on this machine:
// etcd, kube-apiserver with RBAC, audit and an aggregator, and
// kube-controller-manager. There are no nodes, no scheduler and no DNS: Pods stay
// pending, and a Service reaches its backends by InstallService.
//
// It needs the binaries of make controlplane. It knows nothing of Portcullis.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
	"github.com/portcullis-dev/portcullis/test/controlplane/loopback"
)

// Options say how to run a control plane.
type Options struct {
	// BinDir holds etcd, kube-apiserver, kube-controller-manager and kubectl.
	BinDir string
	// Dir takes all files. It is made, and must not hold another control plane.
	Dir string
	// AuditLevel is how much the audit log says. Empty means Metadata.
	AuditLevel auditv1.Level
	// WebhookUsers are the users as whom kube-apiserver calls webhooks, by client certificates
	// of the cluster's authority. The keys are host:port as in the URL of the webhook, or
	// NAME.NAMESPACE.svc:PORT of its service. Other webhooks are called anonymously.
	WebhookUsers map[string]string
	// AnyFrontProxy leaves out which proxies may say who a user is: every certificate of their
	// authority may then. Aggregated API servers should refuse to serve in such a cluster.
	AnyFrontProxy bool
	// APIServerArgs are further flags of kube-apiserver.
	APIServerArgs []string
}

// ControlPlane is a control plane that has been ready. Its components can be stopped,
// killed and started again; they keep their addresses and what they have stored.
// Its methods are safe for concurrent use.
type ControlPlane struct {
	Etcd, APIServer, ControllerManager *component.Component
	// Host is the URL of kube-apiserver.
	Host string
	// AdminKubeconfig is the file of a user who may do everything.
	AdminKubeconfig string
	// AuditLog is the file of the audit log. An event is in it soon after its request has been answered.
	AuditLog string

	options     Options
	credentials *credentials
	addresses   addresses
	admin       *rest.Config
	client      kubernetes.Interface
}

// addresses are host:port on this machine.
type addresses struct {
	etcd, etcdPeer, apiServer, controllerManager string
}

// Start runs a control plane and returns when it is ready. The end of ctx ends the
// waiting; the processes live until Stop or, on Linux, the end of this process.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	c, err := prepare(o)
	if err != nil {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	for _, next := range c.Components() {
		if err := next.Start(ctx); err != nil {
			c.kill()
			return nil, err
		}
	}
	return c, nil
}

// prepare writes the files of a control plane and starts nothing.
func prepare(o Options) (*ControlPlane, error) {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		if _, err := os.Stat(filepath.Join(o.BinDir, name)); err != nil {
			return nil, fmt.Errorf("%w: run make controlplane", err)
		}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if _, err := os.Stat(filepath.Join(dir, pkiDir)); err == nil {
		return nil, fmt.Errorf("%s holds an earlier control plane: remove it, or choose another directory", dir)
	}
	c := &ControlPlane{options: o, AuditLog: filepath.Join(dir, "audit.log")}
	for _, sub := range []string{pkiDir, logDir, kubeconfigDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	if c.credentials, err = newCredentials(filepath.Join(dir, pkiDir)); err != nil {
		return nil, err
	}
	for _, address := range []*string{&c.addresses.etcd, &c.addresses.etcdPeer, &c.addresses.apiServer, &c.addresses.controllerManager} {
		if *address, err = loopback.FreeAddress(); err != nil {
			return nil, err
		}
	}
	c.Host = "https://" + c.addresses.apiServer
	if err := c.addAdmin(); err != nil {
		return nil, err
	}
	return c, c.addComponents()
}

// The folders of Options.Dir.
const (
	pkiDir        = "pki"
	logDir        = "logs"
	kubeconfigDir = "kubeconfigs"
)

func (c *ControlPlane) addAdmin() (err error) {
	if c.AdminKubeconfig, err = c.Kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	if c.admin, err = c.Config("admin", "system:masters"); err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(c.admin)
	return err
}

func (c *ControlPlane) addComponents() (err error) {
	if c.Etcd, err = c.newEtcd(); err != nil {
		return err
	}
	if c.APIServer, err = c.newAPIServer(); err != nil {
		return err
	}
	c.ControllerManager, err = c.newControllerManager()
	return err
}

// Stop stops all components. It is an error when one had ended before, unasked.
func (c *ControlPlane) Stop() error {
	return errors.Join(c.ControllerManager.Stop(), c.APIServer.Stop(), c.Etcd.Stop())
}

func (c *ControlPlane) kill() {
	c.ControllerManager.Kill()
	c.APIServer.Kill()
	c.Etcd.Kill()
}

// Admin is the access of a user who may do everything, without a limit on the rate of calls.
func (c *ControlPlane) Admin() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// Components are all components, in the order in which they are started.
func (c *ControlPlane) Components() []*component.Component {
	return []*component.Component{c.Etcd, c.APIServer, c.ControllerManager}
}

// component returns one that runs the binary called name.
func (c *ControlPlane) component(name string, args []string, ready func(context.Context) error) *component.Component {
	return component.New(component.Config{
		Name:    name,
		Binary:  filepath.Join(c.options.BinDir, name),
		Args:    args,
		LogFile: filepath.Join(c.options.Dir, logDir, name+".log"),
		Ready:   ready,
	})
}
