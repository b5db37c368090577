// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// asked is a policy and a binding about objects that have a label of its name.
type asked struct{ policy, binding string }

// parityPolicies differ in what they say and in what follows.
func parityPolicies() map[string]asked {
	on := func(name, rest string) string {
		return `{matchConstraints: {objectSelector: {matchLabels: {` + name + `: 'on'}},
		  resourceRules: [{apiGroups: ['', apps], apiVersions: [v1], operations: ['*'], resources: [configmaps, deployments]}]}, ` + rest + `}`
	}
	all := map[string]asked{}
	add := func(name, policy, binding string) { all[name] = asked{on(name, policy), binding} }
	add("a-reason", `validations: [{expression: "request.operation == 'DELETE'", reason: RequestEntityTooLarge, message: it is too large}]`, `{}`)
	add("b-variables", `variables: [{name: who, expression: request.userInfo.username}],
	  validations: [{expression: "variables.who != 'alice'", messageExpression: "variables.who + ' may not'", reason: Forbidden}]`, `{}`)
	add("c-groups", `validations: [{expression: "!('juniors' in request.userInfo.groups)"}, {expression: "request.dryRun", message: for real}]`, `{}`)
	add("d-warn", `validations: [{expression: 'false', message: think twice}]`, `{validationActions: [Warn]}`)
	add("e-audit", `validations: [{expression: "request.userInfo.username == 'nobody'", message: noted}]`, `{validationActions: [Audit]}`)
	add("f-warn-audit", `validations: [{expression: "request.operation == 'UPDATE'", messageExpression: "'by ' + request.operation"}]`, `{validationActions: [Warn, Audit]}`)
	add("g-error", `validations: [{expression: "object.data.missing == 'a'"}]`, `{}`)
	add("h-ignored", `failurePolicy: Ignore, validations: [{expression: "object.data.missing == 'a'"}]`, `{}`)
	add("i-error-warned", `validations: [{expression: "oldObject.metadata.labels.missing == 'a'"}]`, `{validationActions: [Warn]}`)
	add("j-annotations", `auditAnnotations: [{key: who, valueExpression: "request.userInfo.username + ' in ' + namespaceObject.metadata.name"}, {key: nothing, valueExpression: "null"}]`, `{validationActions: [Deny]}`)
	add("k-authorizer", `validations: [{expression: "authorizer.group('').resource('secrets').namespace(request.namespace).check('delete').allowed()", message: no keeper}]`, `{}`)
	add("l-params", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "request.operation == params.data.operation", messageExpression: "params.metadata.name + ' wants ' + params.data.operation"}]`,
		`{paramRef: {selector: {matchLabels: {parity: param}}, parameterNotFoundAction: Deny}}`)
	add("m-no-params", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: 'true'}]`, `{paramRef: {name: none, parameterNotFoundAction: Deny}, validationActions: [Warn]}`)
	add("n-condition", `matchConditions: [{name: only-bob, expression: "request.userInfo.username == 'bob'"}], validations: [{expression: 'false', message: not bob}]`, `{validationActions: [Deny, Audit]}`)
	add("o-condition-error", `matchConditions: [{name: broken, expression: "object.data.missing == 'a'"}], validations: [{expression: 'true'}]`, `{}`)
	add("p-uid", `validations: [{expression: "!has(request.userInfo.extra) || request.userInfo.uid != '7' || request.userInfo.extra['example.com/team'] != ['x', 'y']", message: seven}]`, `{}`)
	add("q-long", `validations: [{expression: 'false', messageExpression: "'0123456789'.replace('', 'é')"}]`, `{validationActions: [Warn, Audit]}`)
	return all
}

const parity = "parity"

