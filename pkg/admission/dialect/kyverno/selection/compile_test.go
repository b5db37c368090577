// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

func TestFaults(t *testing.T) {
	filter := func(resources string) string { return "{match: {any: [{resources: {" + resources + "}}]}}" }
	for name, test := range map[string]struct {
		rule, namespace string
		want            []string
	}{
		"nothing":                   {"{match: {}}", "", []string{`match: Required value: say which requests the rule is about`}},
		"any and all":               {"{match: {any: [{resources: {kinds: [Pod]}}], all: [{resources: {kinds: [Pod]}}]}}", "", []string{"match.all: Forbidden: any and all may not be given together"}},
		"any and resources":         {"{match: {any: [{resources: {kinds: [Pod]}}], resources: {names: [a]}}}", "", []string{"match: Forbidden: resources, subjects, roles and clusterRoles may not be given beside any or all"}},
		"any and subjects":          {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{}], roles: ['a:b']}}", "", []string{"exclude: Forbidden: resources, subjects"}},
		"no kinds":                  {filter("names: [a]"), "", []string{`match.any[0].resources.kinds: Required value: name the kinds that the rule is about, or "*" for all`}},
		"every kind and another":    {filter("kinds: [Pod, '*']"), "", []string{"match.any[0].resources.kinds: Invalid value: * is every kind: no other one may stand beside it"}},
		"too many parts":            {filter("kinds: [Pod, a/b/c/d/e]"), "", []string{`match.any[0].resources.kinds[1]: Invalid value: "a/b/c/d/e": a kind is Kind, version/Kind or group/version/Kind, each with /subresource: "a/b/c/d/e" has too many parts`}},
		"an empty part":             {filter("kinds: ['', 'apps//Pod', Pod.]"), "", []string{`kinds[0]: Invalid value: "": a kind is`, `kinds[1]: Invalid value: "apps//Pod": a kind is`, `kinds[2]: Invalid value: "Pod.": a kind is`}},
		"name and names":            {filter("kinds: [Pod], name: a, names: [b]"), "", []string{"match.any[0].resources.name: Forbidden: name and names may not be given together: use names"}},
		"namespaces of a Policy":    {filter("kinds: [Pod], namespaces: [a]"), "shop", []string{"match.any[0].resources.namespaces: Forbidden: a Policy is about the objects of its own namespace"}},
		"an empty selector":         {filter("kinds: [Pod], selector: {}"), "", []string{"match.any[0].resources.selector: Invalid value: it asks for nothing"}},
		"an operator of a selector": {filter("kinds: [Pod], selector: {matchExpressions: [{key: a, operator: Near}]}"), "", []string{`match.any[0].resources.selector: Invalid value: "Near" is not a valid label selector operator`}},
		"wildcards in expressions":  {filter("kinds: [Pod], namespaceSelector: {matchExpressions: [{key: a, operator: In, values: ['p*']}]}"), "", []string{`match.any[0].resources.namespaceSelector: Invalid value: values[0][a]: Invalid value: "p*"`}},
		"an operation":              {filter("kinds: [Pod], operations: [CREATE, create]"), "", []string{`match.any[0].resources.operations[1]: Unsupported value: "create": supported values: "CREATE", "UPDATE", "DELETE", "CONNECT"`}},
		"roles":                     {"{match: {all: [{resources: {kinds: [Pod]}, roles: ['a:b', c]}]}}", "", []string{`match.all[0].roles[1]: Invalid value: "c": a Role is written as namespace:name`}},
		"subjects":                  {"{match: {resources: {kinds: [Pod]}, subjects: [{kind: Robot, name: a}, {kind: User, name: ''}, {kind: ServiceAccount, name: a}, {kind: '', name: a}]}}", "", []string{`match.subjects[0].kind: Unsupported value: "Robot"`, "match.subjects[1].name: Required value", "match.subjects[2].namespace: Required value", "match.subjects[3].kind: Required value"}},
		"of exclude, all at once":   {"{match: {resources: {names: [a]}}, exclude: {any: [{resources: {kinds: ['a/b/c/d/e']}}, {resources: {operations: [x]}}]}}", "", []string{"match.resources.kinds: Required value", "exclude.any[0].resources.kinds[0]: Invalid value", "exclude.any[1].resources.operations[0]: Unsupported value"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := parsed[rule](t, test.rule)
			selected, errs := selection.Compile(r.Match, r.Exclude, test.namespace, field.NewPath("spec", "rules").Index(0))
			if len(errs) != len(test.want) {
				t.Fatalf("got %v, want %q", errs, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(errs[i].Error(), want) || !strings.HasPrefix(errs[i].Error(), "spec.rules[0].") {
					t.Errorf("got %v, want %q", errs[i], want)
				}
			}
			subject := selection.NewSubject(request.New(create(object(t, "v1/Pod", webPod))), &world{})
			if matched, err := selected.Matches(t.Context(), subject); matched || err == nil {
				t.Errorf("with faults: got %v, error %v", matched, err)
			}
			if selected.WhyNot(t.Context(), subject) != "" {
				t.Error("a reason in spite of an error")
			}
		})
	}
}

