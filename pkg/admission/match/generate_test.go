// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"math/rand/v2"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// generator makes criteria and requests of few values, so that they often meet.
// It draws from a seed or from the bytes of a fuzzer.
type generator struct{ draw func(n int) int }

func fromSeed(seed uint64) generator {
	return generator{draw: rand.New(rand.NewPCG(seed, 0)).IntN}
}

// fromBytes draws zeros when data is used up.
func fromBytes(data []byte) generator {
	return generator{draw: func(n int) int {
		if len(data) == 0 {
			return 0
		}
		next := int(data[0])
		data = data[1:]
		return next % n
	}}
}

func pick[T any](g generator, values ...T) T { return values[g.draw(len(values))] }

func several[T any](g generator, values ...T) []T {
	var chosen []T
	for range pick(g, 1, 1, 2, 3, 0) {
		chosen = append(chosen, pick(g, values...))
	}
	return chosen
}

func (g generator) resources() *admissionregistrationv1.MatchResources {
	exact, equivalent := admissionregistrationv1.Exact, admissionregistrationv1.Equivalent
	return &admissionregistrationv1.MatchResources{
		MatchPolicy:          pick(g, &equivalent, &equivalent, &exact, nil),
		NamespaceSelector:    g.selector(),
		ObjectSelector:       g.selector(),
		ResourceRules:        g.rules(pick(g, 1, 2, 3, 0)),
		ExcludeResourceRules: g.rules(pick(g, 0, 0, 0, 1, 2)),
	}
}

func (g generator) rules(n int) []admissionregistrationv1.NamedRuleWithOperations {
	var rules []admissionregistrationv1.NamedRuleWithOperations
	for range n {
		var rule admissionregistrationv1.NamedRuleWithOperations
		rule.Operations = several[admissionregistrationv1.OperationType](g, "*", "*", "CREATE", "UPDATE", "DELETE", "CONNECT")
		rule.APIGroups = several(g, "*", "", "apps", "apps", "extensions", "extensions", "example.com", "example.com")
		rule.APIVersions = several(g, "*", "v1", "v1beta1", "v2")
		rule.Resources = several(g, "*", "*/*", "pods", "pods/status", "deployments", "deployments", "deployments/*", "*/scale", "*/status",
			"deployments/scale", "namespaces", "namespaces/status", "widgets", "widgets", "widgets/*", "", "/", "pods/status/more")
		if scope := pick[admissionregistrationv1.ScopeType](g, "*", "-", "Namespaced", "Cluster", ""); scope != "-" {
			rule.Scope = &scope
		}
		if g.draw(3) == 0 {
			rule.ResourceNames = several(g, "prod", "a", "b", "")
		}
		rules = append(rules, rule)
	}
	return rules
}

// selector makes at most one mistake, because upstream reports one of several at
// random.
func (g generator) selector() *metav1.LabelSelector {
	in := func(operator metav1.LabelSelectorOperator, key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	switch g.draw(16) {
	default:
		return &metav1.LabelSelector{}
	case 1, 2:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": pick(g, "prod", "test")}}
	case 3:
		return in(metav1.LabelSelectorOpNotIn, "env", "prod")
	case 4:
		return in(metav1.LabelSelectorOpDoesNotExist, "team")
	case 5:
		return in(metav1.LabelSelectorOpExists, "team")
	case 6:
		return in("Around", "env", "prod")
	case 7:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"no/label/key": "x"}}
	case 8: // so many that a subject remembers the answer
		return in(pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn), "env", "a", "b", "c", "d", "e", "f", "g", pick(g, "prod", "test"))
	}
}

func (g generator) request() *request.Request {
	type target struct{ group, version, resource, subresource, kind string }
	on := pick(g,
		target{"", "v1", "pods", "", "Pod"},
		target{"", "v1", "pods", "status", "Pod"},
		target{"", "v1", "namespaces", "", "Namespace"},
		target{"", "v1", "namespaces", "status", "Namespace"},
		target{"apps", "v1", "deployments", "", "Deployment"},
		target{"apps", "v1", "deployments", "scale", "Scale"},
		target{"apps", "v1beta1", "deployments", "", "Deployment"},
		target{"extensions", "v1beta1", "deployments", "", "Deployment"},
		target{"example.com", "v1", "widgets", "", "Widget"},
		target{"example.com", "v2", "widgets", "", "Widget"},
		target{"example.com", "v1beta1", "widgets", "", "Widget"},
		target{"example.com", "v1", "namespaces", "", "Namespace"},
		target{"example.com", "v2", "unheard", "of", "Of"},
		target{"*", "*", "*", "*", "*"},
	)
	fields := request.Fields{
		RequestKind:        schema.GroupVersionKind{Group: on.group, Version: on.version, Kind: on.kind},
		RequestResource:    schema.GroupVersionResource{Group: on.group, Version: on.version, Resource: on.resource},
		RequestSubResource: on.subresource,
		Name:               pick(g, "a", "b", "prod", ""),
		Namespace:          pick(g, "prod", "test", "bare", "", "missing", brokenNamespace),
		Operation:          pick(g, admission.Create, admission.Update, admission.Delete, admission.Connect, "*"),
	}
	switch {
	case fields.Operation == admission.Connect && g.draw(2) > 0:
		fields.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PodExecOptions"}}
	case g.draw(8) > 0:
		fields.Object = g.object()
	}
	if g.draw(2) > 0 {
		fields.OldObject = g.object()
	}
	return request.New(fields)
}

func (g generator) object() *unstructured.Unstructured {
	metadata := map[string]any{"name": "a"}
	if labels := pick(g, map[string]any{"env": "prod"}, map[string]any{"env": "test", "team": "a"},
		map[string]any{"env": int64(1), "team": "a"}, nil); labels != nil {
		metadata["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
}
