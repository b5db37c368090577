// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// TestPreviewsConceal: what a stored policy reads, a preview shows only to those who may
// read it, and no candidate gets it out.
func TestPreviewsConceal(t *testing.T) {
	a := newReaders(t)
	a.storeRules(t, map[string]string{
		"m-data": reading("test", settingsOfProd, teamOfSettings),
		"m-error": strings.Replace(reading("error", settingsOfProd, teamOfSettings), "{op: add, path: /data/copied", `{op: replace, path: "/data/{{ settings.data.team }}"`, 1) +
			"failurePolicy: Ignore\n",
		"m-rules": reading("rules", settingsOfProd, teamOfSettings) + nextRule("next", "rules", "", `- {op: add, path: /data/again, value: "{{ request.object.data.copied }}"}`),
		"m-condition": strings.Replace(reading("condition", settingsOfProd, "request.name"), "  mutate:",
			`  preconditions: {all: [{key: "{{ settings.data.team }}", operator: Equals, value: other}]}`+"\n  mutate:", 1),
		"n-later": mutateRule("later", `- {op: add, path: /data/again, value: "{{ request.object.data.copied }}"}`),
		"m-later": reading("later", settingsOfProd, teamOfSettings),
	})
	t.Run("OneRequest", func(t *testing.T) { testConcealed(t, a) })
	t.Run("ExistingObjects", func(t *testing.T) { testConcealedExisting(t, a) })
}

// tellers are candidates that say what stands in the object: as the message of a denial,
// and as the values of what passes.
func tellers(t *testing.T) (inMessage, inValues []runtime.RawExtension) {
	t.Helper()
	denies := configMapPolicy("told", "", "")
	denies.Spec.Validations[0].Expression = "object.data.copied == ''"
	denies.Spec.Validations[0].MessageExpression = "'it is ' + object.data.copied"
	passes := configMapPolicy("told", "", "")
	passes.Spec.Validations[0].Expression = "object.data.copied != ''"
	binding := newBinding("told", "told")
	return candidates(t, denies, binding), candidates(t, passes, binding)
}

func testConcealed(t *testing.T, a *api) {
	inMessage, inValues := tellers(t)
	tests := []struct {
		name, namespace string
		candidates      []runtime.RawExtension
	}{
		{"values, patch and object", "test", nil},
		{"an error", "error", nil},
		{"a condition", "condition", nil},
		{"the next rule", "rules", nil},
		{"the next policy", "later", nil},
		{"a rule", "test", rulesOf(t, "z", mutateRule("test", `- {op: add, path: /data/again, value: "{{ request.object.data.copied }}"}`))},
		{"preconditions", "test", rulesOf(t, "z", mutateRule("test", "[]")+"  preconditions: [{key: '{{ request.object.data.copied }}', operator: Equals, value: other}]\n")},
		{"a message", "test", inMessage},
		{"the values of a validation", "test", inValues},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for user, reads := range map[string]bool{"olga": false, "lena": false, "peggy": true, "nina": true, "root": true} {
				code, answer := a.previewAs(t, user, v1alpha1.AdmissionPreviewSpec{
					Request: &v1alpha1.PreviewRequest{Object: raw(configMapOf(t, test.namespace, "c", ""))}, Policies: test.candidates,
				})
				if shown := strings.Contains(answer, hiddenText); code != http.StatusCreated || shown != reads {
					t.Errorf("%s gets %d and is shown it: %v, want %v: %s", user, code, shown, reads, answer)
				}
				if !reads && len(test.candidates) > 0 && !strings.Contains(answer, "it is a candidate, and a stored policy has changed the object") {
					t.Errorf("%s is told %s, want that the candidate is not asked", user, answer)
				}
			}
		})
	}
}

// testConcealedExisting: how many objects a candidate denies would tell what stands in
// them.
func testConcealedExisting(t *testing.T, a *api) {
	inMessage, _ := tellers(t)
	objects := &v1alpha1.PreviewObjects{Resource: v1alpha1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "test"}
	for _, test := range []struct {
		user   string
		stored v1alpha1.StoredPolicies
		told   []runtime.RawExtension
		code   int
		want   string
	}{
		{user: "lena", told: inMessage, code: http.StatusForbidden, want: `the stored ClusterPolicy \"m-condition\" reads it, and candidates would judge what becomes of the objects`},
		{user: "lena", told: inMessage, stored: v1alpha1.IgnoreStoredPolicies, code: http.StatusCreated, want: `"judged":1,"allowed":0,"denied":0,"error":1`},
		{user: "lena", code: http.StatusCreated, want: `"judged":1,"allowed":1`},
		{user: "peggy", told: inMessage, code: http.StatusCreated, want: "it is " + hiddenText},
	} {
		code, answer := a.previewAs(t, test.user, v1alpha1.AdmissionPreviewSpec{Objects: objects, StoredPolicies: test.stored, Policies: test.told})
		if code != test.code || !strings.Contains(answer, test.want) {
			t.Errorf("%s gets %d: %s, want %d: %s", test.user, code, answer, test.code, test.want)
		}
		if test.user == "lena" && strings.Contains(answer, hiddenText) {
			t.Errorf("lena is shown it: %s", answer)
		}
	}
}

// previewAs returns the code and the body that a user is answered.
func (a *api) previewAs(t *testing.T, user string, spec v1alpha1.AdmissionPreviewSpec) (code int, answer string) {
	t.Helper()
	body := encode(t, &v1alpha1.AdmissionPreview{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AdmissionPreview"}, Spec: spec,
	})
	got := a.do(t, request{method: http.MethodPost, path: groupPath + "/admissionpreviews", body: body, token: user, client: a.stranger(t)})
	return got.code, string(got.body)
}
