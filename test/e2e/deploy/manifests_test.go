// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/controlplane"
	"github.com/portcullis-dev/portcullis/test/controlplane/controlplanetest"
)

// TestInstallWithoutServers applies the manifests as they are, once, to a cluster in
// which no server of Portcullis ever answers: also then they can be applied again and
// removed, and Pods of theirs are made.
func TestInstallWithoutServers(t *testing.T) {
	c := controlplanetest.Start(t, controlplane.Options{})
	dir := manifests(t, "")
	must(t, c, "", "apply", "-k", dir)
	waitForPods(t, c, "component=server", 2)
	waitForPods(t, c, "component=etcd", 3)
	if warnings := must(t, c, "", "-n", "portcullis-system", "get", "events", "--field-selector=type=Warning"); strings.Contains(warnings, "PodSecurity") {
		t.Errorf("Pods violate a standard:\n%s", warnings)
	}
	waitRegistered(t, c)

	settle(t, c, dir)
	before := objectsOf(t, c, dir)
	must(t, c, "", "apply", "-k", dir)
	compare(t, before, objectsOf(t, c, dir))
	if output := must(t, c, "", "diff", "-k", dir); output != "" {
		t.Errorf("there is a difference:\n%s", output)
	}
	must(t, c, "", "delete", "-k", dir, "--timeout=1m")
	for _, kind := range []string{"namespace/portcullis-system", "apiservice/v1alpha1.policy.portcullis.dev", "validatingwebhookconfiguration/portcullis", "mutatingwebhookconfiguration/portcullis"} {
		if output, err := kubectl(t, c, "", "get", kind); err == nil {
			t.Errorf("%s is left: %s", kind, output)
		}
	}
}

// settle waits until controllers have written what they have to.
func settle(t *testing.T, c *controlplane.ControlPlane, dir string) {
	t.Helper()
	last := ""
	same := 0
	eventually(t, "nobody writes any more", func() string {
		var versions []string
		for name, object := range objectsOf(t, c, dir) {
			versions = append(versions, name+" "+object.GetResourceVersion())
		}
		slices.Sort(versions)
		now := strings.Join(versions, "\n")
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		if same < 3 {
			return "someone does"
		}
		return ""
	})
}

// waitForPods waits until controllers have made Pods.
func waitForPods(t *testing.T, c *controlplane.ControlPlane, component string, want int) {
	t.Helper()
	eventually(t, "there are Pods of "+component, func() string {
		output, err := kubectl(t, c, "", "-n", "portcullis-system", "get", "pods", "-l", "app.kubernetes.io/"+component, "-o", "name")
		if pods := strings.Count(output, "pod/"); err != nil || pods != want {
			return fmt.Sprintf("%d of %d, error %v: %s", pods, want, err, output)
		}
		return ""
	})
}

// waitRegistered waits until kube-apiserver asks servers that are not there.
func waitRegistered(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	eventually(t, "the registration is in force", func() string {
		output, err := kubectl(t, c, "", "create", "configmap", "judged", "--dry-run=server")
		if err == nil || !strings.Contains(output, unreachable) {
			return fmt.Sprintf("error %v: %s", err, output)
		}
		return ""
	})
}

// TestComponents: all of them at once make what a cluster takes, and each what it says.
func TestComponents(t *testing.T) {
	names := []string{"judge-kube-system", "local-path-storage", "secrets-as-params", "bootstrap-policies", "cert-manager"}
	dir := kustomization(t, "configMapGenerator:\n- name: portcullis-bootstrap-policies\n  namespace: portcullis-system\n  files: [policies.yaml]\n",
		map[string]string{"policies.yaml": bootstrapPolicy}, names...)
	c := shared.ControlPlane
	for _, resource := range []string{"issuers", "certificates"} {
		makeKind(t, c, "cert-manager.io", resource, "Namespaced")
	}
	must(t, c, "", "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k", dir)

	rendered := objects(t, must(t, c, "", "create", "--dry-run=client", "--validate=false", "-o", "json", "-k", dir))
	deployment := encoded(t, rendered["Deployment portcullis-system/portcullis"])
	for _, want := range []string{
		`"--bootstrap-policies=/bootstrap-policies"`, `"mountPath":"/bootstrap-policies"`, `"configMap":{"name":"portcullis-bootstrap-policies-`,
		`"--tls-cert-file=/serving-certificate/tls.crt"`, `"--tls-private-key-file=/serving-certificate/tls.key"`, `"secretName":"portcullis-serving-tls"`,
	} {
		if !strings.Contains(deployment, want) {
			t.Errorf("the Deployment has no %s:\n%s", want, deployment)
		}
	}
	restricted(t, c, rendered["Deployment portcullis-system/portcullis"])
	restricted(t, c, rendered["StatefulSet portcullis-system/portcullis-etcd"])
	for name, object := range rendered {
		switch object.GetName() {
		case "portcullis:serving-certificate":
			t.Errorf("%s is not needed with cert-manager", name)
		case "v1alpha1.policy.portcullis.dev":
			if got := object.GetAnnotations()["cert-manager.io/inject-ca-from"]; rendered["Certificate "+got] == nil {
				t.Errorf("the APIService trusts %q, which is no Certificate", got)
			}
		}
	}
	validating, mutating := webhookOf(t, rendered["ValidatingWebhookConfiguration /portcullis"]), webhookOf(t, rendered["MutatingWebhookConfiguration /portcullis"])
	if got := encoded(t, validating["namespaceSelector"]); !strings.Contains(got, `"values":["portcullis-system","local-path-storage"]`) {
		t.Errorf("got namespaceSelector %s", got)
	}
	if got := encoded(t, validating["matchConditions"]); !strings.Contains(got, `"name":"not-local-path-storage"`) {
		t.Errorf("got matchConditions %s", got)
	}
	for _, field := range []string{"rules", "namespaceSelector", "objectSelector", "matchConditions", "failurePolicy", "matchPolicy", "sideEffects", "timeoutSeconds"} {
		if want, got := encoded(t, validating[field]), encoded(t, mutating[field]); got != want {
			t.Errorf("%s: mutations has\n%s\nand validations\n%s", field, got, want)
		}
	}
}

