// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ruleFault is what stands in a rule beside its name, and what is said against it.
type ruleFault struct {
	rule    string
	field   string // below the rule
	message string // a part of it
}

const (
	aboutPods = "match: {any: [{resources: {kinds: [Pod]}}]}\n"
	patchPods = "mutate: {patchesJson6902: '- {op: remove, path: /metadata/labels/a}'}\n"
)

// patches is a rule with the text of a JSON patch.
func patches(text string) string {
	return aboutPods + fmt.Sprintf("mutate: {patchesJson6902: %q}\n", text)
}

// keyed is a rule with a precondition.
func keyed(condition string) string {
	return aboutPods + patchPods + "preconditions: {all: [" + condition + "]}\n"
}

// nestedLoops is a rule with loops in each other.
func nestedLoops(depth int) string {
	loop := "[{list: l, patchesJson6902: '[]'}]"
	for range depth - 1 {
		loop = "[{list: request.object.spec.containers, foreach: " + loop + "}]"
	}
	return aboutPods + "mutate: {foreach: " + loop + "}\n"
}

// languageFaults are those of what templates, patches and expressions say. They are looked
// for in rules whose shape is right.
func languageFaults() map[string]ruleFault {
	const text = "mutate.patchesJson6902"
	return map[string]ruleFault{
		"no list":                  {patches(`{op: add}`), text, "Invalid value: a JSON patch is a list of operations"},
		"no YAML":                  {patches(`- {op: add`), text, "the patch is no YAML: "},
		"path without a slash":     {patches(`- {op: add, path: metadata/labels/a, value: b}`), text, `Invalid value: operation 0: path "metadata/labels/a" must begin with a slash`},
		"no path":                  {patches(`- {op: remove}`), text, "Invalid value: operation 0: remove needs a path, which is a string"},
		"unknown operation":        {patches(`- {op: append, path: /metadata/labels/a, value: b}`), text, `Invalid value: operation 0: op is "append", want add, remove, replace, move, copy or test`},
		"no value":                 {patches(`- {op: add, path: /metadata/labels/a}`), text, "Invalid value: operation 0: add needs a value; null is one too"},
		"copy without from":        {patches(`- {op: copy, path: /metadata/labels/a}`), text, "Invalid value: operation 0: copy needs the field from, a path"},
		"syntax in a patch":        {patches(`- {op: add, path: /metadata/labels/a, value: "{{ request.object. }}"}`), text, "variable {{ request.object. }}: at character 16: "},
		"syntax in a precondition": {keyed(`{key: "{{ request.object[ }}", operator: Equals, value: a}`), "preconditions.all[0].key", "variable {{ request.object[ }}: at character 16: "},
		"syntax in an overlay":     {aboutPods + `mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ a b }}"}}}}`, "mutate.patchStrategicMerge.metadata.labels.a", "variable {{ a b }}: at character 3: "},
		"syntax of a list":         {aboutPods + `mutate: {foreach: [{list: "{{ request.object }}", patchesJson6902: "[]"}]}`, "mutate.foreach[0].list", "at character 2: "},
		"syntax of an entry":       {aboutPods + patchPods + `context: [{name: c, variable: {jmesPath: "a["}}]`, "context[0].variable.jmesPath", "at character 3: "},
		"unknown function":         {patches(`- {op: add, path: /metadata/labels/a, value: "{{ to_title('a') }}"}`), text, `Invalid value: variable {{ to_title('a') }}: unknown function "to_title"`},
		"too few arguments":        {patches(`- {op: add, path: /metadata/labels/a, value: "{{ truncate('a') }}"}`), text, "Invalid value: variable {{ truncate('a') }}: function truncate takes 2 arguments, not 1"},
		"too many arguments":       {keyed(`{key: "{{ to_upper('a', 'b') }}", operator: Equals, value: A}`), "preconditions.all[0].key", "Invalid value: variable {{ to_upper('a', 'b') }}: function to_upper takes 1 argument, not 2"},
		"undefined variable":       {patches(`- {op: add, path: /metadata/labels/a, value: "{{ teams.a }}"}`), text, `variable "teams" is not defined: declare it in context, or begin with request, `},
		"undefined in a list":      {aboutPods + `mutate: {foreach: [{list: teams, patchesJson6902: "[]"}]}`, "mutate.foreach[0].list", `variable "teams" is not defined: `},
		"target without targets":   {patches(`- {op: add, path: /metadata/labels/a, value: "{{ target.a }}"}`), text, `variable "target" is not defined: `},
		"a path of nowhere":        {aboutPods + patchPods + "context: [{name: a, apiCall: {urlPath: /healthz}}]\n", "context[0].apiCall.urlPath", "the path /healthz names no resource: "},
	}
}

