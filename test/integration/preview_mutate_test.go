// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// TestPreviewMutation asks for previews of mutate rules on one server, which has two
// ConfigMaps.
func TestPreviewMutation(t *testing.T) {
	objects := t.TempDir()
	writeFile(t, objects, "objects.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: existing}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: labelled, namespace: existing, labels: {team: a}}\n")
	a := newAPI(t, harness.WithObjects(objects))
	for _, test := range []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"Rules", testPreviewRules},
		{"Foreach", testPreviewForeach},
		{"Fight", testPreviewFight},
		{"Diverging", testPreviewDiverging},
		{"ThenValidated", testPreviewThenValidated},
		{"Failures", testPreviewFailures},
		{"TimeAndUID", testPreviewTimeAndUID},
		{"HomeVersions", testPreviewHomeVersions},
		{"OtherKinds", testPreviewOtherKinds},
		{"BesideStored", testPreviewBesideStored},
		{"Existing", testPreviewExistingChanged},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, a) })
	}
}

// rulesOf are candidates of kind ClusterPolicy, by name and spec.
func rulesOf(t *testing.T, namesAndSpecs ...string) []runtime.RawExtension {
	t.Helper()
	var list []runtime.RawExtension
	for i := 0; i < len(namesAndSpecs); i += 2 {
		list = append(list, runtime.RawExtension{Raw: manifestOf(t, "ClusterPolicy", namesAndSpecs[i], namesAndSpecs[i+1])})
	}
	return list
}

// tryRules previews an object with candidates alone.
func (a *api) tryRules(t *testing.T, object string, policies ...runtime.RawExtension) v1alpha1.AdmissionPreviewStatus {
	t.Helper()
	return a.preview(t, v1alpha1.AdmissionPreviewSpec{
		Request: &v1alpha1.PreviewRequest{Object: raw(object)}, Policies: policies, StoredPolicies: v1alpha1.IgnoreStoredPolicies,
	})
}

// outcomes are the evaluations as texts: policy, rule, outcome, why not or message, values
// and patch.
func outcomes(t *testing.T, evaluations []v1alpha1.Evaluation) []string {
	t.Helper()
	var texts []string
	for i := range evaluations {
		e := &evaluations[i]
		if e.Phase == "" || e.DurationMicroseconds < 0 {
			t.Errorf("evaluation %+v has no phase or took no time", e)
		}
		text := e.Policy.Name + "/" + e.Rule + ": " + string(e.Outcome)
		if e.WhyNot != "" {
			text += "; why not: " + e.WhyNot
		}
		if e.Message != "" {
			text += "; message: " + e.Message
		}
		if e.Values != nil {
			text += "; values: " + string(encode(t, e.Values))
		}
		if e.Patch != nil {
			text += "; patch: " + string(encode(t, e.Patch))
		}
		texts = append(texts, text)
	}
	return texts
}

func wantOutcomes(t *testing.T, status *v1alpha1.AdmissionPreviewStatus, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, outcomes(t, status.Evaluations)); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
}

// wantMutation compares the object and looks that the patch leads there from the one of
// the request.
func wantMutation(t *testing.T, status *v1alpha1.AdmissionPreviewStatus, object, want string) {
	t.Helper()
	if !status.Allowed || status.Object == nil {
		t.Fatalf("got allowed: %v, result %+v and object %v", status.Allowed, status.Result, status.Object)
	}
	wantObject(t, decoded(t, string(status.Object.Raw)), want)
	if len(status.Patch) == 0 {
		wantObject(t, decoded(t, object), want)
		return
	}
	wantObject(t, applyStrictly(t, encode(t, status.Patch), object), want)
}

