// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// later is a mutating webhook of somebody else, which kube-apiserver asks after
// Portcullis: it puts Pods on the network of their node.
type later struct {
	*httptest.Server

	mu sync.Mutex
	// seen are the Pods as it got them, by name.
	seen map[string]*corev1.Pod
}

func newLater(t *testing.T) *later {
	t.Helper()
	l := &later{seen: map[string]*corev1.Pod{}}
	l.Server = httptest.NewTLSServer(l)
	t.Cleanup(l.Close)
	return l
}

// ServeHTTP implements http.Handler.
func (l *later) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review, pod := &admissionv1.AdmissionReview{}, &corev1.Pod{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.seen[pod.Name] = pod
	l.mu.Unlock()
	patch := admissionv1.PatchTypeJSONPatch
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: true, PatchType: &patch,
		Patch: []byte(`[{"op":"add","path":"/spec/hostNetwork","value":true}]`),
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // kube-apiserver finds what is wrong with it
}

// labels are those of a Pod as the webhook got it, nil when it got none.
func (l *later) labels(pod string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[pod] == nil {
		return nil
	}
	return l.seen[pod].Labels
}

// register has kube-apiserver ask the webhook about the Pods of a namespace, but for
// those with the label left-alone. It returns when it does.
func (l *later) register(t *testing.T, namespace string) {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
	must(t, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: zz-later}
webhooks:
- name: later.example.com
  admissionReviewVersions: [v1]
  clientConfig: {url: %q, caBundle: %s}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  objectSelector: {matchExpressions: [{key: left-alone, operator: DoesNotExist}]}
  sideEffects: None
`, l.URL, base64.StdEncoding.EncodeToString(authority), namespace), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "mutatingwebhookconfiguration", "zz-later") })
	eventually(t, "kube-apiserver asks the webhook", func() error {
		must(t, "", "-n", namespace, "run", "asked", "--image=nginx", "--dry-run=server")
		if l.labels("asked") == nil {
			return fmt.Errorf("it did not ask about the Pod")
		}
		return nil
	})
}

// TestLaterWebhook: kube-apiserver asks Portcullis before a webhook whose configuration
// has a later name, again when that has changed the object, and then has the policies
// judge what has come of both.
func TestLaterWebhook(t *testing.T) {
	const namespace = "later"
	changed(t, namespace, `  rules:
  - name: first
    match: {any: [{resources: {kinds: [Pod], namespaces: [later], operations: [CREATE]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {rules: asked}}}}
  - name: network
    match: {any: [{resources: {kinds: [Pod], namespaces: [later], operations: [CREATE]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {network: node}}, spec: {(hostNetwork): true}}}
`)
	l := newLater(t)
	l.register(t, namespace)

	must(t, "", "-n", namespace, "run", "changed", "--image=nginx")
	if got := l.labels("changed"); got["rules"] != "asked" || got["network"] != "" {
		t.Errorf("the later webhook got the labels %v, want those of the rule that came before it", got)
	}
	if got := labelsOf(t, namespace, "pod/changed"); got["rules"] != "asked" || got["network"] != "node" {
		t.Errorf("got the labels %v, want those of a rule that has seen what the later webhook did", got)
	}
	must(t, "", "-n", namespace, "run", "left-alone", "--image=nginx", "--labels=left-alone=yes")
	if got := labelsOf(t, namespace, "pod/left-alone"); l.labels("left-alone") != nil || got["network"] != "" {
		t.Errorf("got the labels %v of a Pod that is not on the network of its node", got)
	}

	must(t, strings.NewReplacer("[apps]", `[""]`, "[deployments]", "[pods]").Replace(policyOf("later.example.com", "!has(object.spec.hostNetwork) || !object.spec.hostNetwork")), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "pvap,pvapb", "later.example.com") })
	must(t, "", "wait", "--for=condition=Ready", "pvap/later.example.com", "--timeout=30s")
	output, err := kubectl(t, "", "-n", namespace, "run", "denied", "--image=nginx")
	const want = `ValidatingAdmissionPolicy 'later.example.com' with binding 'later.example.com' denied request: failed expression: !has(object.spec.hostNetwork)`
	if err == nil || !strings.Contains(output, want) {
		t.Errorf("got error %v and %q, want that what the later webhook did is denied", err, output)
	}
	if l.labels("denied") == nil {
		t.Error("the later webhook was not asked about the Pod that was denied")
	}
	absent(t, namespace, "pod/denied")
	must(t, "", "-n", namespace, "run", "admitted", "--image=nginx", "--labels=left-alone=yes")
}