// TestWithoutMutations: what the document says leaves out the mutating configuration,
// and nothing else.
func TestWithoutMutations(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(document), "### Without the mutating door\n")
	_, after, fenced := strings.Cut(after, "```yaml\n")
	patches, _, ended := strings.Cut(after, "```")
	if !found || !fenced || !ended {
		t.Fatal("docs/install.md does not say how to leave out the mutating configuration")
	}
	rendered := func(dir string) map[string]*unstructured.Unstructured {
		return objects(t, must(t, shared.ControlPlane, "", "create", "--dry-run=client", "--validate=false", "-o", "json", "-k", dir))
	}
	whole, rest := rendered(kustomization(t, "", nil)), rendered(kustomization(t, patches, nil))
	delete(whole, "MutatingWebhookConfiguration /portcullis")
	if got, want := slices.Sorted(maps.Keys(rest)), slices.Sorted(maps.Keys(whole)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// restricted has the namespace accept a Pod of a workload.
func restricted(t *testing.T, c *controlplane.ControlPlane, workload *unstructured.Unstructured) {
	t.Helper()
	pod, _, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	template := &unstructured.Unstructured{Object: pod}
	template.SetNamespace(workload.GetNamespace())
	template.SetName("one-of-" + workload.GetName())
	// A StatefulSet adds its volumes to those of the template.
	volumes, _, err := unstructured.NestedSlice(pod, "spec", "volumes")
	if err != nil {
		t.Fatal(err)
	}
	if workload.GetKind() == "StatefulSet" {
		volumes = append(volumes, map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}})
	}
	if err := unstructured.SetNestedSlice(pod, volumes, "spec", "volumes"); err != nil {
		t.Fatal(err)
	}
	must(t, c, encoded(t, pod), "create", "--dry-run=server", "-f", "-")
	if err := unstructured.SetNestedField(pod, true, "spec", "hostNetwork"); err != nil {
		t.Fatal(err)
	}
	if output, err := kubectl(t, c, encoded(t, pod), "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(output, "violates PodSecurity \"restricted") {
		t.Errorf("a Pod on the network of its node: error %v: %s", err, output)
	}
}

// webhookOf is the only webhook of a configuration.
func webhookOf(t *testing.T, configuration *unstructured.Unstructured) map[string]any {
	t.Helper()
	if configuration == nil {
		t.Fatal("there is no configuration")
	}
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil || len(webhooks) != 1 {
		t.Fatalf("got webhooks %v, error %v", webhooks, err)
	}
	webhook, ok := webhooks[0].(map[string]any)
	if !ok {
		t.Fatalf("got webhook %v", webhooks[0])
	}
	return webhook
}

// makeKind makes a CustomResourceDefinition for the duration of a test.
func makeKind(t *testing.T, c *controlplane.ControlPlane, group, plural, scope string, shortNames ...string) {
	t.Helper()
	kind := kinds[plural]
	name := plural + "." + group
	must(t, c, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},"spec":{
"group":%q,"scope":%q,"names":{"plural":%q,"singular":%q,"kind":%q,"shortNames":%s},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		name, group, scope, plural, strings.ToLower(kind), kind, encoded(t, append([]string{}, shortNames...))), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, c, "", "delete", "crd", name) })
	must(t, c, "", "wait", "--for=condition=Established", "crd/"+name, "--timeout=1m")
}

// kinds are those of resources of others.
var kinds = map[string]string{
	"issuers": "Issuer", "certificates": "Certificate",
	"clusterpolicies": "ClusterPolicy", "policies": "Policy",
	"clusteradmissionpolicies": "ClusterAdmissionPolicy", "admissionpolicies": "AdmissionPolicy",
	"clusteradmissionpolicygroups": "ClusterAdmissionPolicyGroup", "admissionpolicygroups": "AdmissionPolicyGroup",
}

// bootstrapPolicy denies ConfigMaps with the label denied.
const bootstrapPolicy = `apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: denied.static.k8s.io
spec:
  policyName: denied.static.k8s.io
  validationActions: [Deny]
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata:
  name: denied.static.k8s.io
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [configmaps]
    objectSelector:
      matchLabels: {denied: "true"}
  validations:
  - expression: "false"
    message: denied by a bootstrap policy
`
