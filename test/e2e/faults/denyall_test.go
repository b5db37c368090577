// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"strings"
	"testing"
)

const denyEverything = `apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deny-everything}
spec: {policyName: deny-everything, validationActions: [Deny]}
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata: {name: deny-everything}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}
  validations:
  - {expression: "false", message: nothing is allowed}
`

// TestDenyEverything: under a policy that denies everything, the administrator can still
// write and remove policies, replicas start and are ready, and Ready is told.
func TestDenyEverything(t *testing.T) {
	s := newScene(t, "deny-everything")
	remove := []string{"delete", "pvap,pvapb", "deny-everything"}
	t.Cleanup(func() { _, _ = s.try("", remove...) })
	s.run(denyEverything, "apply", "-f", "-")
	s.run("", "wait", "--for=condition=Ready", "pvap/deny-everything", "--timeout=60s")

	denied := func(input string, args ...string) {
		t.Helper()
		if output, err := s.try(input, args...); err == nil || !strings.Contains(output, "nothing is allowed") {
			t.Errorf("kubectl %s: %s; want a denial", strings.Join(args, " "), output)
		}
	}
	denied("", "-n", s.namespace, "create", "configmap", "denied")
	denied("", "create", "namespace", "denied")
	denied("", "create", "clusterrole", "denied", "--verb=get", "--resource=pods")
	denied("", "label", "namespace", s.namespace, "denied=yes")

	// A replica that is killed comes back, and the others hear of it.
	victim := s.live()[0]
	victim.Kill()
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitWhole()
	// Policies are written, put in force and told of as ever.
	s.storeDenials(1)

	s.run("", "annotate", "pvap", "deny-everything", "seen=yes")
	s.run("", remove...)
	s.wait("a write", func(context.Context) error {
		_, err := s.try("", "-n", s.namespace, "create", "configmap", "allowed", "--from-literal="+kindKey+"="+goodKind)
		return err
	})
}