func TestKinds(t *testing.T) {
	every := func(kind, subresource string, operations ...string) selection.Kind {
		return selection.Kind{Group: "*", Version: "*", Kind: kind, Subresource: subresource, Operations: operations}
	}
	containers := selection.Kind{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"}
	for name, test := range map[string]struct {
		rule string
		want []selection.Kind
	}{
		"a kind":               {"any: [{resources: {kinds: [Node]}}]", []selection.Kind{every("Node", "")}},
		"of a version":         {"any: [{resources: {kinds: [v1/Node, v2beta1/Node, '*/Node', v12alpha3/Node]}}]", []selection.Kind{{Group: "*", Version: "v1", Kind: "Node"}, {Group: "*", Version: "v2beta1", Kind: "Node"}, every("Node", ""), {Group: "*", Version: "v12alpha3", Kind: "Node"}}},
		"of a group":           {"any: [{resources: {kinds: [apps/v1/Deployment, 'batch*/*/Job']}}]", []selection.Kind{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch*", Version: "*", Kind: "Job"}}},
		"of a dotted group":    {"any: [{resources: {kinds: [networking.k8s.io/v1/Ingress]}}]", []selection.Kind{{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}}},
		"subresources":         {"any: [{resources: {kinds: [Deployment/scale, Deployment.scale, '*/scale', v1/Node/status, apps/v1/Deployment/scale, apps/v1/Deployment.scale, 'Node/*', vfoo/status]}}]", []selection.Kind{every("Deployment", "scale"), every("Deployment", "scale"), every("*", "scale"), {Group: "*", Version: "v1", Kind: "Node", Subresource: "status"}, {Group: "apps", Version: "v1", Kind: "Deployment", Subresource: "scale"}, {Group: "apps", Version: "v1", Kind: "Deployment", Subresource: "scale"}, every("Node", "*"), every("vfoo", "status"), containers}},
		"everything":           {"any: [{resources: {kinds: ['*/*']}}]", []selection.Kind{every("*", "*")}},
		"every object":         {"any: [{resources: {kinds: ['*']}}]", []selection.Kind{every("*", ""), containers}},
		"Pods":                 {"resources: {kinds: [Pod], operations: [CREATE]}", []selection.Kind{every("Pod", "", "CREATE"), {Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers", Operations: []string{"CREATE"}}}},
		"one of any":           {"any: [{resources: {kinds: [Node], operations: [UPDATE]}}, {resources: {kinds: [Job]}}]", []selection.Kind{every("Node", "", "UPDATE"), every("Job", "")}},
		"each of all":          {"all: [{resources: {kinds: [Node]}}, {resources: {kinds: ['*'], operations: [UPDATE]}}]", []selection.Kind{every("Node", "", "UPDATE")}},
		"a kind with a fault":  {"any: [{resources: {kinds: [Node]}}, {resources: {kinds: [a/b/c/d/e]}}]", []selection.Kind{every("*", "*")}},
		"no kinds":             {"any: [{resources: {names: [a]}}]", []selection.Kind{every("*", "*")}},
		"an unknown operation": {"any: [{resources: {kinds: [Node], operations: [create]}}]", []selection.Kind{every("*", "*")}},
		"another fault":        {"any: [{resources: {kinds: [Node], name: a, names: [b]}}]", []selection.Kind{every("Node", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			r := parsed[rule](t, "{match: {"+test.rule+"}}")
			selected, _ := selection.Compile(r.Match, r.Exclude, "", nil)
			if got := selected.Kinds(); !slices.EqualFunc(got, test.want, equalKinds) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func equalKinds(a, b selection.Kind) bool {
	return slices.Equal(a.Operations, b.Operations) && a.Group == b.Group && a.Version == b.Version && a.Kind == b.Kind && a.Subresource == b.Subresource
}

func TestCompileKeepsNoReference(t *testing.T) {
	r := parsed[rule](t, "{match: {any: [{resources: {kinds: [Pod], names: [web-1], operations: [CREATE]}, roles: ['shop:editor']}]}}")
	selected, errs := selection.Compile(r.Match, nil, "", nil)
	filter := &r.Match.Any[0]
	filter.Resources.Kinds[0], filter.Resources.Names[0], filter.Resources.Operations[0], filter.Roles[0] = "Node", "x", "DELETE", "x"
	matched, err := selected.Matches(t.Context(), selection.NewSubject(request.New(create(object(t, "v1/Pod", webPod))), &world{}))
	if !matched || err != nil || len(errs) > 0 {
		t.Errorf("got %v, error %v, faults %v", matched, err, errs)
	}
}

// FuzzSelection: no rule and no object panics, the reasons agree with the answers, and
// the kinds find what matches.
func FuzzSelection(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"any":[{"resources":{"kinds":["Pod"],"names":["a*"],"selector":{"matchLabels":{"a*":"?"}}}}]}`, `{"metadata":{"name":"ab","namespace":"shop","labels":{"ab":"c"}}}`},
		{`{"all":[{"resources":{"kinds":["*/*"],"namespaceSelector":{"matchLabels":{"env":"prod"}}},"roles":["shop:editor"]}]}`, `{"kind":"Pod","metadata":{"namespace":"shop"}}`},
		{`{"resources":{"kinds":["Deployment/scale"],"annotations":{"*":"*"}}}`, `{"kind":1,"metadata":[]}`},
	} {
		f.Add(seed[0], seed[1], "", seed[0])
		f.Add(seed[0], seed[1], "scale", `{"any":[{"resources":{"operations":["UPDATE"]}}]}`)
	}
	f.Fuzz(func(t *testing.T, matchText, objectText, subresource, excludeText string) {
		var match, exclude kyvernov1.MatchResources
		var content map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(matchText), &match) != nil ||
			kjson.UnmarshalCaseSensitivePreserveInts([]byte(excludeText), &exclude) != nil ||
			kjson.UnmarshalCaseSensitivePreserveInts([]byte(objectText), &content) != nil {
			t.Skip()
		}
		selected, errs := selection.Compile(match, &exclude, "", field.NewPath("rule"))
		fields := request.Fields{
			Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
			SubResource: subresource, Operation: admission.Create, Namespace: "shop", Object: &unstructured.Unstructured{Object: content},
		}
		subject := selection.NewSubject(request.New(fields), &world{})
		matched, err := selected.Matches(t.Context(), subject)
		if len(errs) > 0 && err == nil {
			t.Error("faults, and no error")
		}
		if whyNot := selected.WhyNot(t.Context(), subject); (whyNot == "") != (matched || err != nil) {
			t.Errorf("matched %v, error %v, reason %q", matched, err, whyNot)
		}
		finds := func(k selection.Kind) bool {
			return wild(k.Kind, "Pod") && wild(k.Group, "") && wild(k.Version, "v1") && wild(k.Subresource, subresource)
		}
		if matched && !slices.ContainsFunc(selected.Kinds(), finds) {
			t.Errorf("%q do not find it", selected.Kinds())
		}
	})
}

// wild takes every text with wildcards for *.
func wild(pattern, text string) bool { return strings.ContainsAny(pattern, "*?") || pattern == text }
