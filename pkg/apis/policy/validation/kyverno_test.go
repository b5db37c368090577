// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// specOf reads a spec as the API server does.
func specOf(t testing.TB, text string) kyvernov1.Spec {
	t.Helper()
	var spec kyvernov1.Spec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return spec
}

func clusterPolicyOf(spec kyvernov1.Spec) *policy.ClusterPolicy {
	return &policy.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "add-labels"}, Spec: spec}
}

func namespacedPolicyOf(spec kyvernov1.Spec) *policy.Policy {
	return &policy.Policy{ObjectMeta: metav1.ObjectMeta{Name: "add-labels", Namespace: "team-a"}, Spec: spec}
}

// ruleOf is a policy with one rule that has further lines.
func ruleOf(lines ...string) string {
	return "rules:\n- name: r\n  " + strings.Join(lines, "\n  ") + "\n"
}

const (
	matchPods  = "match: {any: [{resources: {kinds: [Pod]}}]}"
	mutatePods = `mutate: {patchesJson6902: '[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]'}`

	operationNames = `"CREATE", "UPDATE", "DELETE", "CONNECT"`
	operatorNames  = `"Equal", "Equals", "NotEqual", "NotEquals", "In", "NotIn", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn", ` +
		`"GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals", ` +
		`"DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals"`
)

type specTest struct {
	name, spec string
	want       []string
}

func runSpecTests(t *testing.T, tests []specTest, validate func(kyvernov1.Spec) field.ErrorList) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { expectErrors(t, validate(specOf(t, test.spec)), test.want) })
	}
}

func validateAsClusterPolicy(spec kyvernov1.Spec) field.ErrorList {
	return ValidateClusterPolicy(clusterPolicyOf(spec))
}

func TestValidateClusterPolicySettings(t *testing.T) {
	rule := ruleOf(matchPods, mutatePods)
	runSpecTests(t, []specTest{
		{"valid", rule, nil},
		{"no rules", "{}", []string{"spec.rules: Required value: a policy needs a rule"}},
		{
			"names",
			"rules:\n" + strings.Repeat("- {name: r, "+matchPods+", "+mutatePods+"}\n", 2) +
				"- {name: '', " + matchPods + ", " + mutatePods + "}\n- {name: " + strings.Repeat("n", 64) + ", " + matchPods + ", " + mutatePods + "}\n",
			[]string{
				`spec.rules[1].name: Duplicate value: "r"`,
				`spec.rules[2].name: Required value: a rule needs a name`,
				`spec.rules[3].name: Too long: may not be more than 63 bytes`,
			},
		},
		{
			"too many rules", "rules:\n" + strings.Repeat("- {name: r}\n", maxRules+1),
			[]string{"spec.rules: Too many: 1001: must have at most 1000 items"},
		},
		{
			"too many variables", rule + "  context:\n" + strings.Repeat("  - {name: v, variable: {value: 1}}\n", maxContextEntries+1),
			[]string{"spec.rules[0].context: Too many: 1001: must have at most 1000 items"},
		},
		{
			"everything that may be said",
			rule + "applyRules: One\nfailurePolicy: Ignore\nadmission: true\nbackground: false\nemitWarning: true\nschemaValidation: false\nwebhookTimeoutSeconds: 30\n" +
				"validationFailureAction: Audit\ngenerateExisting: true\nuseServerSideApply: true\nwebhookConfiguration: {matchConditions: [{name: n, expression: 'request.dryRun'}]}\n",
			nil,
		},
		{
			"what cannot be",
			rule + "applyRules: Some\nfailurePolicy: fail\nadmission: false\nmutateExistingOnPolicyUpdate: true\nwebhookTimeoutSeconds: 0\n" +
				"webhookConfiguration: {failurePolicy: Never, timeoutSeconds: 31, matchConditions: [{name: n, expression: 'object.'}, {name: '!', expression: 'true'}]}\n",
			[]string{
				`spec.applyRules: Unsupported value: "Some": supported values: "All", "One"`,
				`spec.admission: Forbidden: mutate rules are for requests: remove the field, or the policy`,
				`spec.mutateExistingOnPolicyUpdate: Forbidden: rules with targets (mutate existing) are not supported yet: remove the field`,
				`spec.failurePolicy: Unsupported value: "fail": supported values: "Fail", "Ignore"`,
				`spec.webhookTimeoutSeconds: Invalid value: 0: must be between 1 and 30 seconds`,
				`spec.webhookConfiguration.failurePolicy: Unsupported value: "Never": supported values: "Fail", "Ignore"`,
				`spec.webhookConfiguration.timeoutSeconds: Invalid value: 31: must be between 1 and 30 seconds`,
				`spec.failurePolicy: Forbidden: spec.webhookConfiguration.failurePolicy says the same: remove this field`,
				`spec.webhookTimeoutSeconds: Forbidden: spec.webhookConfiguration.timeoutSeconds says the same: remove this field`,
				"spec.webhookConfiguration.matchConditions[0].expression: Invalid value: \"object.\": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | object.\n | .......^",
				`spec.webhookConfiguration.matchConditions[1].name: Invalid value: "!": ` + qualifiedName,
			},
		},
	}, validateAsClusterPolicy)
}