// testPreviewRules: each rule says what it has done, or why not.
func testPreviewRules(t *testing.T, a *api) {
	const spec = `
rules:
- name: team
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  context:
  - {name: teams, variable: {value: {c: blue}}}
  preconditions:
    all:
    - {key: "{{ request.operation }}", operator: AnyIn, value: [CREATE, UPDATE]}
  mutate:
    patchesJson6902: |-
      - {op: add, path: /metadata/labels/team, value: "{{ teams.{{ request.object.metadata.name }} }}"}
- name: later
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  mutate: {patchesJson6902: '[{"op": "add", "path": "/data", "value": {"team": "{{ request.object.metadata.labels.team }}"}}]'}
- name: updates
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  preconditions:
    any:
    - {key: "{{ request.operation }}", operator: Equals, value: UPDATE, message: only updates}
  mutate: {patchesJson6902: '[{"op": "add", "path": "/data/u", "value": "u"}]'}
- name: pods
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchesJson6902: '[{"op": "add", "path": "/data/p", "value": "p"}]'}
- name: same
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  mutate: {patchesJson6902: '[{"op": "add", "path": "/data/team", "value": "blue"}]'}
- name: excluded
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  exclude: {any: [{resources: {names: ["c*"]}}]}
  mutate: {patchesJson6902: '[{"op": "remove", "path": "/data"}]'}
`
	object := configMapOf(t, "test", "c", "")
	status := a.tryRules(t, object, rulesOf(t, "p", spec)...)
	wantMutation(t, &status, object, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test","labels":{"team":"blue"}},"data":{"team":"blue"}}`)
	wantOutcomes(t, &status,
		`p/team: Mutated; values: {"request.object.metadata.name":"c","request.operation":"CREATE","teams.c":"blue"}; patch: [{"op":"add","path":"/metadata/labels/team","value":"blue"}]`,
		`p/later: Mutated; values: {"request.object.metadata.labels.team":"blue"}; patch: [{"op":"add","path":"/data","value":{"team":"blue"}}]`,
		`p/updates: Skipped; why not: preconditions not met: any[0]: "CREATE" Equals "UPDATE" does not hold: only updates; values: {"request.operation":"CREATE"}`,
		`p/pods: NotMatched; why not: match.any[0]: kind v1/ConfigMap is none of Pod`,
		`p/same: Skipped; why not: the object is already as the rule would make it`,
		`p/excluded: NotMatched; why not: excluded by exclude.any[0]`)
	if len(status.Patch) != 2 || len(status.Diverging) != 0 {
		t.Errorf("got patch %+v and diverging %+v", status.Patch, status.Diverging)
	}
}

func testPreviewForeach(t *testing.T, a *api) {
	const spec = `
rules:
- name: each
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  mutate:
    foreach:
    - list: items(request.object.data, 'key', 'value')
      preconditions: {all: [{key: "{{ element.value }}", operator: NotEquals, value: ""}]}
      patchesJson6902: '[{"op": "replace", "path": "/data/{{ element.key }}", "value": "{{ to_upper(element.value) }}{{ elementIndex }}"}]'
`
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test"},"data":{"a":"x","b":"","c":"z"}}`
	status := a.tryRules(t, object, rulesOf(t, "p", spec)...)
	wantMutation(t, &status, object, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"test"},"data":{"a":"X0","b":"","c":"Z2"}}`)
	// Of the values that an expression had, the first is shown.
	wantOutcomes(t, &status, `p/each: Mutated; values: {"element.key":"a","element.value":"x","elementIndex":0,`+
		`"items(request.object.data, 'key', 'value')":[{"key":"a","value":"x"},{"key":"b","value":""},{"key":"c","value":"z"}],"to_upper(element.value)":"X"}; `+
		`patch: [{"op":"replace","path":"/data/a","value":"X0"},{"op":"replace","path":"/data/c","value":"Z2"}]`)
}

// testPreviewFight: of two policies that want the same field, one can see which had the
// last word.
func testPreviewFight(t *testing.T, a *api) {
	object := configMapOf(t, "test", "c", "team: x")
	status := a.tryRules(t, object, rulesOf(t, "b", mutateRule("test", labelPatch("team", "blue")), "a", mutateRule("test", labelPatch("team", "red")))...)
	wantMutation(t, &status, object, configMapOf(t, "test", "c", "team: blue"))
	if len(status.Diverging) != 0 {
		t.Errorf("diverging are %+v: sent again, the object stays as it is", status.Diverging)
	}
	wantOutcomes(t, &status,
		`a/change: Mutated; patch: [{"op":"replace","path":"/metadata/labels/team","value":"red"}]`,
		`b/change: Mutated; patch: [{"op":"replace","path":"/metadata/labels/team","value":"blue"}]`)
}

// testPreviewDiverging: a rule that never comes to an end is named.
func testPreviewDiverging(t *testing.T, a *api) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"test"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	const spec = `
rules:
- name: label
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchesJson6902: '[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]'}
- name: append
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {patchesJson6902: '[{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k", "operator": "Exists"}}]'}
`
	status := a.tryRules(t, pod, rulesOf(t, "p", spec)...)
	wantMutation(t, &status, pod, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"test","labels":{"a":"b"}},`+
		`"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":[{"key":"k","operator":"Exists"}]}}`)
	want := `[{"policy":{"kind":"ClusterPolicy","name":"p"},"rule":"append","patch":[{"op":"add","path":"/spec/tolerations/1","value":{"key":"k","operator":"Exists"}}]}]`
	if got := string(encode(t, status.Diverging)); got != want {
		t.Errorf("diverging are\n%s\nwant\n%s", got, want)
	}
}

