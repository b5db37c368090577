// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// podRule changes Pods, and so what their controllers make them of.
const podRule = `
rules:
- name: owner
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchStrategicMerge: {metadata: {labels: {owner: "{{request.object.metadata.labels.app}}"}}}}
`

// testRulesForControllers: the status shows the rules that are made, the annotation
// chooses them, and both doors and readers go by the same.
func testRulesForControllers(t *testing.T, a *api) {
	a.createClusterPolicy(t, "p", podRule)
	a.awaitGenerated(t, 1, "autogen-owner", "autogen-cronjob-owner")
	const (
		template = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"test"},"spec":{"template":{"metadata":{"labels":{"app":"shop"%s}}}}}`
		owned    = `,"owner":"shop"`
	)
	judged := func(want string) {
		t.Helper()
		object := fmt.Sprintf(template, "")
		response := a.mutate(t, newReview(t, "Deployment", "deployments", "web", object))
		wantObject(t, patched(t, response, object), fmt.Sprintf(template, want))
	}
	judged(owned)

	p := a.annotate(t, "CronJob")
	if p.Generation != 2 || len(p.Status.Autogen.Rules) != 2 {
		t.Errorf("annotated, the policy has generation %d and the status %+v", p.Generation, p.Status.Autogen)
	}
	a.awaitGenerated(t, 2, "autogen-cronjob-owner")
	judged("")
	a.annotate(t, "none")
	a.awaitGenerated(t, 3)

	manifest := encode(t, clusterPolicy(t, "q", podRule))
	manifest = bytes.Replace(manifest, []byte(`"metadata":{`), []byte(`"metadata":{"annotations":{"pod-policies.kyverno.io/autogen-controllers":"Deployment, Job"},`), 1)
	preview := slices.Concat([]byte(`{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"AdmissionPreview","spec":{"request":{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}},"policies":[`),
		bytes.Replace(manifest, []byte(`{`), []byte(`{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy",`), 1), []byte(`]}}`))
	const warned = `metadata.annotations[pod-policies.kyverno.io/autogen-controllers]: not understood as it stands: \" Job\": the annotation is read as`
	for _, written := range []struct {
		path, want string
		body       []byte
	}{
		{clusterPoliciesPath + "?dryRun=All", `299 - "` + warned, manifest},
		{groupPath + "/admissionpreviews", `299 - "ClusterPolicy \"q\": ` + warned, preview},
	} {
		got := a.do(t, request{method: "POST", path: written.path, body: written.body})
		if warnings := got.header.Values("Warning"); got.code != http.StatusCreated || len(warnings) != 1 || !strings.HasPrefix(warnings[0], written.want) {
			t.Errorf("%s: %d %s with warnings %q, want %q", written.path, got.code, got.body, warnings, written.want)
		}
	}
}

func (a *api) annotate(t *testing.T, controllers string) *v1alpha1.ClusterPolicy {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"pod-policies.kyverno.io/autogen-controllers":%q}}}`, controllers)
	p, err := a.clusterPolicies().Patch(t.Context(), "p", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// awaitGenerated waits until the status of p is about a generation, and says that these
// rules are made.
func (a *api) awaitGenerated(t *testing.T, generation int64, names ...string) {
	t.Helper()
	var got v1alpha1.PolicyStatus
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(ctx context.Context) (bool, error) {
		p, err := a.clusterPolicies().Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got = p.Status
		var made []string
		for i := range got.Autogen.Rules {
			made = append(made, got.Autogen.Rules[i].Name)
		}
		return got.ObservedGeneration == generation && slices.Equal(made, names), nil
	})
	if err != nil {
		t.Fatalf("%v: the status stays %+v, want generation %d with %v", err, got, generation, names)
	}
}
