// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

// create makes a ConfigMap and says whether that was admitted.
func admitted(t *testing.T, c *cluster.Cluster) (string, error) {
	t.Helper()
	return kubectl(t, c.ControlPlane, "", "create", "configmap", "anything", "--dry-run=server")
}

// gone fails the test unless nothing of Portcullis is left.
func gone(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, search := range [][]string{
		{"get", "namespaces,apiservices,validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations", "-o", "name"},
		{"-n", "kube-system", "get", "rolebindings", "-o", "name"},
	} {
		for line := range strings.Lines(must(t, c.ControlPlane, "", search...)) {
			if strings.Contains(line, "portcullis") {
				t.Errorf("%s is left", strings.TrimSpace(line))
			}
		}
	}
	if output, err := admitted(t, c); err != nil {
		t.Errorf("a write afterwards: %v: %s", err, output)
	}
}

// TestUninstall does what the document says, step by step. Writes of others go on all
// the time.
func TestUninstall(t *testing.T) {
	c := clustertest.Start(t)
	message := deny(t, c, "uninstall.example.com")
	load := judge(t, c, message)
	load.more(t, 3)
	load.check(t, "before")
	writing := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		var failure error
		for {
			select {
			case <-stop:
				writing <- failure
				return
			default:
			}
			if output, err := admitted(t, c); err != nil && failure == nil {
				failure = fmt.Errorf("%w: %s", err, output)
			}
		}
	}()
	for _, step := range commands(t, "uninstall.md") {
		step = strings.ReplaceAll(step, "policies.yaml", t.TempDir()+"/policies.yaml")
		if strings.Contains(step, "deployment/portcullis") {
			for _, replica := range c.Replicas {
				if err := replica.Stop(); err != nil {
					t.Error(err)
				}
			}
		}
		mustShell(t, c.ControlPlane, step)
	}
	close(stop)
	if err := <-writing; err != nil {
		t.Errorf("a write failed meanwhile: %v", err)
	}
	gone(t, c)
}

// TestUninstallAtOnce: everything in one command, while the servers run.
func TestUninstallAtOnce(t *testing.T) {
	c := clustertest.Start(t)
	deny(t, c, "uninstall.example.com")
	mustShell(t, c.ControlPlane, "kubectl delete -k artifacts/deploy --timeout=90s")
	gone(t, c)
}

// TestUninstallInTheWrongOrder: the servers first. What the document says happens, and
// what it says mends it.
func TestUninstallInTheWrongOrder(t *testing.T) {
	c := clustertest.Start(t)
	must(t, c.ControlPlane, "", "create", "namespace", "bystander")
	for _, replica := range c.Replicas {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "every write fails", func() string {
		if output, err := admitted(t, c); err == nil || !strings.Contains(output, unreachable) {
			return fmt.Sprintf("error %v: %s", err, output)
		}
		return ""
	})
	// The other phase fails closed by itself.
	must(t, c.ControlPlane, "", "delete", "mutatingwebhookconfiguration", cluster.Registration)
	eventually(t, "every write fails at the other door", func() string {
		if output, err := admitted(t, c); err == nil || !strings.Contains(output, `failed calling webhook "validations.policy.portcullis.dev"`) {
			return fmt.Sprintf("error %v: %s", err, output)
		}
		return ""
	})
	// What Portcullis is made of can still be written, and what the namespace holds.
	dir, err := c.Kustomization()
	if err != nil {
		t.Fatal(err)
	}
	must(t, c.ControlPlane, "", "apply", "--server-side", "--force-conflicts", "-k", dir)
	must(t, c.ControlPlane, "", "label", "clusterrole/portcullis:server", "clusterrolebinding/portcullis:server", "apiservice/v1alpha1.policy.portcullis.dev", "flowschema/portcullis", "prioritylevelconfiguration/portcullis", "namespace/portcullis-system", "touched=true")

	steps := commands(t, "uninstall.md")
	mustShell(t, c.ControlPlane, steps[0])
	eventually(t, "writes are let through", func() string {
		output, err := admitted(t, c)
		if err != nil {
			return output
		}
		return ""
	})
	must(t, c.ControlPlane, "", "delete", "namespace", "bystander", "portcullis-system", "--wait=false")
	for _, namespace := range []string{"bystander", "portcullis-system"} {
		eventually(t, namespace+" waits for the API group", func() string {
			output := must(t, c.ControlPlane, "", "get", "namespace", namespace, "-o", "json")
			if !strings.Contains(output, "NamespaceDeletionDiscoveryFailure") || !strings.Contains(output, "policy.portcullis.dev") {
				return output
			}
			return ""
		})
	}
	mustShell(t, c.ControlPlane, command(t, "uninstall.md", "kubectl delete apiservice"))
	must(t, c.ControlPlane, "", "wait", "--for=delete", "namespace/bystander", "namespace/portcullis-system", "--timeout=90s")
	mustShell(t, c.ControlPlane, command(t, "uninstall.md", "kubectl delete -k artifacts/deploy --ignore-not-found"))
	gone(t, c)
}