func TestValidateRules(t *testing.T) {
	const cel = "it is for validate rules, and only mutate rules are run here: write preconditions, or spec.webhookConfiguration.matchConditions"
	runSpecTests(t, []specTest{
		{"no action", ruleOf(matchPods), []string{"spec.rules[0].mutate: Required value: only mutate rules are run here: say what the rule changes"}},
		{"empty action", ruleOf(matchPods, "mutate: {}"), []string{"spec.rules[0].mutate: Required value: only mutate rules are run here: say what the rule changes"}},
		{
			"validate", ruleOf(matchPods, "validate: {message: m}"),
			[]string{"spec.rules[0].validate: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno, or write a ValidatingAdmissionPolicy"},
		},
		{
			"generate", ruleOf(matchPods, "generate: {kind: ConfigMap}"),
			[]string{"spec.rules[0].generate: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno"},
		},
		{
			"verifyImages", ruleOf(matchPods, "verifyImages: [{}, {imageReferences: ['*']}]", "imageExtractors: {Task: [{path: /spec}]}"),
			[]string{
				"spec.rules[0].verifyImages: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno",
				"spec.rules[0].imageExtractors: Forbidden: it is for rules that verify images, and only mutate rules are run here: remove it",
			},
		},
		{
			"a second action", ruleOf(matchPods, mutatePods, "validate: {message: m}", "celPreconditions: [{name: n, expression: 'true'}]"),
			[]string{
				"spec.rules[0].validate: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno, or write a ValidatingAdmissionPolicy",
				"spec.rules[0].celPreconditions: Forbidden: " + cel,
			},
		},
		{
			"rules of other kinds beside a mutate rule",
			ruleOf(matchPods, mutatePods) + "- {name: v, " + matchPods + ", validate: {message: m}}\n- {name: g, " + matchPods + ", generate: {kind: ConfigMap}}\n",
			[]string{
				"spec.rules[1].validate: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno, or write a ValidatingAdmissionPolicy",
				"spec.rules[2].generate: Forbidden: only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno",
			},
		},
		{"empty other actions", ruleOf(matchPods, mutatePods, "validate: {}", "generate: { }", "verifyImages: [{}]", "celPreconditions: []", "exclude: {resources: {}}"), nil},
		{
			"targets", ruleOf(matchPods, "mutate: {targets: [{kind: Secret}], mutateExistingOnPolicyUpdate: true, patchStrategicMerge: {a: b}}"),
			[]string{
				"spec.rules[0].mutate.targets: Forbidden: rules with targets (mutate existing) are not supported yet: move the rule to a policy of its own, and leave that to Kyverno",
				"spec.rules[0].mutate.mutateExistingOnPolicyUpdate: Forbidden: rules with targets (mutate existing) are not supported yet: remove the field",
			},
		},
		{
			"no patch", ruleOf(matchPods, "mutate: {mutateExistingOnPolicyUpdate: false}"),
			[]string{"spec.rules[0].mutate: Required value: exactly one of patchStrategicMerge, patchesJson6902 and foreach is needed"},
		},
		{
			"three patches", ruleOf(matchPods, "mutate: {patchStrategicMerge: {}, patchesJson6902: '[]', foreach: [{list: l, patchesJson6902: '[]'}]}"),
			[]string{
				"spec.rules[0].mutate.patchesJson6902: Forbidden: patchStrategicMerge is given already, and exactly one of patchStrategicMerge, patchesJson6902 and foreach is allowed",
				"spec.rules[0].mutate.foreach: Forbidden: patchStrategicMerge is given already, and exactly one of patchStrategicMerge, patchesJson6902 and foreach is allowed",
			},
		},
	}, validateAsClusterPolicy)
}

