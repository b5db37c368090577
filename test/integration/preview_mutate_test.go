// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

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
