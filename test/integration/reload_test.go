// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	followHook = "portcullis-follow-objects"

	labelledNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: test, labels: {environment: %s}}\n"

	limitDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: replicalimits.rules.example.com}
spec:
  group: rules.example.com
  scope: Namespaced
  names: {plural: replicalimits, singular: replicalimit, kind: ReplicaLimit}
  versions: [{name: v1, served: true, storage: true}]
`
	limit = "apiVersion: rules.example.com/v1\nkind: ReplicaLimit\nmetadata: {name: limit, namespace: default}\nmaxReplicas: %d\n"

	gadgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.a.example}
spec:
  group: a.example
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - {name: v1beta1, served: true, storage: true}
`
)

// TestReload runs every test below on one server, and changes the files of
// --objects while it serves.
func TestReload(t *testing.T) {
	objects := manifests(t.TempDir())
	objects.write(t, "namespace.yaml", fmt.Sprintf(labelledNamespace, "test"))
	said := &lines{}
	a := newAPI(t, harness.WithObjects(string(objects)), harness.WithConfig(func(c *apiserver.Config) error {
		c.Extra.Hooks[followHook] = observeLog(c.Extra.Hooks[followHook], said)
		return nil
	}))
	tests := []struct {
		name string
		run  func(*testing.T, *api, manifests)
	}{
		{"Params", testReloadParams},
		{"NamespaceLabels", testReloadNamespaceLabels},
		{"Versions", testReloadVersions},
		{"Broken", func(t *testing.T, a *api, objects manifests) { testReloadBroken(t, a, objects, said) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.reset(t)
			a.waitForVerdict(t, "") // that of the test before is gone
			test.run(t, a, objects)
		})
	}
}

// manifests is the directory of --objects.
type manifests string

func (m manifests) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(m), name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m manifests) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(string(m), name)); err != nil {
		t.Fatal(err)
	}
}

// storeLimited stores a policy whose params are of a kind that must be defined.
func (a *api) storeLimited(t *testing.T, onError admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	policy := newPolicy("limit")
	policy.Spec.FailurePolicy = &onError
	policy.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "rules.example.com/v1", Kind: "ReplicaLimit"}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.spec.replicas <= params.maxReplicas"}}
	a.createPolicy(t, policy)
	binding := newBinding("limit", "limit")
	notFound := admissionregistrationv1.DenyAction
	binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "limit", Namespace: "default", ParameterNotFoundAction: &notFound}
	a.createBinding(t, binding)
}

func testReloadParams(t *testing.T, a *api, objects manifests) {
	const (
		unknown  = "ValidatingAdmissionPolicy 'limit' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=ReplicaLimit'"
		notFound = "ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
		tooMany  = "ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: failed expression: object.spec.replicas <= params.maxReplicas"
	)
	a.storeLimited(t, admissionregistrationv1.Fail)
	a.waitForVerdict(t, unknown)
	a.reset(t)
	a.waitForVerdict(t, "")
	a.storeLimited(t, admissionregistrationv1.Ignore)
	objects.write(t, "definition.yaml", limitDefinition)
	objects.write(t, "limit.yaml", fmt.Sprintf(limit, 5))
	a.waitForVerdict(t, tooMany)
	objects.remove(t, "limit.yaml")
	objects.remove(t, "definition.yaml")
	a.waitForVerdict(t, "") // the kind is unknown again, and the failurePolicy is Ignore

	a.reset(t)
	a.storeLimited(t, admissionregistrationv1.Fail)
	a.waitForVerdict(t, unknown)
	objects.write(t, "definition.yaml", limitDefinition)
	a.waitForVerdict(t, notFound)
	objects.write(t, "limit.yaml", fmt.Sprintf(limit, 5))
	a.waitForVerdict(t, tooMany)
	objects.write(t, "limit.yaml", fmt.Sprintf(limit, 6))
	a.waitForVerdict(t, "")
	objects.write(t, "limit.yaml", fmt.Sprintf(limit, 4))
	a.waitForVerdict(t, tooMany)
	objects.remove(t, "limit.yaml")
	a.waitForVerdict(t, notFound)
	objects.remove(t, "definition.yaml")
	a.waitForVerdict(t, unknown)
}

func testReloadNamespaceLabels(t *testing.T, a *api, objects manifests) {
	a.storeDemo(t)
	objects.write(t, "namespace.yaml", fmt.Sprintf(labelledNamespace, "prod"))
	a.waitForVerdict(t, "")
	objects.write(t, "namespace.yaml", fmt.Sprintf(labelledNamespace, "test"))
	a.waitForVerdict(t, demoDenial)
}