// TestPreviewIsEnforcement: what a preview says is what kube-apiserver does then, in
// code, reason, message, causes, warnings and audit annotations.
func TestPreviewIsEnforcement(t *testing.T) {
	newNamespace(t, parity, nil)
	grant(t, parity, "users", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"},
		rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "deployments"}, Verbs: []string{"*"}})
	grant(t, parity, "keepers", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "bob"},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"delete"}})
	grant(t, "", "parity-previewers", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"},
		rbacv1.PolicyRule{APIGroups: []string{oursVersion.Group}, Resources: []string{"admissionpreviews"}, Verbs: []string{"create"}})
	for _, operation := range []string{"CREATE", "UPDATE"} {
		param := configMap("wants-"+strings.ToLower(operation), map[string]string{"operation": operation})
		param.Labels = map[string]string{"parity": "param"}
		if _, err := admin.kube.CoreV1().ConfigMaps(parity).Create(t.Context(), param, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	policies := parityPolicies()
	names := slices.Sorted(maps.Keys(policies))
	combinations := [][]string{names, {"a-reason", "b-variables"}, {"d-warn", "e-audit", "f-warn-audit", "j-annotations"}, {"g-error", "h-ignored", "i-error-warned"}, {"c-groups", "b-variables", "k-authorizer"}, nil}
	for _, name := range names {
		combinations = append(combinations, []string{name})
	}
	var existing []*unstructured.Unstructured
	for i, labels := range combinations {
		stored, err := admin.objects.Resource(configMaps).Namespace(parity).Create(t.Context(), labelled(t, fmt.Sprintf("stored-%d", i), labels), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		existing = append(existing, stored)
	}
	for _, name := range names {
		enforce(t, parity+"."+name+".example.com", policies[name].policy, policies[name].binding)
	}
	users := map[string]*person{
		"admin": admin, "alice": user(t, "alice"), "bob": user(t, "bob", "juniors"),
		"robot": impersonating(t, rest.ImpersonationConfig{UserName: "system:serviceaccount:" + parity + ":robot", UID: "7", Extra: map[string][]string{"example.com/team": {"x", "y"}}}),
	}
	for who, p := range users {
		eventually(t, who+" may preview", func(ctx context.Context) error {
			_, err := preview(ctx, p, previewOf(t, judged(parity, "any")))
			return err
		})
	}
	seen := &outcomes{}
	for i, labels := range combinations {
		for who, p := range users {
			requests := parityRequests(t, existing[i], labels)
			if who == "alice" {
				requests = append(requests, parityRequest{admissionv1.Create, deployments, labelledDeployment(t, labels), nil})
			}
			for _, one := range requests {
				seen.compare(t, fmt.Sprintf("%s of %s by %s with %v", one.operation, one.resource.Resource, who, labels), p, one)
			}
		}
	}
	t.Logf("compared %d requests with their previews: %d denied, %d warnings, %d audit annotations", seen.requests, seen.denied, seen.warnings, seen.annotations)
	if seen.denied < seen.requests/4 || seen.denied > seen.requests*3/4 || seen.warnings == 0 || seen.annotations == 0 {
		t.Error("that proves little")
	}
}

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

func labelled(t *testing.T, name string, labels []string) *unstructured.Unstructured {
	t.Helper()
	return withLabels(objectOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, namespace: `+parity+`}}`), labels)
}

func labelledDeployment(t *testing.T, labels []string) *unstructured.Unstructured {
	t.Helper()
	return withLabels(objectOf(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: created, namespace: `+parity+`},
	  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`), labels)
}

func withLabels(object *unstructured.Unstructured, labels []string) *unstructured.Unstructured {
	on := map[string]string{}
	for _, label := range labels {
		on[label] = "on"
	}
	object.SetLabels(on)
	return object
}

func impersonating(t *testing.T, who rest.ImpersonationConfig) *person {
	t.Helper()
	config := rest.CopyConfig(admin.config)
	config.Impersonate = who
	p, err := newPerson(config, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parityRequest is a dry run, and the question of what becomes of it.
type parityRequest struct {
	operation   admissionv1.Operation
	resource    schema.GroupVersionResource
	object, old *unstructured.Unstructured
}

func parityRequests(t *testing.T, stored *unstructured.Unstructured, labels []string) []parityRequest {
	t.Helper()
	changed := stored.DeepCopy()
	changed.Object["data"] = map[string]any{"changed": "yes"}
	return []parityRequest{
		{admissionv1.Create, configMaps, labelled(t, "created", labels), nil},
		{admissionv1.Update, configMaps, changed, stored},
		{admissionv1.Delete, configMaps, nil, stored},
	}
}

func (r parityRequest) send(ctx context.Context, p *person) error {
	objects, dry := p.objects.Resource(r.resource).Namespace(parity), []string{metav1.DryRunAll}
	var err error
	switch r.operation {
	case admissionv1.Create:
		_, err = objects.Create(ctx, r.object, metav1.CreateOptions{DryRun: dry})
	case admissionv1.Update:
		_, err = objects.Update(ctx, r.object, metav1.UpdateOptions{DryRun: dry})
	case admissionv1.Delete:
		err = objects.Delete(ctx, r.old.GetName(), metav1.DeleteOptions{DryRun: dry})
	case admissionv1.Connect:
		err = errors.New("nobody connects to these")
	}
	return err
}

func (r parityRequest) question(t *testing.T) *v1alpha1.AdmissionPreview {
	t.Helper()
	dry := true
	request := &v1alpha1.PreviewRequest{DryRun: &dry}
	if r.object != nil {
		request.Object = raw(t, r.object)
	}
	if r.old != nil {
		request.OldObject = raw(t, r.old)
	}
	return &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{Request: request}}
}
