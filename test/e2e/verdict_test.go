// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestDeniedForReal: what kubectl is told when a policy denies, and when none does.
func TestDeniedForReal(t *testing.T) {
	must(t, "", "create", "namespace", "denied-for-real")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "namespace", "denied-for-real", "--wait=false") })
	must(t, policyOf("denied-for-real.example.com", "object.spec.replicas <= 5"), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "pvap,pvapb", "denied-for-real.example.com") })
	must(t, "", "wait", "--for=condition=Ready", "pvap/denied-for-real.example.com", "--timeout=30s")

	const wrapped = `admission webhook "validations.policy.portcullis.dev" denied the request: ` +
		`ValidatingAdmissionPolicy 'denied-for-real.example.com' with binding 'denied-for-real.example.com' denied request: failed expression: object.spec.replicas <= 5`
	for _, dry := range []string{"none", "server"} {
		output, err := kubectl(t, "", "-n", "denied-for-real", "create", "deployment", "nginx", "--image=nginx", "--replicas=6", "--dry-run="+dry)
		if err == nil || !strings.Contains(output, wrapped) {
			t.Errorf("dry run %s: got error %v and %q, want a denial with %q", dry, err, output, wrapped)
		}
	}
	must(t, "", "-n", "denied-for-real", "create", "deployment", "nginx", "--image=nginx", "--replicas=5")
	if output, err := kubectl(t, "", "-n", "denied-for-real", "scale", "deployment", "nginx", "--replicas=6"); err != nil {
		t.Errorf("the policy is not about deployments/scale, and yet: %v: %s", err, output)
	}
}

// policyOf is a policy on Deployments of the namespace of its name up to the first
// dot, with a binding of the same name.
func policyOf(name, expression string) string {
	namespace, _, _ := strings.Cut(name, ".")
	return `apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ` + name + `
spec:
  policyName: ` + name + `
  validationActions: [Deny]
  matchResources:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: ` + namespace + `
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata:
  name: ` + name + `
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments]
  validations:
  - expression: ` + expression + `
`
}