// testReloadVersions has a policy on a version that is served only later: then
// the requests for the other version are for the same resource.
func testReloadVersions(t *testing.T, a *api, objects manifests) {
	const denial = "ValidatingAdmissionPolicy 'gadgets' with binding 'gadgets' denied request: no gadgets"
	policy := newPolicy("gadgets")
	rule := &policy.Spec.MatchConstraints.ResourceRules[0].RuleWithOperations.Rule
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{"a.example"}, []string{"v1"}, []string{"gadgets"}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.apiVersion != 'a.example/v1'", Message: "no gadgets"}}
	a.createPolicy(t, policy)
	a.createBinding(t, newBinding("gadgets", "gadgets"))
	served, later := gadgetReview(t, "v1"), gadgetReview(t, "v1beta1")
	a.waitForVerdictOn(t, served, denial) // the policy is in force, whatever the cluster serves
	a.waitForVerdictOn(t, later, "")

	objects.write(t, "gadgets.yaml", gadgetDefinition+"  - {name: v1, served: true, storage: false}\n")
	a.waitForVerdictOn(t, later, denial)
	objects.write(t, "gadgets.yaml", gadgetDefinition+"  - {name: v2, served: true, storage: false}\n")
	a.waitForVerdictOn(t, later, "")
	objects.write(t, "gadgets.yaml", gadgetDefinition+"  - {name: v1, served: true, storage: false}\n")
	a.waitForVerdictOn(t, later, denial)
	objects.remove(t, "gadgets.yaml")
	a.waitForVerdictOn(t, later, "")
}

func testReloadBroken(t *testing.T, a *api, objects manifests, said *lines) {
	a.storeDemo(t)
	// Sound or not, nothing of this counts as long as one file is broken.
	objects.write(t, "broken.yaml", "kind: [")
	objects.write(t, "namespace.yaml", fmt.Sprintf(labelledNamespace, "prod"))
	body, fault := demoReview(t), filepath.Join(string(objects), "broken.yaml")+": document 1, line 1: broken YAML"
	for began := time.Now(); said.count(fault) == 0; {
		if got := verdict(a.review(t, body)); got != demoDenial {
			t.Fatalf("got %q with a broken file, want the verdict of before", got)
		}
		if time.Since(began) > patience {
			t.Fatal("the log does not say what is broken")
		}
	}
	if got := verdict(a.review(t, body)); got != demoDenial {
		t.Errorf("got %q with a broken file, want the verdict of before", got)
	}
	objects.write(t, "broken.yaml", "# mended\n")
	a.waitForVerdict(t, "")
	objects.remove(t, "broken.yaml")
	objects.write(t, "namespace.yaml", fmt.Sprintf(labelledNamespace, "test"))
	a.waitForVerdict(t, demoDenial)
	if got := said.count(fault); got != 1 {
		t.Errorf("the log says %d times what is broken, want once", got)
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, line := range l.text {
		if strings.Contains(line, part) {
			count++
		}
	}
	return count
}

// observeLog gives a hook a log to write.
func observeLog(hook genericapiserver.PostStartHookFunc, log *lines) genericapiserver.PostStartHookFunc {
	return func(hookContext genericapiserver.PostStartHookContext) error {
		hookContext.Context = klog.NewContext(hookContext.Context, funcr.New(log.add, funcr.Options{}))
		return hook(hookContext)
	}
}

func gadgetReview(t *testing.T, version string) []byte {
	t.Helper()
	return encode(t, &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       reviewUID,
			Kind:      metav1.GroupVersionKind{Group: "a.example", Version: version, Kind: "Gadget"},
			Resource:  metav1.GroupVersionResource{Group: "a.example", Version: version, Resource: "gadgets"},
			Name:      "g",
			Namespace: "test",
			Operation: admissionv1.Create,
			Object:    runtime.RawExtension{Raw: []byte(`{"apiVersion":"a.example/` + version + `","kind":"Gadget","metadata":{"name":"g","namespace":"test"}}`)},
		},
	})
}

// waitForVerdictOn is waitForVerdict for any review.
func (a *api) waitForVerdictOn(t *testing.T, body []byte, want string) {
	t.Helper()
	got := ""
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		got = verdict(a.review(t, body))
		return got == want, nil
	})
	if err != nil {
		t.Fatalf("the verdict stays\n%s\nwant\n%s", got, want)
	}
}