func TestValidateForEach(t *testing.T) {
	forEach := func(entry string) string { return ruleOf(matchPods, "mutate: {foreach: ["+entry+"]}") }
	nested := func(depth int) string {
		entry := "{list: l, patchesJson6902: '[]'}"
		for range depth - 1 {
			entry = "{list: l, foreach: [" + entry + "]}"
		}
		return forEach(entry)
	}
	const path = "spec.rules[0].mutate.foreach[0]"
	const list = "list: Required value: say what to go through: a JMESPath expression without braces, such as request.object.spec.containers"
	runSpecTests(t, []specTest{
		{"valid", forEach("{list: l, order: Descending, context: [{name: a, variable: {value: 1}}], preconditions: {all: [{key: a, operator: Equals, value: b}]}, patchesJson6902: '[]'}"), nil},
		{"as deep as may be", nested(maxForEachDepth), nil},
		{
			"too deep", nested(maxForEachDepth + 1),
			[]string{path + strings.Repeat(".foreach[0]", maxForEachDepth-1) + ".foreach: Forbidden: loops may not lie deeper than 10 in each other"},
		},
		{"empty", forEach("{}"), []string{path + "." + list, path + ": Required value: exactly one of patchStrategicMerge, patchesJson6902 and foreach is needed"}},
		{
			"order and conditions", forEach("{list: l, order: Up, preconditions: [], patchesJson6902: '[]'}"),
			[]string{
				path + `.order: Unsupported value: "Up": supported values: "Ascending", "Descending"`,
				path + ".preconditions: Invalid value: must be an object with any and all",
			},
		},
		{
			"conditions that a rule may not have",
			forEach("{list: l, preconditions: {any: [{key: '{{request.operation}}', operator: Equals, value: create}, {key: a, operator: Equals, value: null}, {operator: Equals}, {}]}, patchesJson6902: '[]'}"),
			[]string{path + ".preconditions.any[3].operator: Required value: say how to compare"},
		},
		{
			"two patches", forEach("{list: l, patchStrategicMerge: {}, patchesJson6902: '[]'}"),
			[]string{path + ".patchesJson6902: Forbidden: patchStrategicMerge is given already, and exactly one of patchStrategicMerge, patchesJson6902 and foreach is allowed"},
		},
		{
			"a loop with more", forEach("{list: l, patchesJson6902: '[]', context: [{name: a}], preconditions: {}, foreach: [{patchesJson6902: '[]', order: Up}]}"),
			[]string{
				path + ".foreach: Forbidden: patchesJson6902 is given already, and exactly one of patchStrategicMerge, patchesJson6902 and foreach is allowed",
				path + ".context: Forbidden: an entry with a foreach cannot have any: move it into the entries of that",
				path + ".preconditions: Forbidden: an entry with a foreach cannot have any: move it into the entries of that",
				path + ".foreach[0]." + list,
				path + `.foreach[0].order: Unsupported value: "Up": supported values: "Ascending", "Descending"`,
			},
		},
		{
			"unknown fields within", forEach("{list: l, foreach: [{list: l, lits: m, patchesJson6902: '[]'}]}"),
			[]string{path + `.foreach: Invalid value: unknown field "[0].lits"`},
		},
		{
			"another type within", forEach("{list: l, foreach: {list: l}}"),
			[]string{path + `.foreach: Invalid value: cannot unmarshal object into a value of type []v1.ForEachMutation`},
		},
		{"nothing within", forEach("{list: l, foreach: []}"), []string{path + ".foreach: Required value: an entry is needed"}},
	}, validateAsClusterPolicy)
}