// shapeFaults are those of fields and of what they may hold.
func shapeFaults() map[string]ruleFault {
	return map[string]ruleFault{
		"unknown operator":           {keyed(`{key: a, operator: Is, value: a}`), "preconditions.all[0].operator", `Unsupported value: "Is": supported values: "Equal", `},
		"no operator":                {keyed(`{key: a, value: a}`), "preconditions.all[0].operator", "Required value: say how to compare"},
		"unknown operation name":     {keyed(`{key: "{{ request.operation }}", operator: AnyIn, value: [CREATE, WRITE]}`), "preconditions.all[0].value[1]", `Unsupported value: "WRITE": supported values: "CREATE", `},
		"unknown field of condition": {keyed(`{key: a, operator: Equals, values: a}`), "preconditions", `Invalid value: unknown field "all[0].values"`},
		"loops too deep":             {nestedLoops(11), "mutate" + strings.Repeat(".foreach[0]", 10) + ".foreach", "Forbidden: loops may not lie deeper than 10 in each other"},
		"context beside a loop":      {aboutPods + `mutate: {foreach: [{list: request.object, context: [{name: a, variable: {value: a}}], foreach: [{list: element, patchesJson6902: "[]"}]}]}`, "mutate.foreach[0].context", "Forbidden: an entry with a foreach cannot have any: move it into the entries of that"},
		"unknown field in a loop":    {aboutPods + `mutate: {foreach: [{list: request.object, foreach: [{lists: element, patchesJson6902: "[]"}]}]}`, "mutate.foreach[0].foreach", `Invalid value: unknown field "[0].lists"`},
		"nothing in a loop":          {aboutPods + `mutate: {foreach: [{list: request.object}]}`, "mutate.foreach[0]", "Required value: exactly one of patchStrategicMerge, patchesJson6902 and foreach is needed"},
		"two forms":                  {aboutPods + `mutate: {patchesJson6902: "[]", patchStrategicMerge: {a: b}}`, "mutate.patchesJson6902", "patchStrategicMerge is given already, and exactly one of "},
		"all kinds and another":      {"match: {any: [{resources: {kinds: [Pod, '*']}}]}\n" + patchPods, "match.any[0].resources.kinds", `Invalid value: ["Pod","*"]: if '*' is present, must not name other kinds`},
		"no kind":                    {"match: {any: [{resources: {namespaces: [a]}}]}\n" + patchPods, "match.any[0].resources.kinds", "Required value: name the kinds that the rule is for"},
		"a kind of too many parts":   {"match: {any: [{resources: {kinds: [a/b/c/d/e]}}]}\n" + patchPods, "match.any[0].resources.kinds[0]", "must be Kind, version/Kind or group/version/Kind"},
		"unknown operation in match": {"match: {any: [{resources: {kinds: [Pod], operations: [PATCH]}}]}\n" + patchPods, "match.any[0].resources.operations[0]", `Unsupported value: "PATCH": supported values: "CREATE", `},
		"validate":                   {aboutPods + "validate: {message: m, pattern: {a: b}}\n", "validate", "Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno, or write a ValidatingAdmissionPolicy"},
		"generate":                   {aboutPods + "generate: {kind: Secret}\n", "generate", "Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno"},
		"verifyImages":               {aboutPods + "verifyImages: [{imageReferences: ['*']}]\n", "verifyImages", "Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno"},
		"nothing":                    {aboutPods, "mutate", "Required value: only mutate rules are run here: say what the rule changes"},
		"targets":                    {aboutPods + "mutate: {targets: [{kind: Secret}], patchesJson6902: '[]'}\n", "mutate.targets", "Forbidden: rules with targets (mutate existing) are not supported yet"},
		"imageRegistry":              {aboutPods + patchPods + "context: [{name: a, imageRegistry: {reference: a}}]\n", "context[0].imageRegistry", "Forbidden: image registries are not reached from here: use images, or put what is needed into a ConfigMap"},
		"globalReference":            {aboutPods + patchPods + "context: [{name: a, globalReference: {name: a}}]\n", "context[0].globalReference", "Forbidden: there are no GlobalContextEntries here: use an apiCall with a urlPath, or a ConfigMap"},
		"service":                    {aboutPods + patchPods + "context: [{name: a, apiCall: {service: {url: 'http://a'}}}]\n", "context[0].apiCall.service", "Forbidden: services are not called from here: use a urlPath of the API of the cluster"},
	}
}

