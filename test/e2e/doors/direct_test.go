// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package doors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

const (
	// webhookUser is the user of artifacts/deploy/direct.
	webhookUser = "portcullis-webhook-client"

	registrations = "mutatingwebhookconfigurations,validatingwebhookconfigurations"

	sixDenied = `admission webhook "validations.policy.portcullis.dev" denied the request: ` +
		`ValidatingAdmissionPolicy 'direct.example.com' with binding 'direct.example.com' denied request: failed expression: object.spec.replicas <= 5`
)

const directPolicy = `apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: direct.example.com
spec:
  policyName: direct.example.com
  validationActions: [Deny]
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata:
  name: direct.example.com
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments]
  validations:
  - expression: object.spec.replicas <= 5
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ClusterPolicy
metadata:
  name: direct
spec:
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [Deployment]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {by: direct}}}}
`

// TestDirect: a kube-apiserver that shows a certificate asks the servers themselves.
func TestDirect(t *testing.T) {
	h := newHouse(t, func(o *cluster.Options) {
		// The port is not known yet. Nobody else is called with credentials of this file:
		// for its own service kube-apiserver has others.
		o.ControlPlane.WebhookUsers = map[string]string{"*": webhookUser}
	})
	h.must(t, directPolicy, "apply", "-f", "-")
	h.must(t, "", "wait", "--for=condition=Ready", "pvap/direct.example.com", "pcpol/direct", "--timeout=30s")
	h.must(t, "", "delete", registrations, cluster.Registration)
	eventually(t, "nobody judges", func(context.Context) error { return h.deploy(t, "default", 6, "server") })

	h.registerDirect(t, "")
	eventually(t, "the direct door is asked", func(context.Context) error {
		if err := h.deploy(t, "default", 6, "server"); err == nil || !strings.Contains(err.Error(), sixDenied) {
			return fmt.Errorf("got %w, want %s", err, sixDenied)
		}
		return nil
	})
	for _, dryRun := range []string{"server", "none"} {
		if err := h.deploy(t, "default", 6, dryRun); err == nil || !strings.Contains(err.Error(), sixDenied) {
			t.Errorf("dry run %s: got %v, want %s", dryRun, err, sixDenied)
		}
		if err := h.deploy(t, "default", 5, dryRun); err != nil {
			t.Errorf("dry run %s: %v", dryRun, err)
		}
	}
	if by := h.must(t, "", "create", "deployment", "marked", "--image=nginx", "--dry-run=server", "-o", "jsonpath={.metadata.labels.by}"); by != "direct" {
		t.Errorf("got the label %q, want that of the rule", by)
	}
	// Applied again, the manifests change nothing, not even what the servers have written.
	before := h.must(t, "", "get", registrations, "portcullis-direct", "-o", "yaml")
	h.registerDirect(t, "")
	if after := h.must(t, "", "get", registrations, "portcullis-direct", "-o", "yaml"); after != before {
		t.Errorf("applied again: got %s, want %s", after, before)
	}
	// Without the right, the certificate is of no use.
	h.must(t, "", "delete", "clusterrolebinding", "portcullis:reviewer")
	h.failsClosed(t, "default", `forbidden: User "`+webhookUser+`" cannot post path`)
}

// testNoCertificate: a kube-apiserver that shows nothing is not answered, and then
// admits nothing.
func testNoCertificate(t *testing.T, h *house) {
	h.must(t, "", "create", "namespace", "unsigned")
	h.registerDirect(t, `    - {op: replace, path: /webhooks/0/namespaceSelector, value: {matchLabels: {kubernetes.io/metadata.name: unsigned}}}`)
	h.failsClosed(t, "unsigned", `forbidden: User "system:anonymous" cannot post path`)
}

// failsClosed waits until kube-apiserver refuses to create anything, since it is not
// told what to make of it.
func (h *house) failsClosed(t *testing.T, namespace, why string) {
	t.Helper()
	eventually(t, "kube-apiserver refuses", func(context.Context) error {
		err := h.deploy(t, namespace, 1, "server")
		if err == nil || !strings.Contains(err.Error(), `failed calling webhook "mutations.policy.portcullis.dev"`) ||
			!strings.Contains(err.Error(), why) {
			return fmt.Errorf("got %w, want one that says %s", err, why)
		}
		return nil
	})
}

// deploy creates a Deployment.
func (h *house) deploy(t *testing.T, namespace string, replicas int, dryRun string) error {
	t.Helper()
	output, err := h.kubectl(t, "", "--namespace="+namespace, "create", "deployment", "nginx", "--image=nginx", fmt.Sprintf("--replicas=%d", replicas), "--dry-run="+dryRun)
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// registerDirect applies artifacts/deploy/direct with the port of this machine's
// Service, and a further patch.
func (h *house) registerDirect(t *testing.T, patch string) {
	t.Helper()
	dir := t.TempDir()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Rel(dir, filepath.Join(root, "artifacts", "deploy", "direct"))
	if err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s]
patches:
- target: {group: admissionregistration.k8s.io}
  patch: |
    - {op: replace, path: /webhooks/0/clientConfig/service/port, value: %d}
%s
`, manifests, h.Balancer.Port(), patch)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(t, "", "apply", "--server-side", "-k", dir)
}
