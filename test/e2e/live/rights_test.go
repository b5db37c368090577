// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	oursVersion   = schema.GroupVersion{Group: "policy.portcullis.dev", Version: "v1alpha1"}
	theirsVersion = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

func resourceOf(version schema.GroupVersion, kind string) schema.GroupVersionResource {
	if kind == bindingKind {
		return version.WithResource("validatingadmissionpolicybindings")
	}
	return version.WithResource("validatingadmissionpolicies")
}

// TestRightsOfAuthors: who writes policies and bindings needs the rights, and is told
// the same, as with kube-apiserver's own, on whatever way they write.
func TestRightsOfAuthors(t *testing.T) {
	const group = "rights.example.com"
	define(t, group, "v1")
	authors := newAuthors(t, group)
	compared, refused := 0, 0
	for _, one := range writeCases(group) {
		t.Run(one.name, func(t *testing.T) {
			for author, p := range authors {
				for _, way := range ways() {
					if way.creates != (one.stored == "") || (!one.everyWay && !way.usual) {
						continue
					}
					compared++
					if compareWrites(t, author+" by "+way.name, p, way, one) {
						refused++
					}
				}
			}
		})
	}
	t.Logf("compared %d writes with those to %s; %d were refused", compared, theirsVersion.Group, refused)
	if refused < compared/4 || refused > compared*3/4 {
		t.Errorf("%d of %d were refused: that proves little", refused, compared)
	}
}

// writeCase is a write of an object, over one that is stored unless that is empty.
type writeCase struct {
	name, kind, stored, spec string
	everyWay                 bool
}

// writeCases name the policies that newAuthors stores.
func writeCases(group string) []writeCase {
	paramKind := func(version, kind string) string {
		return `paramKind: {apiVersion: ` + version + `, kind: ` + kind + `}`
	}
	policy := func(params string) string {
		return `{` + params + `, matchConstraints: {resourceRules: [{apiGroups: [nowhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: 'true'}]}`
	}
	binding := func(policyName, ref string) string {
		return `{policyName: ` + policyName + `, validationActions: [Deny]` + ref + `}`
	}
	ref := func(fields string) string { return `, paramRef: {` + fields + `, parameterNotFoundAction: Deny}` }
	none := policy(`failurePolicy: Fail`)
	secrets, configMaps := policy(paramKind("v1", "Secret")), policy(paramKind("v1", "ConfigMap"))
	return []writeCase{
		{"policy without params", policyKind, "", none, false},
		{"policy of Secrets", policyKind, "", secrets, true},
		{"policy of ConfigMaps", policyKind, "", configMaps, false},
		{"policy of a custom kind", policyKind, "", policy(paramKind(group+"/v1", "Limit")), false},
		{"policy of an unknown kind", policyKind, "", policy(paramKind(group+"/v1", "Gadget")), false},
		{"policy of an unknown version", policyKind, "", policy(paramKind(group+"/v2", "Limit")), false},
		{"policy of an unknown group", policyKind, "", policy(paramKind("nowhere.example.com/v1", "Limit")), false},
		{"policy of what is no version", policyKind, "", policy(paramKind("a/b/c", "Limit")), false},
		{"params for a policy", policyKind, none, secrets, true},
		{"other params for a policy", policyKind, configMaps, secrets, false},
		{"the same params for a policy", policyKind, secrets, secrets, true},
		{"params taken from a policy", policyKind, secrets, none, false},
		{"binding without params", bindingKind, "", binding("of-secrets", ""), false},
		{"binding to a Secret", bindingKind, "", binding("of-secrets", ref("name: key, namespace: "+rightsNamespace)), true},
		{"binding to Secrets of any namespace", bindingKind, "", binding("of-secrets", ref("name: key")), false},
		{"binding to a Secret by its name", bindingKind, "", binding("of-secrets", ref("name: open, namespace: default")), false},
		{"binding to selected Secrets", bindingKind, "", binding("of-secrets", ref("selector: {}, namespace: "+rightsNamespace)), false},
		{"binding to all Secrets", bindingKind, "", binding("of-secrets", ref("selector: {matchLabels: {a: b}}")), false},
		{"binding to a ConfigMap", bindingKind, "", binding("of-configmaps", ref("name: a, namespace: default")), false},
		{"binding to a custom object", bindingKind, "", binding("of-limits", ref("name: a, namespace: default")), false},
		{"binding to an unknown kind", bindingKind, "", binding("of-gadgets", ref("name: a, namespace: default")), false},
		{"binding to params of a policy without any", bindingKind, "", binding("of-nothing", ref("name: a, namespace: default")), false},
		{"binding of an unknown policy", bindingKind, "", binding("unknown", ref("selector: {}")), false},
		{"params for a binding", bindingKind, binding("of-secrets", ""), binding("of-secrets", ref("name: key")), true},
		{"the same params for a binding", bindingKind, binding("of-secrets", ref("name: key")), binding("of-secrets", ref("name: key")), true},
		{"params taken from a binding", bindingKind, binding("of-secrets", ref("name: key")), binding("of-secrets", ""), false},
	}
}