// ruleNamed is a rule as an entry of a list.
func ruleNamed(name, rule string) string {
	return "- name: " + name + "\n  " + strings.ReplaceAll(strings.TrimSpace(rule), "\n", "\n  ") + "\n"
}

// TestRuleFaults: what is wrong with a rule is said when it is written, at its field.
func TestRuleFaults(t *testing.T) {
	a := newAPI(t, withoutConditions())
	for name, faults := range map[string]map[string]ruleFault{"Language": languageFaults(), "Shape": shapeFaults()} {
		t.Run(name, func(t *testing.T) {
			testEachFault(t, a, faults)
			t.Run("together", func(t *testing.T) { testFaultsTogether(t, a, faults) })
		})
	}
	t.Run("Writes", func(t *testing.T) { testFaultyWrites(t, a) })
	t.Run("DryRun", func(t *testing.T) { testRulesDryRun(t, a) })
	t.Run("Strict", func(t *testing.T) { testRulesStrict(t, a) })
}

// causesOf returns the causes of a refusal as field and message.
func causesOf(t *testing.T, err error) map[string]string {
	t.Helper()
	wantReason(t, err, metav1.StatusReasonInvalid)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatalf("error %v has no details", err)
	}
	causes := map[string]string{}
	for _, cause := range status.Status().Details.Causes {
		causes[cause.Field] += cause.Message
	}
	return causes
}

func testEachFault(t *testing.T, a *api, faults map[string]ruleFault) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			_, err := a.clusterPolicies().Create(t.Context(), clusterPolicy(t, "p", "rules:\n"+ruleNamed("r", fault.rule)), metav1.CreateOptions{})
			at := "spec.rules[0]." + fault.field
			causes := causesOf(t, err)
			if message, ok := causes[at]; len(causes) != 1 || !ok || !strings.Contains(message, fault.message) {
				t.Errorf("got %q, want %s: %s", causes, at, fault.message)
			}
		})
	}
}

// testFaultsTogether writes all of them in one policy.
func testFaultsTogether(t *testing.T, a *api, faults map[string]ruleFault) {
	t.Helper()
	spec, want := "rules:\n", map[string]string{}
	for name, fault := range faults {
		want[fmt.Sprintf("spec.rules[%d].%s", len(want), fault.field)] = fault.message
		spec += ruleNamed(name, fault.rule)
	}
	_, err := a.clusterPolicies().Create(t.Context(), clusterPolicy(t, "p", spec), metav1.CreateOptions{})
	causes := causesOf(t, err)
	for at, message := range want {
		if !strings.Contains(causes[at], message) {
			t.Errorf("%s: got %q, want %q", at, causes[at], message)
		}
		delete(causes, at)
	}
	if len(causes) != 0 {
		t.Errorf("said is also %q", causes)
	}
}

// testFaultyWrites: every way to write looks at the rules, and what is refused changes
// nothing.
func testFaultyWrites(t *testing.T, a *api) {
	spec := "rules:\n" + ruleNamed("r", aboutPods+patchPods)
	before := a.createClusterPolicy(t, "written", spec)
	faulty := string(manifestOf(t, "ClusterPolicy", "written", "rules:\n"+ruleNamed("r", patches("- {op: append, path: /a, value: b}"))))
	for _, way := range writeWays() {
		path, name := clusterPoliciesPath, `"name":"written","resourceVersion":"`+before.ResourceVersion+`"`
		if way.create {
			name = `"name":"new"`
		}
		if way.method != http.MethodPost {
			path += map[bool]string{true: "/new", false: "/written"}[way.create]
		}
		body := strings.Replace(faulty, `"name":"written"`, name, 1)
		got := a.do(t, request{method: way.method, path: path + way.query, contentType: way.contentType, body: []byte(body)})
		if got.code != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), `"field":"spec.rules[0].mutate.patchesJson6902"`) {
			t.Errorf("%s: got %d: %s", way.name, got.code, got.body)
		}
	}
	list, err := a.clusterPolicies().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ResourceVersion != before.ResourceVersion {
		t.Errorf("error %v; stored are now %+v", err, list.Items)
	}
}

