// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidateMatches(t *testing.T) {
	rule := func(lines ...string) string { return ruleOf(append(lines, mutatePods)...) }
	const (
		match     = "spec.rules[0].match"
		exclude   = "spec.rules[0].exclude"
		kinds     = "resources.kinds: Required value: name the kinds that the rule is for"
		beside    = "Forbidden: resources, subjects, roles and clusterRoles cannot stand beside any or all: move them into a filter of it"
		empty     = "Invalid value: match says the same, so the rule would not be for anything: narrow one of them"
		variables = "match and exclude cannot have variables: use preconditions"
	)
	runSpecTests(t, []specTest{
		{
			"everything", rule(
				"match: {any: [{resources: {kinds: [Pod, apps/v1/Deployment], names: ['a*', '?'], namespaces: ['*'], annotations: {'a*': '?'}, "+
					"selector: {matchLabels: {'a/*': '*b', c: ''}, matchExpressions: [{key: a, operator: Exists}, {key: b, operator: In, values: [c]}]}, "+
					"namespaceSelector: {matchLabels: {a: b}}, operations: [CREATE, UPDATE, DELETE, CONNECT]}, "+
					"roles: ['a:b', 'kube-system:system:c'], clusterRoles: ['system:*'], subjects: [{kind: User, name: 'u*'}, {kind: ServiceAccount, namespace: a, name: b}]}]}",
				"exclude: {any: [{subjects: [{kind: Group, name: g}]}, {resources: {namespaces: [kube-system]}}]}"), nil,
		},
		{"any expression beside a wildcard", rule("match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: '*'}, matchExpressions: [{key: b, operator: In, values: ['p*']}]}}}]}"), nil},
		{
			"a mistake beside a wildcard", rule("match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: '*'}, matchExpressions: [{key: b, operator: Is}]}}}]}"),
			[]string{`spec.rules[0].match.any[0].resources.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		},
		{"all", rule("match: {all: [{resources: {kinds: [Pod]}}]}"), nil},
		{"the older form", rule("match: {resources: {kinds: [Pod], name: a}, clusterRoles: [b]}", "exclude: {clusterRoles: [c]}"), nil},
		{"nothing", rule(), []string{match + ": Required value: say what the rule is for"}},
		{"no kinds", rule("match: {any: [{resources: {names: [a]}}, {subjects: [{kind: User, name: u}]}]}"), []string{match + ".any[0]." + kinds, match + ".any[1]." + kinds}},
		{"no kinds in the older form", rule("match: {clusterRoles: [a]}"), []string{match + "." + kinds}},
		{
			"any and all", rule("match: {any: [{resources: {kinds: [Pod]}}], all: [{resources: {kinds: [Pod]}}]}", "exclude: {any: [{clusterRoles: [a]}], roles: ['a:b']}"),
			[]string{match + ".all: Forbidden: any is given already: write one of them", exclude + ": " + beside},
		},
		{"the older form beside any", rule("match: {any: [{resources: {kinds: [Pod]}}], resources: {kinds: [Pod]}}"), []string{match + ": " + beside}},
		{"name and names", rule("match: {resources: {kinds: [Pod], name: a, names: [b]}}"), []string{match + ".resources.name: Forbidden: names is given, too: move it there"}},
		{
			"operations", rule("match: {any: [{resources: {kinds: [Pod], operations: [create, '*']}}]}"),
			[]string{
				match + `.any[0].resources.operations[0]: Unsupported value: "create": supported values: ` + operationNames,
				match + `.any[0].resources.operations[1]: Unsupported value: "*": supported values: ` + operationNames,
			},
		},
		{
			"selectors", rule("match: {any: [{resources: {kinds: [Pod], selector: {}, namespaceSelector: {matchLabels: {'a b': 'c d'}, matchExpressions: [{key: a, operator: In, values: ['p*']}, {key: a, operator: In}]}}}]}"),
			[]string{
				match + ".any[0].resources.selector: Required value: name labels, or remove it",
				match + `.any[0].resources.namespaceSelector.matchLabels[a b]: Invalid value: "a b": ` + qualifiedName,
				match + `.any[0].resources.namespaceSelector.matchLabels[a b]: Invalid value: "c d": ` + labelValue,
				match + `.any[0].resources.namespaceSelector.matchExpressions[0].values[0]: Invalid value: "p*": only matchLabels can have wildcards`,
				match + ".any[0].resources.namespaceSelector.matchExpressions[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			},
		},
		{
			"users", rule("match: {any: [{resources: {kinds: [Pod]}, roles: [a, ':b', 'c:'], subjects: [{}, {kind: Robot, name: r}, {kind: ServiceAccount, name: s}]}]}"),
			[]string{
				match + `.any[0].roles[0]: Invalid value: "a": must have the form namespace:name`,
				match + `.any[0].roles[1]: Invalid value: ":b": must have the form namespace:name`,
				match + `.any[0].roles[2]: Invalid value: "c:": must have the form namespace:name`,
				match + ".any[0].subjects[0].kind: Required value: one of Group, ServiceAccount, User",
				match + ".any[0].subjects[0].name: Required value: name the subject",
				match + `.any[0].subjects[1].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"`,
				match + ".any[0].subjects[2].namespace: Required value: a ServiceAccount has a namespace",
			},
		},
		{
			"variables", rule("match: {any: [{resources: {kinds: [Pod], names: ['{{ a }}'], annotations: {a: '{{ b }}'}, selector: {matchLabels: {a: '{{ c }}'}}}}]}", "exclude: {any: [{resources: {namespaces: ['{{ d }}']}}]}"),
			[]string{
				match + `.any[0].resources.names[0]: Invalid value: "{{ a }}": ` + variables,
				match + `.any[0].resources.annotations[a]: Invalid value: "{{ b }}": ` + variables,
				match + `.any[0].resources.selector.matchLabels[a]: Invalid value: "{{ c }}": ` + variables,
				exclude + `.any[0].resources.namespaces[0]: Invalid value: "{{ d }}": ` + variables,
			},
		},
		{
			"all that matches is excluded", rule("match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}]}", "exclude: {any: [{resources: {kinds: [Secret]}}, {resources: {kinds: [Service]}}]}"),
			[]string{exclude + ".any[1]: " + empty},
		},
		{
			"all that matches is excluded in the older form", rule("match: {resources: {kinds: [Pod]}}", "exclude: {resources: {kinds: [Pod]}}"),
			[]string{exclude + ": " + empty},
		},
	}, validateAsClusterPolicy)
}