const rightsNamespace = "rights"

// newAuthors makes users who may write policies of both groups, and read: olga
// nothing, peggy all ConfigMaps and Limits, nina the Secrets of one namespace and one by name,
// glen all of a group, and all everything. Stella may write nothing.
func newAuthors(t *testing.T, group string) map[string]*person {
	t.Helper()
	newNamespace(t, rightsNamespace, nil)
	for name, paramKind := range map[string]string{
		"of-secrets": `{apiVersion: v1, kind: Secret}`, "of-configmaps": `{apiVersion: v1, kind: ConfigMap}`, "of-nothing": `null`,
		"of-limits": `{apiVersion: ` + group + `/v1, kind: Limit}`, "of-gadgets": `{apiVersion: ` + group + `/v1, kind: Gadget}`,
	} {
		for _, version := range []schema.GroupVersion{oursVersion, theirsVersion} {
			store(t, version, policyKind, name, `{paramKind: `+paramKind+`, matchConstraints: {resourceRules: [{apiGroups: [nowhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: 'true'}]}`)
		}
	}
	rule := func(verbs, group, resources string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: strings.Split(group, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names}
	}
	write := rule("*", oursVersion.Group+","+theirsVersion.Group, "*")
	authors := map[string]*person{}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"olga":   {write},
		"peggy":  {write, rule("get,list", ","+group, "configmaps,limits")},
		"nina":   {write, rule("get", "", "secrets", "open")},
		"glen":   {write, rule("get,list", group, "*")},
		"all":    {write, rule("get,list", "*", "*")},
		"stella": {rule("get,list", "*", "*")},
	} {
		grant(t, "", "rights-"+name, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}, append(rules, rule("get", "authors.example.com", name))...)
		authors[name] = user(t, name)
	}
	grant(t, rightsNamespace, "nina", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "nina"}, rule("get,list", "", "secrets"))
	for name, p := range authors {
		waitMay(t, p, &authorizationv1.ResourceAttributes{Verb: "get", Group: "authors.example.com", Resource: name})
	}
	waitMay(t, authors["nina"], &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: rightsNamespace})
	return authors
}

// waitMay waits until kube-apiserver has heard of a right. The servers remember for
// seconds what they were told before.
func waitMay(t *testing.T, p *person, what *authorizationv1.ResourceAttributes) {
	t.Helper()
	eventually(t, "a right", func(ctx context.Context) error {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
		answer, err := p.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("%+v: %+v", what, answer.Status)
		}
		return err
	})
}

func made(t *testing.T, version schema.GroupVersion, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := objectOf(t, `{metadata: {name: `+name+`}, spec: `+spec+`}`)
	object.SetGroupVersionKind(version.WithKind(kind))
	return object
}

func store(t *testing.T, version schema.GroupVersion, kind, name, spec string) {
	t.Helper()
	objects := admin.objects.Resource(resourceOf(version, kind))
	if _, err := objects.Create(t.Context(), made(t, version, kind, name, spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ignoreAbsence(t, objects.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
	})
}

// written counts the objects of compareWrites, each of which has a name of its own.
var written atomic.Int64

// compareWrites writes the same object in both groups, and says whether that was
// refused.
func compareWrites(t *testing.T, who string, p *person, way way, one writeCase) (refused bool) {
	t.Helper()
	name := fmt.Sprintf("written-%d", written.Add(1))
	answers := map[schema.GroupVersion]string{}
	for _, version := range []schema.GroupVersion{oursVersion, theirsVersion} {
		if one.stored != "" {
			store(t, version, one.kind, name, one.stored)
		}
		err := way.write(t.Context(), p.objects.Resource(resourceOf(version, one.kind)), made(t, version, one.kind, name, one.spec))
		answers[version] = answer(err)
		ignoreAbsence(t, admin.objects.Resource(resourceOf(version, one.kind)).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	if err := want(answers[oursVersion], ours(answers[theirsVersion])); err != nil {
		t.Errorf("%s: %v", who, err)
	}
	return answers[oursVersion] != ""
}

// answer is all that a user is told, as text.
func answer(err error) string {
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	told, err := json.MarshalIndent(status.Status(), "", " ")
	if err != nil {
		return err.Error()
	}
	return string(told)
}

// ours is what is said of our group where something is said of kube-apiserver's.
func ours(text string) string {
	text = strings.ReplaceAll(text, theirsVersion.String(), oursVersion.String())
	return strings.ReplaceAll(text, theirsVersion.Group, oursVersion.Group)
}