// testPreviewThenValidated: those who judge see what has become of the object.
func testPreviewThenValidated(t *testing.T, a *api) {
	validating := configMapPolicy("judge", "", "team must be blue")
	validating.Spec.Validations[0].Expression = "object.metadata.labels.team == 'blue'"
	judge := candidates(t, validating, newBinding("judge", "judge"))
	object := configMapOf(t, "test", "c", "")
	for team, judged := range map[string]string{"blue": "Allowed", "red": "Denied; message: team must be blue"} {
		status := a.tryRules(t, object, append(rulesOf(t, "p", mutateRule("test", labelPatch("team", team))), judge...)...)
		if status.Allowed != (team == "blue") {
			t.Errorf("%s: got allowed: %v, %+v", team, status.Allowed, status.Result)
		}
		wantOutcomes(t, &status,
			`p/change: Mutated; patch: [{"op":"add","path":"/metadata/labels/team","value":"`+team+`"}]`,
			`judge/validations[0]: `+judged+`; values: {"object.metadata.labels.team":"`+team+`"}`)
		if status.Object == nil {
			t.Fatal("no object")
		}
		wantObject(t, decoded(t, string(status.Object.Raw)), configMapOf(t, "test", "c", "team: "+team))
	}
}

// testPreviewFailures: a rule that fails is an error, which denies or does not count.
func testPreviewFailures(t *testing.T, a *api) {
	spec := mutateRule("test", labelPatch("a", "b")) + nextRule("fails", "test", "", `- {op: add, path: /data/x, value: "{{ request.object.data.none }}"}`)
	object := configMapOf(t, "test", "c", "")
	neverAsked := candidates(t, configMapPolicy("judge", "", "no"), newBinding("judge", "judge"))
	const (
		mutated = `p/change: Mutated; patch: [{"op":"add","path":"/metadata/labels/a","value":"b"}]`
		fault   = `rule "fails": patchesJson6902: variable {{ request.object.data.none }}: Unknown key "data" in path`
		values  = `; values: {"request.object.data.none":{"error":"Unknown key \"data\" in path"}}`
	)
	status := a.tryRules(t, object, append(rulesOf(t, "p", spec), neverAsked...)...)
	wantOutcomes(t, &status, mutated, "p/fails: Error; message: "+fault+values)
	if want := `configmaps "c" is forbidden: ClusterPolicy 'p' denied request: ` + fault; status.Allowed || status.Result == nil || status.Result.Message != want || status.Result.Code != 422 {
		t.Errorf("got %v, %+v, want the message\n%s", status.Allowed, status.Result, want)
	}
	status = a.tryRules(t, object, rulesOf(t, "p", spec+"failurePolicy: Ignore\n")...)
	wantMutation(t, &status, object, configMapOf(t, "test", "c", "a: b"))
	wantOutcomes(t, &status, mutated, "p/fails: Error; why not: failurePolicy Ignore: the error does not count; message: "+fault+values)
}

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

func testPreviewOtherKinds(t *testing.T, a *api) {
	for manifest, want := range map[string]string{
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