func TestValidateKinds(t *testing.T) {
	for _, kind := range []string{
		"Pod", "*", "*/*", "*/Pod", "*/scale", "v1/Pod", "v2beta1/Foo", "v10/Foo", "*/v1/Pod", "*/*/Pod", "v*/Deployment", "apps/v1/Deployment", "apps/*/Deploy*", "networking.k8s.io/v1/Ingress",
		"*.example.com/v1/*", "Deployment/scale", "Deployment.scale", "v1/Pod/status", "v1/Pod.status", "apps/v1/Deployment/scale", "*/*/*/*", "Pod/*", "/v1/Pod", "P?d",
	} {
		expectErrors(t, validateKinds([]string{kind}, field.NewPath("kinds")), nil)
	}
	for _, kind := range []string{
		"", "/", "Pod/", "apps/Deployment", "apps/Deployment/v1", "Deployment/v1/apps", "apps/v1/Deployment/Scale", "a/b/c/d/e", "Po d", "Pod,Service", "Ingress.networking.k8s.io",
		"{{ a }}", "Apps/v1/Deployment", "apps/v1/", "a..b/v1/Pod", "Päd", "v1/Pod/status/more",
	} {
		expectErrors(t, validateKinds([]string{kind}, field.NewPath("kinds")), []string{field.Invalid(field.NewPath("kinds").Index(0), kind, kindForms).Error()})
	}
	expectErrors(t, validateKinds([]string{"Pod", "*"}, field.NewPath("kinds")), []string{`kinds: Invalid value: ["Pod","*"]: if '*' is present, must not name other kinds`})
}

// TestValidateRuleMatches: nothing but what the rules match and exclude is looked at.
func TestValidateRuleMatches(t *testing.T) {
	spec := specOf(t, "rules:\n- {name: a, "+matchPods+"}\n- {name: a, match: {any: [{resources: {kinds: [Pod], namespaces: [a]}}]}}\n- {name: b}\n")
	missing := "spec.rules[2].match: Required value: say what the rule is for"
	expectErrors(t, ValidateRuleMatches(&spec, false), []string{missing})
	expectErrors(t, ValidateRuleMatches(&spec, true), []string{
		"spec.rules[1].match.any[0].resources.namespaces: Forbidden: a Policy is for its own namespace: remove it, or write a ClusterPolicy", missing,
	})
}