func TestValidatePreconditions(t *testing.T) {
	rule := func(preconditions string) string {
		return ruleOf(matchPods, mutatePods, "preconditions: "+preconditions)
	}
	const path = "spec.rules[0].preconditions"
	runSpecTests(t, []specTest{
		{"none", rule("{}"), nil},
		{"any and all", rule("{any: [{key: '{{ a }}', operator: AnyIn, value: [1], message: m}], all: [{key: '', operator: NotEquals, value: ''}]}"), nil},
		{"the older form", rule("[{key: 1, operator: GreaterThan, value: 0}]"), nil},
		{"no conditions", rule("text"), []string{path + ": Invalid value: must be an object with any and all, or a list of conditions"}},
		{
			"what is missing", rule("{any: [{}], all: [{key: a, operator: equals, value: b}, {key: a, operator: Equals, value: null}]}"),
			[]string{
				path + ".any[0].operator: Required value: say how to compare",
				path + ".any[0].key: Required value: say what to compare",
				path + ".any[0].value: Required value: say what to compare with; null is no value",
				path + `.all[0].operator: Unsupported value: "equals": supported values: ` + operatorNames,
				path + ".all[1].value: Required value: say what to compare with; null is no value",
			},
		},
		{
			"beside any and all", rule("{conditions: {all: [{key: a, operator: Equals, value: b}]}, all: [], Any: []}"),
			[]string{
				path + ".Any: Forbidden: any and all stand directly below preconditions, and nothing else does",
				path + ".conditions: Forbidden: any and all stand directly below preconditions, and nothing else does",
			},
		},
		{"unknown fields", rule("{any: [{key: a, operator: Equals, value: b, negate: true}]}"), []string{path + `: Invalid value: unknown field "any[0].negate"`}},
		{"another type", rule("{any: {key: a}}"), []string{path + ": Invalid value: cannot unmarshal object into the field AnyAllConditions.any of type []v1.Condition"}},
		{
			"operations",
			rule("{all: [{key: '{{request.operation}}', operator: In, value: [CREATE, '{{ a }}', create]}, {key: '{{ request.operation || ''x'' }}', operator: Equals, value: x}, {key: '{{ request.operation }}', operator: Equals, value: Update}]}"),
			[]string{
				path + `.all[0].value[2]: Unsupported value: "create": supported values: ` + operationNames,
				path + `.all[2].value: Unsupported value: "Update": supported values: ` + operationNames,
			},
		},
	}, validateAsClusterPolicy)
}

func TestOperatorsAreThoseOfKyverno(t *testing.T) {
	for _, operator := range operators() {
		spec := specOf(t, ruleOf(matchPods, mutatePods, "preconditions: [{key: a, operator: "+operator+", value: b}]"))
		expectErrors(t, validateAsClusterPolicy(spec), nil)
	}
	if got := len(operators()); got != 18 {
		t.Errorf("%d operators, want 18", got)
	}
}

