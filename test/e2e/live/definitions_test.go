// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// define makes a kind Limit, which goes with the test, in a group of its own. It is
// stored in the first version.
func define(t *testing.T, group string, versions ...string) {
	t.Helper()
	var list []string
	for i, version := range versions {
		list = append(list, fmt.Sprintf(`{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {
		  spec: {type: object, description: What is allowed., properties: {max: {type: integer, description: How much at most.}, names: {type: array, items: {type: string}}}}}}}}`, version, i == 0))
	}
	object := objectOf(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: limits.`+group+`},
	  spec: {group: `+group+`, scope: Namespaced, names: {plural: limits, kind: Limit}, versions: [`+strings.Join(list, ", ")+`]}}`)
	made, err := admin.objects.Resource(definitions).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ignoreAbsence(t, admin.objects.Resource(definitions).Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{}))
	})
	eventually(t, made.GetName()+" to be served", func(ctx context.Context) error {
		_, err := limits(group, versions[0]).List(ctx, metav1.ListOptions{})
		return err
	})
}

// undefine returns when the kind is gone.
func undefine(t *testing.T, group string) {
	t.Helper()
	name := "limits." + group
	if err := admin.objects.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, name+" to be gone", func(ctx context.Context) error {
		_, err := admin.objects.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

func limits(group, version string) dynamic.NamespaceableResourceInterface {
	return admin.objects.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "limits"})
}

func limit(t *testing.T, apiVersion, name string, most int) *unstructured.Unstructured {
	t.Helper()
	return objectOf(t, fmt.Sprintf(`{apiVersion: %s, kind: Limit, metadata: {name: %s}, spec: {max: %d}}`, apiVersion, name, most))
}

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	decode(t, text, &object.Object)
	return object
}

// limitReader is the right to read the limits of a group.
func limitReader(group string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"limits"}, Verbs: []string{"get", "list", "watch"}}
}

// TestDefinedAtRunTime: params are those of a kind that comes, changes and goes.
func TestDefinedAtRunTime(t *testing.T) {
	const namespace, name, group = "run-time", "run-time.limits.example.com", "run-time.example.com"
	newNamespace(t, namespace, nil)
	letRead(t, "run-time-params", limitReader(group))
	enforce(t, name, `{paramKind: {apiVersion: `+group+`/v1, kind: Limit}, matchConstraints: `+onJudged+`,
	  validations: [{expression: "size(object.metadata.name) <= params.spec.max", messageExpression: "'at most ' + string(params.spec.max)"}]}`,
		`{paramRef: {name: first, parameterNotFoundAction: Deny}}`)
	expect := func(when, text string) {
		t.Helper()
		eventually(t, "the verdict "+when, func(ctx context.Context) error { return want(try(ctx, admin, namespace, "12345"), text) })
	}
	unknown := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: failed to configure policy: failed to find resource referenced by paramKind: '%s/v1, Kind=Limit'", name, group)
	expect("before the kind is defined", unknown)
	define(t, group, "v1")
	expect("without a param", denial(name, noParams))
	store := func(param string, most int) {
		t.Helper()
		if _, err := limits(group, "v1").Namespace(namespace).Create(t.Context(), limit(t, group+"/v1", param, most), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	store("first", 9)
	expect("with a param", "")
	if _, err := limits(group, "v1").Namespace(namespace).Patch(t.Context(), "first", types.MergePatchType, []byte(`{"spec": {"max": 3}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("with a changed param", denial(name, "at most 3"))
	if err := limits(group, "v1").Namespace(namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("when the param is gone", denial(name, noParams))

	store("first", 9)
	expect("with another param of that name", "")
	undefine(t, group)
	expect("when the kind is gone", unknown)
	define(t, group, "v1")
	expect("when the kind is back, without the objects", denial(name, noParams))
	undefine(t, group)
	define(t, group, "v2")
	if _, err := limits(group, "v2").Namespace(namespace).Create(t.Context(), limit(t, group+"/v2", "first", 4), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("when the kind is back in another version", unknown)
	patch := []byte(`{"spec": {"paramKind": {"apiVersion": "` + group + `/v2"}}}`)
	if _, err := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("in the other version", denial(name, "at most 4"))
}

// TestEquivalentVersions: a policy that names one version of a kind judges requests for
// the other one, in the version that it names, unless it wants exactly that.
func TestEquivalentVersions(t *testing.T) {
	const namespace, group = "versions", "versions.example.com"
	newNamespace(t, namespace, nil)
	define(t, group, "v1", "v2")
	spec := func(matchPolicy string) string {
		return `{matchConstraints: {matchPolicy: ` + matchPolicy + `, resourceRules: [{apiGroups: [` + group + `], apiVersions: [v1], operations: [CREATE], resources: [limits]}]},
		  validations: [{expression: 'false', messageExpression: "object.apiVersion + ' of ' + request.kind.version + ' for ' + request.requestKind.version"}]}`
	}
	const exact, equivalent = namespace + ".exact.example.com", namespace + ".equivalent.example.com"
	create := func(ctx context.Context, version string) string {
		_, err := limits(group, version).Namespace(namespace).Create(ctx, limit(t, group+"/"+version, "any", 1), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return told(err)
	}
	enforce(t, exact, spec("Exact"), `{}`)
	for version, text := range map[string]string{"v1": denial(exact, group+"/v1 of v1 for v1"), "v2": ""} {
		eventually(t, "exactly "+version, func(ctx context.Context) error { return want(create(ctx, version), text) })
	}
	if err := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), exact, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	enforce(t, equivalent, spec("Equivalent"), `{}`)
	for _, version := range []string{"v1", "v2"} {
		eventually(t, "what is equivalent to "+version, func(ctx context.Context) error {
			return want(create(ctx, version), denial(equivalent, group+"/v1 of v1 for "+version))
		})
	}
}
