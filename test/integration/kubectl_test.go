// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// TestKubectl runs the program that users run; the tests beside it say precisely
// what it relies on.
func TestKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	a := newAPI(t)
	manifests := t.TempDir()
	manifest := func(name string, content []byte) string {
		path := filepath.Join(manifests, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// kubectl replaces lists without merge keys, so it finds a difference each time
	// when the server has filled in a default inside one.
	complete := newPolicy("p")
	all := admissionregistrationv1.AllScopes
	complete.Spec.MatchConstraints.ResourceRules[0].Scope = &all
	policy := manifest("policy.json", encode(t, complete))
	binding := manifest("binding.json", encode(t, newBinding("b", "p")))
	rules := manifest("rules.json", manifestOf(t, "ClusterPolicy", "c", mutateSpec))
	unknown := manifest("unknown.json", []byte(strings.Replace(string(encode(t, newPolicy("u"))), `"message"`, `"massage"`, 1)))

	tests := []struct {
		args string
		fail bool
		want string
	}{
		{"create -f " + policy, false, "validatingadmissionpolicy.policy.portcullis.dev/p created"},
		{"apply -f " + policy, false, "validatingadmissionpolicy.policy.portcullis.dev/p configured"},
		{"apply -f " + policy, false, "validatingadmissionpolicy.policy.portcullis.dev/p unchanged"},
		{"apply --server-side --force-conflicts -f " + policy, false, "serverside-applied"},
		{"create --dry-run=server -f " + binding, false, "validatingadmissionpolicybinding.policy.portcullis.dev/b created (server dry run)"},
		{"create -f " + binding, false, "validatingadmissionpolicybinding.policy.portcullis.dev/b created"},
		{"create --validate=strict -f " + unknown, true, `unknown field "spec.validations[0].massage"`},
		{"create --validate=warn -f " + unknown, false, `Warning: unknown field "spec.validations[0].massage"`},
		{"delete pvap u", false, "deleted"},
		{"wait --for=condition=Ready pvap/p --timeout=30s", false, "condition met"},
		{"get pvap", false, "NAME   VALIDATIONS   PARAMKIND   READY   AGE\np      1             <unset>     True    "},
		{"get pvapb", false, "NAME   POLICYNAME   PARAMREF   AGE\nb      p            <unset>    "},
		{"apply -f " + rules, false, "clusterpolicy.policy.portcullis.dev/c created"},
		{"apply -f " + rules, false, "clusterpolicy.policy.portcullis.dev/c unchanged"},
		{"wait --for=condition=Ready pcpol/c --timeout=30s", false, "condition met"},
		{"get pcpol", false, "NAME   RULES   READY   AGE\nc      2       True    "},
		{"get ppol -A", false, "No resources found"},
		{"explain pcpol.spec.rules.mutate.foreach.order", false, "Ascending or Descending"},
		{"explain ppol.spec.rules.match.any.resources.kinds", false, "version/Kind"},
		{"delete pcpol c", false, "deleted"},
		{"get portcullis -o name", false, "validatingadmissionpolicy.policy.portcullis.dev/p\nvalidatingadmissionpolicybinding.policy.portcullis.dev/b\n"},
		{
			"api-resources --api-group=policy.portcullis.dev --categories=portcullis -o name", false,
			"clusterpolicies.policy.portcullis.dev\npolicies.policy.portcullis.dev\n" +
				"validatingadmissionpolicies.policy.portcullis.dev\nvalidatingadmissionpolicybindings.policy.portcullis.dev\n",
		},
		{"explain pvap.spec.failurePolicy", false, "failurePolicy defines how to handle failures"},
		{"label pvap p team=a", false, "p labeled"},
		{"get pvap -l team=a -o name", false, "/p"},
		{"describe pvap p", false, "Failure Policy:  Fail"},
		{"patch pvap p --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/failurePolicy\",\"value\":\"Ignore\"}]", false, "p patched"},
		{"wait --for=delete pvap/absent --timeout=5s", false, ""},
		{"delete pvap,pvapb --all", false, `validatingadmissionpolicybinding.policy.portcullis.dev "b" deleted`},
		{"get portcullis", false, "No resources found"},
	}
	for _, test := range tests {
		command := exec.CommandContext(t.Context(), kubectl, append(strings.Fields(test.args), "--kubeconfig", a.Kubeconfig)...)
		command.Env = append(os.Environ(), "HOME="+manifests)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		err := command.Run()
		if (err != nil) != test.fail {
			t.Errorf("kubectl %s: %v: %s", test.args, err, &out)
			continue
		}
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("kubectl %s says\n%s\nwant\n%s", test.args, &out, test.want)
		}
	}
}