func TestValidateContext(t *testing.T) {
	rule := func(entry string) string { return ruleOf(matchPods, mutatePods, "context: ["+entry+"]") }
	const path = "spec.rules[0].context[0]"
	const characters = "must be of letters, digits, '_' and '-', with dots between them"
	tests := []specTest{
		{"variable", rule("{name: a-b.c_d0, variable: {value: {x: 1}, jmesPath: x, default: 2}}"), nil},
		{"configMap", rule("{name: a, configMap: {name: '{{ b }}', namespace: c}}"), nil},
		{"configMap anywhere", rule("{name: a, configMap: {name: b}}"), nil},
		{"apiCall", rule("{name: a, apiCall: {urlPath: /api, method: POST, data: [{key: k, value: 1}], jmesPath: x, default: 1}}"), nil},
		{"nothing", rule("{}"), []string{path + ".name: Required value: a variable needs a name", path + ": Required value: exactly one of variable, configMap and apiCall is needed"}},
		{
			"two sources", rule("{name: a, variable: {value: 1}, configMap: {name: b}}"),
			[]string{path + ".configMap: Forbidden: variable is given already, and exactly one of variable, configMap and apiCall is allowed"},
		},
		{
			"what is not reached", rule("{name: a, imageRegistry: {reference: r}}, {name: b, globalReference: {name: g}}, {name: c, apiCall: {service: {url: u}}}"),
			[]string{
				path + ".imageRegistry: Forbidden: image registries are not reached from here: use images, or put what is needed into a ConfigMap",
				"spec.rules[0].context[1].globalReference: Forbidden: there are no GlobalContextEntries here: use an apiCall with a urlPath, or a ConfigMap",
				"spec.rules[0].context[2].apiCall.service: Forbidden: services are not called from here: use a urlPath of the API of the cluster",
			},
		},
		{"a variable of nothing", rule("{name: a, variable: {}}"), []string{path + ".variable: Required value: a value or a jmesPath is needed"}},
		{
			"a default of nothing", rule("{name: a, variable: {value: 1, default: 1}}"),
			[]string{path + ".variable.jmesPath: Required value: a default is for an expression that finds nothing"},
		},
		{"a ConfigMap without a name", rule("{name: a, configMap: {}}"), []string{path + ".configMap.name: Required value: name the ConfigMap"}},
		{
			"calls", rule("{name: a, apiCall: {data: [{key: k, value: 1}]}}, {name: b, apiCall: {urlPath: /api, method: post, data: [{key: k, value: 1}, {key: k}, {key: '', value: 1}]}}"),
			[]string{
				path + ".apiCall.urlPath: Required value: give a path of the API of the cluster, such as /api/v1/namespaces",
				path + ".apiCall.data: Forbidden: only a POST has data: set method to POST, or remove it",
				`spec.rules[0].context[1].apiCall.method: Unsupported value: "post": supported values: "GET", "POST"`,
				`spec.rules[0].context[1].apiCall.data[1].key: Duplicate value: "k"`,
				`spec.rules[0].context[1].apiCall.data[1].value: Required value`,
				`spec.rules[0].context[1].apiCall.data[2].key: Required value: name the field of the body`,
			},
		},
	}
	for _, name := range []string{"a b", "{{ a }}", "a..b", "a.", "ä", "a\"b"} {
		tests = append(tests, specTest{"name " + name, rule(fmt.Sprintf("{name: %q, variable: {value: 1}}", name)), []string{fmt.Sprintf("%s.name: Invalid value: %q: %s", path, name, characters)}})
	}
	for _, name := range []string{"images", "request.object", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex"} {
		first, _, _ := strings.Cut(name, ".")
		tests = append(tests, specTest{"name " + name, rule("{name: " + name + ", variable: {value: 1}}"), []string{fmt.Sprintf("%s.name: Invalid value: %q: %s is there already: choose another name", path, name, first)}})
	}
	runSpecTests(t, tests, validateAsClusterPolicy)
}

func TestValidatePolicyStaysInItsNamespace(t *testing.T) {
	runSpecTests(t, []specTest{
		{
			"its own", ruleOf("match: {any: [{resources: {kinds: [Pod], names: [a], selector: {matchLabels: {a: b}}}}]}", mutatePods,
				"context: [{name: a, configMap: {name: b}}, {name: c, configMap: {name: b, namespace: team-a}}, {name: d, configMap: {name: b, namespace: '{{ request.namespace }}'}}]"), nil,
		},
		{
			"others", ruleOf("match: {any: [{resources: {kinds: [Pod], namespaces: [team-a]}}]}", "exclude: {resources: {namespaces: [team-b]}}", mutatePods,
				"context: [{name: a, configMap: {name: b, namespace: team-b}}]"),
			[]string{
				"spec.rules[0].match.any[0].resources.namespaces: Forbidden: a Policy is for its own namespace: remove it, or write a ClusterPolicy",
				"spec.rules[0].exclude.resources.namespaces: Forbidden: a Policy is for its own namespace: remove it, or write a ClusterPolicy",
				`spec.rules[0].context[0].configMap.namespace: Invalid value: "team-b": a Policy reads ConfigMaps of its own namespace "team-a" only: leave it empty, or write a ClusterPolicy`,
			},
		},
	}, func(spec kyvernov1.Spec) field.ErrorList { return ValidatePolicy(namespacedPolicyOf(spec)) })
	nowhere := namespacedPolicyOf(specOf(t, ruleOf(matchPods, mutatePods)))
	nowhere.Namespace = ""
	expectErrors(t, ValidatePolicy(nowhere), []string{"metadata.namespace: Required value"})
}

