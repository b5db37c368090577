// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

type edit = func(*admissionregistrationv1.MatchResources)

// another adds a rule to the first.
func another(group, version, resource string) edit {
	return func(r *admissionregistrationv1.MatchResources) {
		r.ResourceRules = append(r.ResourceRules, rules(group, version, resource)...)
	}
}

func labelled(fields request.Fields, labels map[string]string) request.Fields {
	fields.Object = &unstructured.Unstructured{Object: map[string]any{}}
	fields.Object.SetLabels(labels)
	return fields
}

func TestWhyNot(t *testing.T) {
	onlyProd := func(r *admissionregistrationv1.MatchResources) { r.NamespaceSelector = selecting("env", "prod") }
	onlyWeb := func(r *admissionregistrationv1.MatchResources) { r.ObjectSelector = selecting("app", "web") }
	exactly := func(r *admissionregistrationv1.MatchResources) {
		policy := admissionregistrationv1.Exact
		r.MatchPolicy = &policy
	}
	excluding := func(version, resource string) edit {
		return func(r *admissionregistrationv1.MatchResources) {
			r.ExcludeResourceRules = append(rules("*", "*", "nothing"), rules("*", version, resource)...)
		}
	}
	scoped := func(scope admissionregistrationv1.ScopeType) edit {
		return func(r *admissionregistrationv1.MatchResources) { r.ResourceRules[0].Scope = &scope }
	}
	named := func(names ...string) edit {
		return func(r *admissionregistrationv1.MatchResources) { r.ResourceRules[0].ResourceNames = names }
	}
	pod := create("", "v1", "pods", "Pod", "prod")
	podInTest, podInBare := create("", "v1", "pods", "Pod", "test"), create("", "v1", "pods", "Pod", "bare")
	update := labelled(pod, map[string]string{"app": "db", "a": "b"})
	update.Operation, update.OldObject = admission.Update, &unstructured.Unstructured{Object: map[string]any{}}
	deletion := update
	deletion.Operation, deletion.Object = admission.Delete, nil
	connect := pod
	connect.Operation, connect.Object = admission.Connect, nil
	execute := connect
	execute.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PodExecOptions"}}
	withoutApp := func(r *admissionregistrationv1.MatchResources) {
		r.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	status := pod
	status.RequestSubResource = "status"
	unnamed := pod
	unnamed.Name = ""
	beta := create("extensions", "v1beta1", "deployments", "Deployment", "prod")
	scale := beta
	scale.RequestSubResource = "scale"
	fresh := labelled(create("", "v1", "namespaces", "Namespace", "fresh"), map[string]string{"env": "test"})
	many := map[string]string{"env": "x"}
	for i := range 20 {
		many[fmt.Sprintf("a%02d", i)] = "b"
	}

	veryMany := map[string]string{"env": "x"}
	for i := range 2_000 {
		veryMany[fmt.Sprint("a", i)] = "b"
	}

	for name, test := range map[string]struct {
		resources *admissionregistrationv1.MatchResources
		request   request.Fields
		want      string
	}{
		"it matches":               {resources("", "v1", "pods"), pod, ""},
		"a namespace":              {resources("", "v1", "pods", onlyProd), podInTest, "namespaceSelector env=prod does not match namespace test (labels: env=test)"},
		"one without labels":       {resources("", "v1", "pods", onlyProd), podInBare, "namespaceSelector env=prod does not match namespace bare (no such label)"},
		"one that is created":      {resources("", "v1", "namespaces", onlyProd), fresh, "namespaceSelector env=prod does not match namespace fresh (labels: env=test)"},
		"one without such a label": {resources("", "v1", "pods", func(r *admissionregistrationv1.MatchResources) { r.NamespaceSelector = selecting("team", "a") }), podInTest, "namespaceSelector team=a does not match namespace test (no such label)"},
		"one with other labels": {
			resources("", "v1", "namespaces", onlyProd), labelled(fresh, map[string]string{"team": "secret", "kubernetes.io/metadata.name": "fresh"}),
			"namespaceSelector env=prod does not match namespace fresh (labels: kubernetes.io/metadata.name=fresh)",
		},
		"an unknown namespace": {resources("", "v1", "pods", onlyProd), create("", "v1", "pods", "Pod", "missing"), ""},
		"many labels of a namespace": {
			resources("", "v1", "namespaces", onlyProd), labelled(fresh, many),
			"namespaceSelector env=prod does not match namespace fresh (labels: env=x)",
		},
		"many labels": {
			resources("", "v1", "pods", func(r *admissionregistrationv1.MatchResources) { r.ObjectSelector = selecting("env", "prod") }), labelled(pod, many),
			"objectSelector env=prod does not match the object (labels: env=x, a00=b, a01=b, a02=b, a03=b, a04=b, a05=b, a06=b and 13 more)",
		},
		"very many labels": {
			resources("", "v1", "pods", func(r *admissionregistrationv1.MatchResources) { r.ObjectSelector = selecting("env", "prod") }), labelled(pod, veryMany),
			"objectSelector env=prod does not match the object (labels: env=x and 2000 more)",
		},
		"very many other labels": {
			resources("", "v1", "pods", onlyWeb), labelled(pod, veryMany),
			"objectSelector app=web does not match the object (2001 labels, none of which it asks for)",
		},
		"very many rules": {
			resources("", "v1", "pods", func(r *admissionregistrationv1.MatchResources) {
				for i := range 8_000 {
					r.ResourceRules = append(r.ResourceRules, rules("", "v1", fmt.Sprint("kinds", i%3))...)
				}
				r.ResourceRules = r.ResourceRules[1:]
			}), pod,
			"resource pods (v1) is none of kinds0 (v1), kinds1 (v1), kinds2 (v1) and more",
		},
		"an object":        {resources("", "v1", "pods", onlyWeb), labelled(pod, map[string]string{"app": "db"}), "objectSelector app=web does not match the object (labels: app=db)"},
		"neither object":   {resources("", "v1", "pods", onlyWeb), update, "objectSelector app=web does not match the object (labels: app=db, a=b) nor the old object (no labels)"},
		"an old object":    {resources("", "v1", "pods", onlyWeb), deletion, "objectSelector app=web does not match the old object (no labels)"},
		"options":          {resources("", "v1", "pods", withoutApp), execute, "objectSelector !app does not match: the options of a request to connect have no labels to select by"},
		"no object":        {resources("", "v1", "pods", onlyWeb), connect, "objectSelector app=web does not match: the request has no object"},
		"namespaces first": {resources("", "v1", "services", onlyProd, onlyWeb), podInTest, "namespaceSelector env=prod does not match namespace test (labels: env=test)"},
		"an exclusion":     {resources("", "v1", "pods", excluding("v1", "pods")), pod, "excluded by excludeResourceRules[1]"},
		"an exclusion of an equivalent": {
			resources("*", "*", "deployments", excluding("v1", "deployments")), beta,
			"excluded by excludeResourceRules[1], as deployments (apps/v1)",
		},
		"a resource":                    {resources("apps", "v1", "deployments"), pod, "resource pods (v1) is none of deployments (apps/v1)"},
		"resources of several rules":    {resources("apps", "v1", "deployments", another("*", "*", "pods/*/")), status, "resource pods/status (v1) is none of deployments (apps/v1), pods/*/ (*/*)"},
		"a subresource":                 {resources("", "v1", "pods"), status, "resource pods/status (v1) is none of pods (v1)"},
		"an equivalent, exactly":        {resources("apps", "v1", "deployments", exactly), beta, "resource deployments (extensions/v1beta1) is none of deployments (apps/v1); the matchPolicy Exact leaves out that it is also served as deployments (apps/v1)"},
		"no equivalent, exactly":        {resources("apps", "v1", "deployments", exactly), scale, "resource deployments/scale (extensions/v1beta1) is none of deployments (apps/v1)"},
		"an operation":                  {resources("", "v1", "pods", another("apps", "v1", "deployments")), update, "operation UPDATE is none of CREATE, DELETE"},
		"an operation on an equivalent": {resources("apps", "v1", "deployments"), func() request.Fields { f := beta; f.Operation = admission.Update; return f }(), "operation UPDATE is none of CREATE, DELETE"},
		"a scope":                       {resources("", "v1", "pods", scoped(admissionregistrationv1.ClusterScope)), pod, "scope Namespaced of pods (v1) is not Cluster"},
		"the scope of a namespace":      {resources("", "v1", "namespaces", scoped(admissionregistrationv1.NamespacedScope)), fresh, "scope Cluster of namespaces (v1) is not Namespaced"},
		"a name":                        {resources("", "v1", "pods", named("b", "c")), pod, "name a is none of the resourceNames b, c"},
		"a name to be generated":        {resources("", "v1", "pods", named("b")), unnamed, `name "" is none of the resourceNames b`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := match.Compile(test.resources).WhyNot(t.Context(), match.NewSubject(request.New(test.request), newWorld())); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestWhyNotAgrees: there is a reason exactly when the criteria do not apply, and
// it is one of those that the table above shows.
func TestWhyNotAgrees(t *testing.T) {
	w := newWorld()
	reasons := map[string]int{}
	for seed := range uint64(30_000) {
		g := fromSeed(seed)
		req, resources := g.request(), g.resources()
		criteria := match.Compile(resources)
		_, matched, err := criteria.Matches(t.Context(), match.NewSubject(req, w))
		reason := criteria.WhyNot(t.Context(), match.NewSubject(req, w))
		if (reason == "") != (matched || err != nil) {
			t.Fatalf("seed %d: matched %v, error %v, and yet the reason is %q\n%s", seed, matched, err, reason, describe(req, resources))
		}
		if again := match.Compile(resources).WhyNot(t.Context(), match.NewSubject(req, w)); again != reason {
			t.Fatalf("seed %d: the reason is %q, and then %q", seed, reason, again)
		}
		first, _, _ := strings.Cut(reason, " ")
		reasons[first]++
	}
	t.Log(reasons)
	for _, sort := range []string{"", "namespaceSelector", "objectSelector", "excluded", "resource", "scope", "operation", "name"} {
		if reasons[sort] < 20 {
			t.Errorf("only %d reasons that begin with %q: the generator proves little", reasons[sort], sort)
		}
	}
	if len(reasons) != 8 {
		t.Errorf("reasons of %d sorts, want 8", len(reasons))
	}
}

// TestWhyNotIsBounded: a preview gives a reason for each of many policies.
func TestWhyNotIsBounded(t *testing.T) {
	long := strings.Repeat("ä\n", 2_000)
	fields := create(long, long, long, long, "test")
	fields.Name, fields.RequestSubResource, fields.Operation = long, long, admission.Operation(long)
	labels, values := map[string]string{}, []string{}
	for i := range 1_000 {
		labels[fmt.Sprint(i, long)] = long
		values = append(values, fmt.Sprint("v", i))
	}
	fields = labelled(fields, labels)
	wide := resources("*", "*", "*/*")
	wide.ResourceRules[0].Scope = nil
	with := func(edit edit) *admissionregistrationv1.MatchResources {
		r := wide.DeepCopy()
		edit(r)
		return r
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}}}
	for name, test := range map[string]*admissionregistrationv1.MatchResources{
		"namespaces": with(func(r *admissionregistrationv1.MatchResources) { r.NamespaceSelector = selector }),
		"objects":    with(func(r *admissionregistrationv1.MatchResources) { r.ObjectSelector = selector }),
		"operations": wide,
		"resources": with(func(r *admissionregistrationv1.MatchResources) {
			r.ResourceRules[0].APIGroups, r.ResourceRules[0].APIVersions, r.ResourceRules[0].Resources = values, values, values
		}),
		"names": with(func(r *admissionregistrationv1.MatchResources) {
			r.ResourceRules[0].Operations, r.ResourceRules[0].ResourceNames = []admissionregistrationv1.OperationType{"*"}, values
		}),
	} {
		reason := match.Compile(test).WhyNot(t.Context(), match.NewSubject(request.New(fields), newWorld()))
		if reason == "" || len(reason) > 4<<10 || strings.Contains(reason, "\n") {
			t.Errorf("%s: a reason of %d bytes: %.200q", name, len(reason), reason)
		}
	}
}

// TestWhyNotIsCheap: a reason costs about what it takes to learn that there is
// one, however large the criteria are.
func TestWhyNotIsCheap(t *testing.T) {
	values := make([]string, 10_000)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	in := func(values []string) []metav1.LabelSelectorRequirement {
		return []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}}
	}
	selecting := &metav1.LabelSelector{MatchExpressions: in(values)}
	requiring := &metav1.LabelSelector{}
	for _, value := range values {
		requiring.MatchExpressions = append(requiring.MatchExpressions, in([]string{value})...)
	}
	for name, change := range map[string]edit{
		"values of a namespaceSelector": func(r *admissionregistrationv1.MatchResources) { r.NamespaceSelector = selecting },
		"requirements of one":           func(r *admissionregistrationv1.MatchResources) { r.NamespaceSelector = requiring },
		"values of an objectSelector":   func(r *admissionregistrationv1.MatchResources) { r.ObjectSelector = selecting },
		"rules": func(r *admissionregistrationv1.MatchResources) {
			rule := rules("", "v1", "others")[0]
			rule.APIGroups, rule.Resources = values[:10], values[:10]
			r.ResourceRules = slices.Repeat([]admissionregistrationv1.NamedRuleWithOperations{rule}, 8_000)
		},
		"operations": func(r *admissionregistrationv1.MatchResources) {
			rule := r.ResourceRules[0]
			rule.Operations = []admissionregistrationv1.OperationType{"CONNECT"}
			r.ResourceRules = slices.Repeat([]admissionregistrationv1.NamedRuleWithOperations{rule}, 8_000)
		},
		"names": func(r *admissionregistrationv1.MatchResources) { r.ResourceRules[0].ResourceNames = values },
		"scopes": func(r *admissionregistrationv1.MatchResources) {
			rule := r.ResourceRules[0]
			scope := admissionregistrationv1.ClusterScope
			rule.Scope = &scope
			r.ResourceRules = slices.Repeat([]admissionregistrationv1.NamedRuleWithOperations{rule}, 8_000)
		},
	} {
		criteria := match.Compile(resources("", "v1", "pods", change))
		req, w := request.New(create("", "v1", "pods", "Pod", "test")), newWorld()
		var reason string
		allocations := testing.AllocsPerRun(3, func() { reason = criteria.WhyNot(t.Context(), match.NewSubject(req, w)) })
		if reason == "" || allocations > 1_000 {
			t.Errorf("%s: %.0f allocations for %q", name, allocations, reason)
		}
		t.Logf("%s: %.0f allocations", name, allocations)
	}
}

func TestWhyNotWithoutCompile(t *testing.T) {
	for name, criteria := range map[string]*match.Criteria{"nil": nil, "zero": {}} {
		if got := criteria.WhyNot(t.Context(), match.NewSubject(request.New(create("", "v1", "pods", "Pod", "prod")), newWorld())); got != "" {
			t.Errorf("%s: got %q: Matches fails, which is the answer", name, got)
		}
	}
}
