// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// changed makes a namespace, and a ClusterPolicy of the same name, whose rules must be
// about that namespace alone. Both go with the test. It returns when the policy is in
// force.
func changed(t *testing.T, namespace, spec string) {
	t.Helper()
	must(t, "", "create", "namespace", namespace)
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "namespace", namespace, "--wait=false") })
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "pcpol", namespace) })
	must(t, "apiVersion: policy.portcullis.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: "+namespace+"}\nspec:\n"+spec, "apply", "-f", "-")
	must(t, "", "wait", "--for=condition=Ready", "pcpol/"+namespace, "--timeout=30s")
}

// eventually waits until look finds no fault.
func eventually(t *testing.T, what string, look func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = look()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// labelsOf are the labels of a stored object.
func labelsOf(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	labels := map[string]string{}
	output := must(t, "", "-n", namespace, "get", name, "-o", "jsonpath={.metadata.labels}")
	if output == "" {
		return labels
	}
	if err := json.Unmarshal([]byte(output), &labels); err != nil {
		t.Fatalf("labels of %s: %v: %s", name, err, output)
	}
	return labels
}

// absent fails the test when an object is stored.
func absent(t *testing.T, namespace, name string) {
	t.Helper()
	if output, err := kubectl(t, "", "-n", namespace, "get", name); err == nil || !strings.Contains(output, "not found") {
		t.Errorf("%s is there, or cannot be looked for: %v: %s", name, err, output)
	}
}

const cascade = `  rules:
  - name: assign-type-database
    match: {any: [{resources: {kinds: [Pod], namespaces: [cascade]}}]}
    mutate:
      patchStrategicMerge:
        metadata:
          labels:
            type: database
        spec:
          (containers):
          - (image): "*cassandra* | *mongo*"
  - name: assign-backup-database
    match:
      any:
      - resources:
          kinds: [Pod]
          namespaces: [cascade]
          selector:
            matchLabels:
              type: database
    mutate:
      patchStrategicMerge:
        metadata:
          labels:
            +(backup-needed): "yes"
`

// TestCascade: a rule matches what the one before it has made of a Pod, and leaves alone
// what its user has said.
func TestCascade(t *testing.T) {
	changed(t, "cascade", cascade)
	for _, tc := range []struct {
		name, image string
		args        []string
		want        map[string]string
	}{
		{"cassandra", "cassandra:latest", nil, map[string]string{"run": "cassandra", "type": "database", "backup-needed": "yes"}},
		{"no-backup", "cassandra:latest", []string{"--labels=backup-needed=no"}, map[string]string{"type": "database", "backup-needed": "no"}},
		{"mongo", "registry.example.com/mongo:8", nil, map[string]string{"run": "mongo", "type": "database", "backup-needed": "yes"}},
		{"said", "nginx", []string{"--labels=type=database"}, map[string]string{"type": "database", "backup-needed": "yes"}},
		{"nginx", "nginx", nil, map[string]string{"run": "nginx"}},
	} {
		must(t, "", append([]string{"-n", "cascade", "run", tc.name, "--image=" + tc.image}, tc.args...)...)
		if got := labelsOf(t, "cascade", "pod/"+tc.name); !maps.Equal(got, tc.want) {
			t.Errorf("%s: got the labels %v, want %v", tc.name, got, tc.want)
		}
	}
}

const changedWrites = `  rules:
  - name: team
    match: {any: [{resources: {kinds: [Deployment, ConfigMap], namespaces: [changed-writes], operations: [CREATE, UPDATE]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): "{{ request.namespace }}", last: "{{ request.operation }}"}}}}
`

// TestChangedWrites: each way of kubectl to write has the object changed, and a dry run
// shows it and stores nothing.
func TestChangedWrites(t *testing.T) {
	const namespace = "changed-writes"
	changed(t, namespace, changedWrites)
	run := func(input string, args ...string) string {
		t.Helper()
		return must(t, input, append([]string{"-n", namespace}, args...)...)
	}
	stored := func(name, team, last string) {
		t.Helper()
		if got := labelsOf(t, namespace, name); got["team"] != team || got["last"] != last {
			t.Errorf("%s: got the labels %v, want team %s and last %s", name, got, team, last)
		}
	}
	const made, updated = "CREATE", "UPDATE"

	run("", "create", "deployment", "web", "--image=nginx", "--replicas=0")
	stored("deployment/web", namespace, made)

	manifest := run("", "create", "configmap", "applied", "--from-literal=a=b", "--dry-run=client", "-o", "yaml")
	for _, dry := range [][]string{
		{"create", "configmap", "applied"},
		{"apply", "-f", "-"},
		{"apply", "--server-side", "-f", "-"},
	} {
		output := run(manifest, append(dry, "--dry-run=server", "-o", "yaml")...)
		if !strings.Contains(output, "team: "+namespace+"\n") || !strings.Contains(output, "last: "+made+"\n") {
			t.Errorf("kubectl %s --dry-run=server -o yaml shows\n%s", strings.Join(dry, " "), output)
		}
		absent(t, namespace, "configmap/applied")
	}

	run(manifest, "apply", "-f", "-")
	stored("configmap/applied", namespace, made)
	run("", "label", "configmap/applied", "team-")
	stored("configmap/applied", namespace, updated)
	run("", "label", "configmap/applied", "team=theirs", "--overwrite")
	stored("configmap/applied", "theirs", updated)
	run(manifest, "replace", "-f", "-")
	stored("configmap/applied", namespace, updated)
	run("", "patch", "configmap/applied", "--type=json", `--patch=[{"op":"replace","path":"/metadata/labels/team","value":"patched"}]`)
	stored("configmap/applied", "patched", updated)
	run("", "delete", "configmap/applied")

	run(manifest, "apply", "--server-side", "-f", "-")
	stored("configmap/applied", namespace, made)
	for range 2 { // without a conflict with what the rules have written
		run(manifest, "apply", "--server-side", "-f", "-")
		stored("configmap/applied", namespace, updated)
	}
	if output, err := kubectl(t, strings.Replace(manifest, "metadata:", "metadata:\n  labels: {team: applied}", 1), "-n", namespace, "apply", "--server-side", "-f", "-"); err != nil {
		t.Errorf("kubectl says %v: %s", err, output)
	}
	stored("configmap/applied", "applied", updated)
}

const podRules = `  rules:
  - name: no-token
    match: {any: [{resources: {kinds: [Pod], namespaces: [controllers]}}]}
    mutate:
      patchStrategicMerge:
        metadata: {labels: {token: none}}
        spec: {automountServiceAccountToken: false, containers: [{(name): "*", imagePullPolicy: Never}]}
`

// TestControllersOfPods: a rule about Pods changes the templates of their controllers as
// they are written, and the Pods that these make.
func TestControllersOfPods(t *testing.T) {
	const namespace = "controllers"
	changed(t, namespace, podRules)
	const spec = "{%[1]s.metadata.labels.token} {%[1]s.spec.automountServiceAccountToken} {%[1]s.spec.containers[*].imagePullPolicy}"
	const want = "none false Never"
	for _, tc := range []struct{ args, template string }{
		{"deployment web --image=nginx", ".spec.template"},
		{"job once --image=nginx", ".spec.template"},
		{"cronjob nightly --image=nginx --schedule=@midnight", ".spec.jobTemplate.spec.template"},
	} {
		args := append([]string{"-n", namespace, "create"}, strings.Fields(tc.args)...)
		must(t, "", args...)
		got := must(t, "", "-n", namespace, "get", args[3]+"/"+args[4], "-o", "jsonpath="+fmt.Sprintf(spec, tc.template))
		if got != want {
			t.Errorf("kubectl create %s: the template has %q, want %q", tc.args, got, want)
		}
	}
	must(t, "", "-n", namespace, "scale", "deployment/web", "--replicas=2")
	eventually(t, "the Pods of the Deployment", func() error {
		got := must(t, "", "-n", namespace, "get", "pods", "-l", "app=web", "-o", "jsonpath={range .items[*]}"+fmt.Sprintf(spec, "")+"{\"\\n\"}{end}")
		if got != want+"\n"+want+"\n" {
			return fmt.Errorf("got\n%s", got)
		}
		return nil
	})
	// What the rule makes of the ReplicaSet is what its Deployment wants: no other one is made.
	if got := must(t, "", "-n", namespace, "get", "replicasets", "-o", "name"); strings.Count(got, "\n") != 1 {
		t.Errorf("there are the ReplicaSets\n%s", got)
	}
}

// TestOldDeployment: the ReplicaSet of a Deployment that is older than a rule stays its
// ReplicaSet when it is scaled. Were it changed, another one would be made, and another.
func TestOldDeployment(t *testing.T) {
	const namespace = "old-deployment"
	must(t, "", "create", "namespace", namespace)
	must(t, "", "-n", namespace, "create", "deployment", "web", "--image=nginx")
	eventually(t, "the ReplicaSet of the Deployment", func() error {
		if got := must(t, "", "-n", namespace, "get", "replicasets", "-o", "name"); strings.Count(got, "\n") != 1 {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	const rules = `  rules:
  - name: links
    match: {any: [{resources: {kinds: [Pod], namespaces: [old-deployment]}}]}
    mutate: {patchStrategicMerge: {spec: {enableServiceLinks: false}}}
`
	must(t, "apiVersion: policy.portcullis.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: old-deployment}\nspec:\n"+rules, "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "pcpol", "old-deployment") })
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "namespace", namespace, "--wait=false") })
	must(t, "", "wait", "--for=condition=Ready", "pcpol/old-deployment", "--timeout=30s")
	// The controller scales the ReplicaSet, and leaves the Deployment as it was.
	replicaSet := strings.TrimSpace(must(t, "", "-n", namespace, "get", "replicasets", "-o", "name"))
	must(t, "", "-n", namespace, "annotate", replicaSet, "touched=yes")
	must(t, "", "-n", namespace, "scale", "deployment/web", "--replicas=2")
	eventually(t, "two Pods of the ReplicaSet", func() error {
		got := must(t, "", "-n", namespace, "get", replicaSet, "-o", "jsonpath={.status.replicas} {.spec.template.spec.enableServiceLinks}")
		if got != "2 " {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	if got := must(t, "", "-n", namespace, "get", "deployment/web", "-o", "jsonpath={.status.collisionCount}"); got != "" {
		t.Errorf("%s ReplicaSets were made in vain", got)
	}
}

// TestFailingRule: what a rule cannot be applied to is denied under failurePolicy Fail,
// with a text that names the policy and the rule, and left as it is under Ignore.
func TestFailingRule(t *testing.T) {
	const namespace = "failing-rule"
	changed(t, namespace, `  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [failing-rule], names: ["a*"]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {owner: "{{ request.object.metadata.annotations.owner }}"}}}}
`)
	const denial = `ClusterPolicy 'failing-rule' denied request: rule "owner": patchStrategicMerge: metadata.labels.owner: ` +
		`variable {{ request.object.metadata.annotations.owner }}: Unknown key "annotations" in path`
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}`
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"create", "configmap", "anything"}, `error: failed to create configmap: admission webhook "mutations.policy.portcullis.dev" denied the request: ` + denial},
		{[]string{"create", "configmap", "anything", "--dry-run=server"}, `error: failed to create configmap: admission webhook "mutations.policy.portcullis.dev" denied the request: ` + denial},
		// kubectl apply writes an annotation of its own, and shows the causes alone.
		{[]string{"apply", "-f", "-"}, "The request is invalid: : " + strings.Replace(denial, `"annotations"`, `"owner"`, 1)},
	} {
		output, err := kubectl(t, manifest, append([]string{"-n", namespace}, tc.args...)...)
		if err == nil || !strings.Contains(output, tc.want) {
			t.Errorf("kubectl %s: got error %v and %q, want %q", strings.Join(tc.args, " "), err, output, tc.want)
		}
	}
	absent(t, namespace, "configmap/anything")
	absent(t, namespace, "configmap/applied")

	must(t, "", "patch", "pcpol", namespace, "--type=merge", `--patch={"spec":{"failurePolicy":"Ignore"}}`)
	must(t, "", "wait", "--for=condition=Ready", "pcpol/"+namespace, "--timeout=30s")
	must(t, manifest, "-n", namespace, "apply", "-f", "-")
	if got := labelsOf(t, namespace, "configmap/applied"); len(got) > 0 {
		t.Errorf("got the labels %v, want none", got)
	}
}