// TestValidateKyvernoUpdates: what is stored stays writable, and a change is looked at.
func TestValidateKyvernoUpdates(t *testing.T) {
	old := specOf(t, ruleOf(matchPods, "mutate: {}"))
	changed := specOf(t, ruleOf(matchPods, "mutate: {}")+"background: false\n")
	named := clusterPolicyOf(old)
	named.Name = "Not_Valid"
	missing := []string{"spec.rules[0].mutate: Required value: only mutate rules are run here: say what the rule changes"}
	expectErrors(t, ValidateClusterPolicyUpdate(clusterPolicyOf(old), clusterPolicyOf(old)), nil)
	expectErrors(t, ValidateClusterPolicyUpdate(clusterPolicyOf(changed), clusterPolicyOf(old)), missing)
	expectErrors(t, ValidateClusterPolicyUpdate(named, named), []string{`metadata.name: Invalid value: "Not_Valid": ` + dns1123Subdomain})
	expectErrors(t, ValidatePolicyUpdate(namespacedPolicyOf(old), namespacedPolicyOf(old)), nil)
	expectErrors(t, ValidatePolicyUpdate(namespacedPolicyOf(changed), namespacedPolicyOf(old)), missing)
}

func TestValidateKyvernoStatus(t *testing.T) {
	condition := metav1.Condition{Type: "Ready", Status: "True", Reason: "InForce", LastTransitionTime: metav1.Now(), ObservedGeneration: 1}
	broken := policy.PolicyStatus{ObservedGeneration: -1, Conditions: []metav1.Condition{condition, condition}}
	want := []string{"status.observedGeneration: Invalid value: -1: must not be negative", `status.conditions[1]: Duplicate value: "Ready"`}
	expectErrors(t, ValidateClusterPolicyStatusUpdate(&policy.ClusterPolicy{Status: broken}, nil), want)
	expectErrors(t, ValidatePolicyStatusUpdate(&policy.Policy{Status: broken}, nil), want)
	good := policy.PolicyStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{condition}}
	expectErrors(t, ValidateClusterPolicyStatusUpdate(&policy.ClusterPolicy{Status: good}, nil), nil)
	expectErrors(t, ValidatePolicyStatusUpdate(&policy.Policy{Status: good}, nil), nil)
}

func TestKyvernoSizes(t *testing.T) {
	spec := specOf(t, ruleOf(matchPods, mutatePods))
	spec.Rules[0].Mutate.PatchesJSON6902 = strings.Repeat("a", maxObjectBytes)
	for name, errs := range map[string]field.ErrorList{
		"spec":             ValidateClusterPolicy(clusterPolicyOf(spec)),
		"spec of Policy":   ValidatePolicy(namespacedPolicyOf(spec)),
		"status":           ValidateClusterPolicyStatusUpdate(clusterPolicyOf(spec), nil),
		"status of Policy": ValidatePolicyStatusUpdate(namespacedPolicyOf(spec), nil),
	} {
		if len(errs) != 1 || errs[0].Type != field.ErrorTypeTooLong {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// FuzzValidateClusterPolicy looks for specs that validation does not survive.
func FuzzValidateClusterPolicy(f *testing.F) {
	for _, spec := range []string{
		ruleOf(matchPods, mutatePods),
		ruleOf("match: {all: [{resources: {kinds: ['*/*', v1/Pod], selector: {matchExpressions: [{key: a, operator: In, values: ['*']}]}}, roles: [':']}]}",
			"mutate: {foreach: [{list: l, foreach: [{list: l, foreach: {}}]}]}", "preconditions: [{key: '{{request.operation}}', operator: In, value: {}}]", "context: [{name: a, apiCall: {}}]"),
	} {
		seed, err := yaml.YAMLToJSON([]byte(spec))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		var spec kyvernov1.Spec
		if err := json.Unmarshal(text, &spec); err != nil {
			return
		}
		if spec.WebhookConfiguration != nil {
			spec.WebhookConfiguration.MatchConditions = nil // compiling them is not what is looked at here
		}
		validateAsClusterPolicy(spec)
		ValidatePolicy(namespacedPolicyOf(spec))
	})
}
