// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// TestPreviewOverCluster: what a preview lays over the cluster takes the place of what
// is there, in that preview alone.
func TestPreviewOverCluster(t *testing.T) {
	const namespace, name, group = "over", "over.example.com", "over.example.com"
	newNamespace(t, namespace, map[string]string{"tier": "live"})
	param := configMap("limit", map[string]string{"max": "9"})
	if _, err := admin.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), param, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: limits.` + group + `}, spec: {group: ` + group + `, scope: Namespaced, names: {plural: limits, kind: Limit},
	  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {max: {type: integer, default: 4}}}}}}}]}}`
	say := func(params, expression, message string) string {
		return `{` + params + `matchConstraints: ` + onJudged + `, validations: [{expression: "` + expression + `", messageExpression: "` + message + `"}]}`
	}
	const (
		ofConfigMaps = `paramKind: {apiVersion: v1, kind: ConfigMap}, `
		ofLimits     = `paramKind: {apiVersion: ` + group + `/v1, kind: Limit}, `
		bound        = `{policyName: ` + name + `, validationActions: [Deny]}`
		boundToLimit = `{policyName: ` + name + `, validationActions: [Deny], paramRef: {name: limit, parameterNotFoundAction: Deny}}`
	)
	const mayGet = "authorizer.serviceAccount('over', 'robot').group('').resource('pods').namespace('over').check('get').allowed()"
	rights := []string{
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: robot, namespace: over}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: robot, namespace: over}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}, subjects: [{kind: ServiceAccount, name: robot, namespace: over}]}`,
	}
	tests := []overlayCase{
		{"the Namespace of the cluster", say("", "false", "namespaceObject.metadata.labels.tier"), bound, nil, "live"},
		{"a Namespace", say("", "false", "namespaceObject.metadata.labels.tier"), bound, []string{`{apiVersion: v1, kind: Namespace, metadata: {name: over, labels: {tier: laid}}}`}, "laid"},
		{"the param of the cluster", say(ofConfigMaps, "false", "string(params.data.max)"), boundToLimit, nil, "9"},
		{"a param", say(ofConfigMaps, "false", "string(params.data.max)"), boundToLimit, []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: limit, namespace: over}, data: {max: '3'}}`}, "3"},
		{"an unknown kind", say(ofLimits, "false", "string(params.spec.max)"), boundToLimit, nil, "failed to configure policy: failed to find resource referenced by paramKind: 'over.example.com/v1, Kind=Limit'"},
		{"a kind", say(ofLimits, "false", "string(params.spec.max)"), boundToLimit, []string{crd}, noParams},
		{"a kind and a param", say(ofLimits, "false", "string(params.spec.max)"), boundToLimit, []string{crd, `{apiVersion: ` + group + `/v1, kind: Limit, metadata: {name: limit, namespace: over}, spec: {}}`}, "4"},
		{"no rights", say("", mayGet, "'no right'"), bound, nil, "no right"},
		{"rights that the server cannot weigh", say("", mayGet, "'no right'"), bound, rights, "expression '" + mayGet + "' resulted in error: the authorizer does not answer: RBAC: "},
	}
	letWeigh := []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, Verbs: []string{"get", "list"}}}
	after := overlayCase{"rights", say("", mayGet, "'no right'"), bound, rights, ""}
	for _, test := range tests {
		if got := test.judge(t); got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
	letRead(t, "over-rights", letWeigh...)
	eventually(t, "rights to be weighed", func(context.Context) error { return want(after.judge(t), after.want) })
	if _, err := limits(group, "v1").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a preview has made a kind")
	}
	if got := try(t.Context(), admin, namespace, "any"); got != "" {
		t.Errorf("a candidate is in force: %s", got)
	}
}

// overlayCase is a policy and a binding, and what is laid over the cluster.
type overlayCase struct {
	name, policy, binding string
	over                  []string
	want                  string // how the denial begins; empty admits
}

// judge returns how the policy denies, or nothing.
func (c overlayCase) judge(t *testing.T) string {
	t.Helper()
	const name = "over.example.com"
	question := previewOf(t, judged("over", "any"))
	question.Spec.StoredPolicies = v1alpha1.IgnoreStoredPolicies
	question.Spec.Policies = append(question.Spec.Policies, *raw(t, made(t, oursVersion, policyKind, name, c.policy)), *raw(t, made(t, oursVersion, bindingKind, name, c.binding)))
	for _, object := range c.over {
		question.Spec.Cluster = append(question.Spec.Cluster, *raw(t, objectOf(t, object)))
	}
	status, err := preview(t.Context(), admin, question)
	if err != nil {
		return err.Error()
	}
	if status.Allowed {
		return ""
	}
	_, text, _ := strings.Cut(status.Result.Message, " denied request: ")
	return text
}