func testRulesDryRun(t *testing.T, a *api) {
	all := []string{metav1.DryRunAll}
	spec := "rules:\n" + ruleNamed("r", aboutPods+patchPods)
	created, err := a.clusterPolicies().Create(t.Context(), clusterPolicy(t, "dry", spec), metav1.CreateOptions{DryRun: all})
	if err != nil || len(created.Spec.Rules) != 1 {
		t.Fatalf("got %+v and error %v", created, err)
	}
	_, err = a.clusterPolicies().Get(t.Context(), "dry", metav1.GetOptions{})
	wantReason(t, err, metav1.StatusReasonNotFound)
	stored := a.createClusterPolicy(t, "dry", spec)
	patch := []byte(`{"spec":{"applyRules":"One"}}`)
	answer, err := a.clusterPolicies().Patch(t.Context(), "dry", types.MergePatchType, patch, metav1.PatchOptions{DryRun: all})
	if err != nil || answer.Spec.ApplyRules == nil || answer.Generation != 2 {
		t.Errorf("the dry patch answers %+v and error %v, want what would be stored", answer, err)
	}
	if err := a.clusterPolicies().Delete(t.Context(), "dry", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	if got, err := a.clusterPolicies().Get(t.Context(), "dry", metav1.GetOptions{}); err != nil || got.ResourceVersion != stored.ResourceVersion {
		t.Errorf("dry runs have changed %+v, error %v", got, err)
	}
}

// testRulesStrict sends unknown and duplicate fields at every level, as kubectl does.
func testRulesStrict(t *testing.T, a *api) {
	manifest := func(name string) []byte {
		valid := string(manifestOf(t, "ClusterPolicy", name, "rules:\n"+ruleNamed("r", aboutPods+patchPods+"context: [{name: a, variable: {value: {any: thing}}}]")))
		for _, change := range [][2]string{
			{`"rules":`, `"rule":[],"rules":`},
			{`"kinds":`, `"kind":"Pod","kinds":`},
			{`"patchesJson6902":`, `"patchesJSON6902":"","patchesJson6902":`},
			{`"variable":`, `"variables":{},"variable":`},
			{`"name":"r"`, `"name":"q","name":"r"`},
		} {
			changed := strings.Replace(valid, change[0], change[1], 1)
			if changed == valid {
				t.Fatalf("%s is not in %s", change[0], valid)
			}
			valid = changed
		}
		return []byte(valid)
	}
	want := []string{
		`unknown field "spec.rule"`, `unknown field "spec.rules[0].match.any[0].resources.kind"`, `unknown field "spec.rules[0].mutate.patchesJSON6902"`,
		`unknown field "spec.rules[0].context[0].variables"`, `duplicate field "spec.rules[0].name"`,
	}
	strict := a.do(t, request{method: "POST", path: clusterPoliciesPath + "?fieldValidation=Strict", body: manifest("strict")})
	for _, text := range want {
		if strict.code != http.StatusBadRequest || !strings.Contains(string(strict.body), escaped(text)) {
			t.Errorf("Strict answers %d: %s, want %s", strict.code, strict.body, text)
		}
	}
	warn := a.do(t, request{method: "POST", path: clusterPoliciesPath + "?fieldValidation=Warn", body: manifest("warn")})
	warnings := strings.Join(warn.header.Values("Warning"), "\n")
	for _, text := range want {
		if warn.code != http.StatusCreated || !strings.Contains(warnings, escaped(text)) {
			t.Errorf("Warn answers %d with %s, want %s: %s", warn.code, warnings, text, warn.body)
		}
	}
	stored, err := a.clusterPolicies().Get(t.Context(), "warn", metav1.GetOptions{})
	if err != nil || !slices.Equal([]string{"r"}, []string{stored.Spec.Rules[0].Name}) {
		t.Errorf("stored is %+v, error %v", stored, err)
	}
}
