// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// testPreviewTimeAndUID: the clock and what is random are inputs.
func testPreviewTimeAndUID(t *testing.T, a *api) {
	spec := mutateRule("test", `- {op: add, path: /data, value: {time: "{{ time_now() }}", utc: "{{ time_now_utc() }}", random: "{{ random('[a-z0-9]{12}') }}"}}`)
	try := func(uid types.UID, clock *metav1.MicroTime) (random, now, utc string) {
		t.Helper()
		status := a.preview(t, v1alpha1.AdmissionPreviewSpec{
			Request:  &v1alpha1.PreviewRequest{Object: raw(configMapOf(t, "test", "c", "")), UID: uid, Time: clock},
			Policies: rulesOf(t, "p", spec), StoredPolicies: v1alpha1.IgnoreStoredPolicies,
		})
		if !status.Allowed || status.Object == nil {
			t.Fatalf("%+v", status)
		}
		var made corev1.ConfigMap
		response{body: status.Object.Raw}.decode(t, &made)
		return made.Data["random"], made.Data["time"], made.Data["utc"]
	}
	summer := metav1.NewMicroTime(time.Date(2024, 7, 1, 12, 30, 0, 0, time.FixedZone("", 7200)))
	first, now, utc := try("uid-1", &summer)
	if now != "2024-07-01T10:30:00Z" || utc != now {
		t.Errorf("the time is %s and %s, want that of the request", now, utc)
	}
	if !regexp.MustCompile("^[a-z0-9]{12}$").MatchString(first) {
		t.Errorf("%q is not of the pattern", first)
	}
	if again, _, _ := try("uid-1", &summer); again != first {
		t.Errorf("the same uid gives %s and %s", first, again)
	}
	other, now, _ := try("uid-2", nil)
	if other == first {
		t.Errorf("another uid gives %s, too", first)
	}
	if got, err := time.Parse(time.RFC3339, now); err != nil || time.Since(got) < -time.Second || time.Since(got) > patience {
		t.Errorf("without a time it is %s, want the present", now)
	}
}

func testPreviewHomeVersions(t *testing.T, a *api) {
	object := configMapOf(t, "test", "c", "")
	for _, version := range []string{"kyverno.io/v1", "kyverno.io/v2beta1", "policy.portcullis.dev/v1alpha1"} {
		for _, kind := range []string{"ClusterPolicy", "Policy"} {
			spec := "rules:\n" + nextRule("change", "", "kinds: [ConfigMap]", labelPatch("by", "rule"))
			manifest := strings.Replace(string(manifestOf(t, kind, "p", spec)), `"policy.portcullis.dev/v1alpha1"`, `"`+version+`"`, 1)
			manifest = strings.Replace(manifest, `"name":"p"`, `"name":"p","namespace":"test"`, 1)
			if !strings.Contains(manifest, version) {
				t.Fatal(manifest)
			}
			status := a.tryRules(t, object, *raw(manifest))
			wantMutation(t, &status, object, configMapOf(t, "test", "c", "by: rule"))
		}
	}
}

// testPreviewOtherKinds: of what is no policy of ours, and of candidates with faults, it is
// said what to do, at its place in the preview.
func testPreviewOtherKinds(t *testing.T, a *api) {
	faulty := "rules:\n" + ruleNamed("r", patches("- {op: add, path: /a, value: '{{ nothing.x }}'}"))
	for manifest, want := range map[string]string{
		string(manifestOf(t, "ClusterPolicy", "p", faulty)): `spec.rules[0].mutate.patchesJson6902: Invalid value: "nothing.x": variable "nothing" is not defined: ` +
			`declare it in context, or begin with request, images, element, elementIndex, serviceAccountName or serviceAccountNamespace`,
		`{"apiVersion":"kyverno.io/v2","kind":"PolicyException","metadata":{"name":"e"}}`: `kind: Forbidden: there are no PolicyExceptions here: narrow match of the rule, or add an exclude to it`,
		`{"apiVersion":"kyverno.io/v2","kind":"ClusterPolicy","metadata":{"name":"e"}}`: `apiVersion: Unsupported value: "kyverno.io/v2": ` +
			`supported values: "policy.portcullis.dev/v1alpha1", "kyverno.io/v1", "kyverno.io/v2beta1"`,
	} {
		_, err := a.client.PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{
			Request: &v1alpha1.PreviewRequest{Object: raw(configMapOf(t, "test", "c", ""))}, Policies: []runtime.RawExtension{*raw(manifest)},
		}}, metav1.CreateOptions{})
		wantReason(t, err, metav1.StatusReasonInvalid)
		if want = `AdmissionPreview.policy.portcullis.dev "" is invalid: spec.policies[0].` + want; err == nil || err.Error() != want {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	}
}

func testPreviewBesideStored(t *testing.T, a *api) {
	a.storeRules(t, map[string]string{"stored": mutateRule("beside", labelPatch("stored", "1"))})
	object := configMapOf(t, "beside", "c", "")
	request := &v1alpha1.PreviewRequest{Object: raw(object)}
	for _, test := range []struct {
		name       string
		candidates []runtime.RawExtension
		want       string
	}{
		{"none", nil, `stored: "1"`},
		{"another", rulesOf(t, "other", mutateRule("beside", labelPatch("other", "2"))), `other: "2", stored: "1"`},
		{"one that shadows", rulesOf(t, "stored", mutateRule("beside", labelPatch("stored", "3"))), `stored: "3"`},
	} {
		status := a.preview(t, v1alpha1.AdmissionPreviewSpec{Request: request, Policies: test.candidates})
		wantMutation(t, &status, object, configMapOf(t, "beside", "c", test.want))
	}
	wantObject(t, patched(t, a.changes(t, mutating.direct, mutateReview(t, "CREATE", object)), object), configMapOf(t, "beside", "c", `stored: "1"`))
}

func testPreviewExistingChanged(t *testing.T, a *api) {
	status := a.preview(t, v1alpha1.AdmissionPreviewSpec{
		Objects:  &v1alpha1.PreviewObjects{Resource: v1alpha1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "existing"},
		Policies: rulesOf(t, "p", mutateRule("existing", labelPatch("team", "a"))), StoredPolicies: v1alpha1.IgnoreStoredPolicies,
	})
	if !status.Allowed || status.Objects == nil || status.Objects.Judged != 2 || status.Objects.Allowed != 2 || status.Objects.Changed != 1 {
		t.Errorf("got %+v", status.Objects)
	}
}
