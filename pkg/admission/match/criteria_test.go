// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	policyv1alpha1 "github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// resources returns defaulted criteria of one rule, changed by edits.
func resources(group, version, resource string, edits ...func(*admissionregistrationv1.MatchResources)) *admissionregistrationv1.MatchResources {
	r := &admissionregistrationv1.MatchResources{ResourceRules: rules(group, version, resource)}
	for _, edit := range edits {
		edit(r)
	}
	policyv1alpha1.SetDefaults_MatchResources(r)
	return r
}

func rules(group, version, resource string) []admissionregistrationv1.NamedRuleWithOperations {
	return []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Delete},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			},
		},
	}}
}

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// create returns a request that creates an object without labels.
func create(group, version, resource, kind, namespace string) request.Fields {
	return request.Fields{
		RequestResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		RequestKind:     schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Name:            "a",
		Namespace:       namespace,
		Operation:       admission.Create,
		Object:          &unstructured.Unstructured{Object: map[string]any{}},
	}
}

func TestMatches(t *testing.T) {
	onlyProd := func(r *admissionregistrationv1.MatchResources) {
		r.NamespaceSelector = selecting("env", "prod")
	}
	badSelector := func(r *admissionregistrationv1.MatchResources) {
		r.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Around"}}}
	}
	noSelector := resources("", "v1", "pods")
	noSelector.ObjectSelector = nil
	isExact := func(r *admissionregistrationv1.MatchResources) {
		exact := admissionregistrationv1.Exact
		r.MatchPolicy = &exact
	}
	excluding := func(version, resource string) func(*admissionregistrationv1.MatchResources) {
		return func(r *admissionregistrationv1.MatchResources) {
			r.ExcludeResourceRules = rules("*", version, resource)
		}
	}
	pod := create("", "v1", "pods", "Pod", "prod")
	podElsewhere := create("", "v1", "pods", "Pod", "missing")
	beta := create("extensions", "v1beta1", "deployments", "Deployment", "prod")
	widget := create("example.com", "v1", "widgets", "Widget", "prod")
	converted := create("example.com", "v9", "gizmos", "Gizmo", "prod")
	converted.Resource = schema.GroupVersionResource{Group: "example.com", Version: "v8", Resource: "gizmos"}
	converted.Kind = schema.GroupVersionKind{Group: "example.com", Version: "v8", Kind: "Gizmo"}
	production := create("", "v1", "namespaces", "Namespace", "fresh")
	production.Object.SetLabels(map[string]string{"env": "prod"})
	node := create("", "v1", "nodes", "Node", "")

	for name, test := range map[string]struct {
		resources *admissionregistrationv1.MatchResources
		request   request.Fields
		want      string // the resource and kind matched, or empty
		wantErr   string
	}{
		"a binding without matchResources": {nil, pod, "/v1, Resource=pods /v1, Kind=Pod", ""},
		"the resource of a rule":           {resources("", "v1", "pods"), pod, "/v1, Resource=pods /v1, Kind=Pod", ""},
		"another resource":                 {resources("", "v1", "services"), pod, "", ""},
		"any resource":                     {resources("*", "*", "*/*"), pod, "/v1, Resource=pods /v1, Kind=Pod", ""},
		"an equivalent resource":           {resources("apps", "v1", "deployments"), beta, "apps/v1, Resource=deployments apps/v1, Kind=Deployment", ""},
		"an equivalent resource, exactly":  {resources("apps", "v1", "deployments", isExact), beta, "", ""},
		"an equivalent of unknown kind": {
			resources("example.com", "v1beta1", "widgets"), widget, "",
			"unable to convert to example.com/v1beta1, Resource=widgets: unknown kind",
		},
		"the resource to which the API server has converted": {resources("example.com", "v8", "gizmos"), converted, "example.com/v8, Resource=gizmos example.com/v8, Kind=Gizmo", ""},
		"the same, exactly":                     {resources("example.com", "v8", "gizmos", isExact), converted, "", ""},
		"an exclusion of it":                    {resources("*", "*", "gizmos", excluding("v8", "gizmos")), converted, "", ""},
		"an exclusion":                          {resources("", "v1", "pods", excluding("v1", "pods")), pod, "", ""},
		"an exclusion of an equivalent":         {resources("*", "*", "deployments", excluding("v1", "deployments")), beta, "", ""},
		"an exclusion of an unknown kind":       {resources("", "v1", "pods", excluding("v1beta1", "widgets")), widget, "", "unable to convert to example.com/v1beta1, Resource=widgets: unknown kind"},
		"a namespace that is selected":          {resources("", "v1", "pods", onlyProd), pod, "/v1, Resource=pods /v1, Kind=Pod", ""},
		"a namespace that does not exist":       {resources("", "v1", "pods", onlyProd), podElsewhere, "", `namespaces "missing" not found`},
		"no rule, and no such namespace either": {resources("", "v1", "services", onlyProd), podElsewhere, "", ""},
		"a new namespace with its own labels":   {resources("", "v1", "namespaces", onlyProd), production, "/v1, Resource=namespaces /v1, Kind=Namespace", ""},
		"a cluster-scoped object":               {resources("", "v1", "nodes", onlyProd), node, "/v1, Resource=nodes /v1, Kind=Node", ""},
		"a selector that cannot be parsed":      {resources("", "v1", "pods", badSelector), pod, "", `Internal error occurred: "Around" is not a valid label selector operator`},
		"a selector without defaults": {
			noSelector, pod, "",
			"Internal error occurred: a nil object selector was passed, please ensure selectors are initialized properly",
		},
		"no rule, and a bad selector": {resources("", "v1", "services", badSelector), pod, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			under, matched, err := match.Compile(test.resources).Matches(t.Context(), match.NewSubject(request.New(test.request), newWorld()))
			var got, gotErr string
			if matched {
				got = under.Resource.String() + " " + under.Kind.String()
			}
			if err != nil {
				gotErr = err.Error()
			}
			if got != test.want || gotErr != test.wantErr {
				t.Errorf("got %q, error %q; want %q, error %q", got, gotErr, test.want, test.wantErr)
			}
		})
	}
}

func TestMatchesWithoutCompileIsAnError(t *testing.T) {
	for name, criteria := range map[string]*match.Criteria{"nil": nil, "zero": {}} {
		_, matched, err := criteria.Matches(t.Context(), match.NewSubject(request.New(create("", "v1", "pods", "Pod", "prod")), newWorld()))
		if matched || err == nil || !strings.Contains(err.Error(), "not compiled") {
			t.Errorf("%s: got %v, error %v", name, matched, err)
		}
	}
}

func TestCompileKeepsNoReference(t *testing.T) {
	source := resources("", "v1", "pods")
	criteria := match.Compile(source)
	source.ResourceRules[0].APIGroups[0] = "apps"
	source.ResourceRules[0].Operations[0] = admissionregistrationv1.Update
	_, matched, err := criteria.Matches(t.Context(), match.NewSubject(request.New(create("", "v1", "pods", "Pod", "prod")), newWorld()))
	if !matched || err != nil {
		t.Errorf("got %v, error %v", matched, err)
	}
}

func TestMatchesDoesNotAllocate(t *testing.T) {
	w, criteria := newWorld(), match.Compile(resources("", "v1", "pods"))
	req := request.New(create("", "v1", "pods", "Pod", "prod"))
	allocated := testing.AllocsPerRun(100, func() {
		if _, matched, err := criteria.Matches(t.Context(), match.NewSubject(req, w)); !matched || err != nil {
			t.Fatal(matched, err)
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
