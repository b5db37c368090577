// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// authors may write policies and bindings, and read: olga nothing, peggy all
// ConfigMaps and Widgets, nina the Secrets of one namespace and one by name, glen
// all of the group example.com, and all everything.
const authors = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: authors}
rules:
- {apiGroups: [policy.portcullis.dev], resources: ['*'], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: authors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: authors}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: params}
rules:
- {apiGroups: ['', example.com], resources: [configmaps, widgets], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: params}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: params}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: peggy}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secrets, namespace: prod}
rules:
- {apiGroups: [''], resources: [secrets], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: secrets, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: secrets}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nina}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: one-secret}
rules:
- {apiGroups: [''], resources: [secrets], resourceNames: [open], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: one-secret}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: one-secret}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nina}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: group}
rules:
- {apiGroups: [example.com], resources: ['*'], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: group}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: group}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: glen}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: all}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// paramKinds are those of the tests, by the name of the policy that takes them.
func paramKinds() map[string]*admissionregistrationv1.ParamKind {
	return map[string]*admissionregistrationv1.ParamKind{
		"of-secrets":    {APIVersion: "v1", Kind: "Secret"},
		"of-configmaps": {APIVersion: "v1", Kind: "ConfigMap"},
		"of-widgets":    {APIVersion: "example.com/v1", Kind: "Widget"},
		"of-gadgets":    {APIVersion: "example.com/v1", Kind: "Gadget"},
		"of-nothing":    nil,
	}
}

// policyReaders may read all params of a policy.
func policyReaders() map[string][]string {
	return map[string][]string{
		"of-secrets":    {"all", "root"},
		"of-configmaps": {"peggy", "all", "root"},
		"of-widgets":    {"peggy", "glen", "all", "root"},
		"of-gadgets":    {"glen", "all", "root"},
		"of-nothing":    authorNames(),
	}
}

func authorNames() []string { return []string{"olga", "peggy", "nina", "glen", "all", "root"} }

const bindingsPath = groupPath + "/validatingadmissionpolicybindings"

func newAuthors(t *testing.T) *api {
	t.Helper()
	objects, files := t.TempDir(), t.TempDir()
	writeFile(t, objects, "authors.yaml", authors)
	tokens := writeFile(t, files, "tokens.csv", "olga,olga,\npeggy,peggy,\nnina,nina,\nglen,glen,\nall,all,\nroot,root,,system:masters\n")
	return newAPI(t, harness.WithObjects(objects), harness.WithUsers("", tokens), withoutConditions())
}

// write is one way to write an object over one that is stored. None is stored
// where the object is to be new.
type write struct {
	name, method, query, contentType string
	create                           bool
}

func writeWays() []write {
	const (
		merge = string(types.MergePatchType)
		apply = string(types.ApplyYAMLPatchType)
	)
	return []write{
		{name: "create", method: http.MethodPost, create: true},
		{name: "create by a dry run", method: http.MethodPost, query: "?dryRun=All", create: true},
		{name: "create by server-side apply", method: http.MethodPatch, query: "?fieldManager=test", contentType: apply, create: true},
		{name: "update", method: http.MethodPut},
		{name: "update by a dry run", method: http.MethodPut, query: "?dryRun=All"},
		{name: "patch", method: http.MethodPatch, contentType: merge},
		{name: "server-side apply", method: http.MethodPatch, query: "?fieldManager=test&force=true", contentType: apply},
		{name: "server-side apply by a dry run", method: http.MethodPatch, query: "?fieldManager=test&force=true&dryRun=All", contentType: apply},
	}
}

// send writes an object and returns what is said against it, which is checked to
// be one fault of the object.
func (w write) send(t *testing.T, a *api, author, path, name string, object any, at string) string {
	t.Helper()
	if w.method != http.MethodPost {
		path += "/" + name
	}
	answer := a.do(t, request{
		method: w.method, path: path + w.query, contentType: w.contentType, body: encode(t, object),
		token: author, client: a.stranger(t),
	})
	if answer.code == http.StatusOK || answer.code == http.StatusCreated {
		return ""
	}
	var status metav1.Status
	answer.decode(t, &status)
	if answer.code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid || status.Details == nil || len(status.Details.Causes) != 1 {
		t.Fatalf("%s by %s of %s: got %d and\n%s", w.name, author, name, answer.code, answer.body)
	}
	cause := status.Details.Causes[0]
	if cause.Type != "FieldValueForbidden" || cause.Field != at || !strings.HasSuffix(status.Message, fmt.Sprintf("%q is invalid: %s: %s", name, at, cause.Message)) {
		t.Errorf("%s by %s of %s: got\n%s", w.name, author, name, answer.body)
	}
	return strings.TrimPrefix(cause.Message, "Forbidden: ")
}

// TestWritersNeedRights: whoever writes a policy or a binding must have the right to
// read its params, on whatever way they write, as under kube-apiserver.
func TestWritersNeedRights(t *testing.T) {
	a := newAuthors(t)
	for name, run := range map[string]func(*testing.T, *api){
		"Policies":  testPolicyRights,
		"Bindings":  testBindingRights,
		"Ways":      testBindingWays,
		"Unchanged": testUnchangedParams,
		"Recorded":  testRecordedAuthors,
	} {
		t.Run(name, func(t *testing.T) {
			a.reset(t)
			run(t, a)
		})
	}
}

func testPolicyRights(t *testing.T, a *api) {
	for policy, kind := range paramKinds() {
		for _, way := range writeWays() {
			written := a.begin(t, way, policy, kind)
			for _, author := range authorNames() {
				want := ""
				if !slices.Contains(policyReaders()[policy], author) {
					want = fmt.Sprintf(`user &{%s  [system:authenticated] map[]} must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`,
						author, kind.Kind, kind.APIVersion)
				}
				got := way.send(t, a, author, policiesPath, policy, written, "spec.paramKind")
				if got != want {
					t.Errorf("%s by %s of %s: got\n%s\nwant\n%s", way.name, author, policy, got, want)
				}
				if got == "" {
					written = a.begin(t, way, policy, kind)
				}
			}
		}
	}
}

// begin makes the store such that a policy can be written in a way, and returns the
// policy: new, or for the first time with params.
func (a *api) begin(t *testing.T, way write, name string, kind *admissionregistrationv1.ParamKind) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	if err := a.policies().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	written := newPolicy(name)
	if !way.create {
		written.ResourceVersion = a.createPolicy(t, written).ResourceVersion
	}
	written.Spec.ParamKind = kind
	return written
}

// createPolicies creates one policy for each kind of params.
func (a *api) createPolicies(t *testing.T) {
	t.Helper()
	for name, kind := range paramKinds() {
		p := newPolicy(name)
		p.Spec.ParamKind = kind
		a.createPolicy(t, p)
	}
}

// paramRefs are those of the tests.
func paramRefs() map[string]admissionregistrationv1.ParamRef {
	return map[string]admissionregistrationv1.ParamRef{
		"prod/key": {Namespace: "prod", Name: "key"},
		"key":      {Name: "key"},
		"open":     {Name: "open"},
		"prod/":    {Namespace: "prod", Selector: &metav1.LabelSelector{}},
		"all":      {Selector: &metav1.LabelSelector{}},
	}
}

// withRef returns a binding with params.
func withRef(policy string, ref admissionregistrationv1.ParamRef) *v1alpha1.ValidatingAdmissionPolicyBinding {
	deny := admissionregistrationv1.DenyAction
	ref.ParameterNotFoundAction = &deny
	b := newBinding("b", policy)
	b.Spec.ParamRef = &ref
	return b
}

func testBindingRights(t *testing.T, a *api) {
	a.createPolicies(t)
	create := writeWays()[1]
	for _, policy := range []string{"of-secrets", "of-configmaps", "of-widgets", "of-gadgets", "of-nothing", "unknown"} {
		for name, ref := range paramRefs() {
			for _, author := range authorNames() {
				allowed := slices.Contains(policyReaders()[policy], author) && policy != "of-nothing" ||
					author == "nina" && policy == "of-secrets" && slices.Contains([]string{"prod/key", "prod/", "open"}, name) ||
					author == "all" || author == "root"
				want := ""
				if !allowed {
					want = refusedRef(author, policy, &ref)
				}
				if got := create.send(t, a, author, bindingsPath, "b", withRef(policy, ref), "spec.paramRef"); got != want {
					t.Errorf("%s of %s by %s: got\n%s\nwant\n%s", name, policy, author, got, want)
				}
			}
		}
	}
}

// refusedRef is what kube-apiserver says against a binding of an author who may not
// read its params.
func refusedRef(author, policy string, ref *admissionregistrationv1.ParamRef) string {
	verb := "get"
	if ref.Name == "" {
		verb = "list"
	}
	who := fmt.Sprintf("user &{%s  [system:authenticated] map[]} does not have %q permission ", author, verb)
	switch policy {
	case "of-gadgets":
		return "unable to resolve paramKind &{example.com/v1 Gadget} to determine minimum required permissions and " + who + "for all groups, versions and resources"
	case "unknown":
		return "unable to get policy unknown to determine minimum required permissions and " + who + "for all groups, versions and resources"
	default:
		return who + "on the object referenced by paramRef"
	}
}

// testBindingWays writes with another name of the param, of which nina may read the
// one and not the other.
func testBindingWays(t *testing.T, a *api) {
	a.createPolicies(t)
	for _, way := range writeWays() {
		for name, want := range map[string]string{
			"open": "",
			"key":  refusedRef("nina", "of-secrets", &admissionregistrationv1.ParamRef{Name: "key"}),
		} {
			written := withRef("of-secrets", admissionregistrationv1.ParamRef{Name: name})
			if err := a.bindings().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if !way.create {
				before, err := a.bindings().Create(t.Context(), withRef("of-secrets", admissionregistrationv1.ParamRef{Name: "before"}), metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				written.ResourceVersion = before.ResourceVersion
			}
			if got := way.send(t, a, "nina", bindingsPath, "b", written, "spec.paramRef"); got != want {
				t.Errorf("%s with %s: got\n%s\nwant\n%s", way.name, name, got, want)
			}
		}
	}
}

// testUnchangedParams: a paramKind that stays takes no right, nor does what goes; a
// paramRef takes it at each write.
func testUnchangedParams(t *testing.T, a *api) {
	a.createPolicies(t)
	binding := withRef("of-secrets", admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}})
	if _, err := a.bindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ways := slices.DeleteFunc(writeWays(), func(way write) bool { return way.create })
	for i, way := range ways {
		p := newPolicy("of-secrets")
		p.Spec.ParamKind = paramKinds()["of-secrets"]
		p.ResourceVersion = a.getPolicy(t, "of-secrets").ResourceVersion
		p.Spec.Validations[0].Message = fmt.Sprintf("way %d", i)
		if got := way.send(t, a, "olga", policiesPath, p.Name, p, "spec.paramKind"); got != "" {
			t.Errorf("%s of the policy: %s", way.name, got)
		}
		current, err := a.bindings().Get(t.Context(), "b", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b := binding.DeepCopy()
		b.ResourceVersion, b.Labels = current.ResourceVersion, map[string]string{"way": fmt.Sprint(i)}
		// As kube-apiserver, which compares pointers.
		if got := way.send(t, a, "olga", bindingsPath, "b", b, "spec.paramRef"); !strings.Contains(got, `does not have "list" permission`) {
			t.Errorf("%s of the binding: got %q, want that the right to its params is missing", way.name, got)
		}
	}

	reported := a.getPolicy(t, "of-secrets")
	reported.Spec.ParamKind = paramKinds()["of-configmaps"] // dropped
	reported.Status.ObservedGeneration = reported.Generation
	client, olga := a.stranger(t), "olga"
	for _, last := range []request{
		{method: http.MethodPut, path: policiesPath + "/of-secrets/status", body: encode(t, reported)},
		{method: http.MethodPatch, path: policiesPath + "/of-secrets", contentType: string(types.MergePatchType), body: []byte(`{"spec": {"paramKind": null}}`)},
		{method: http.MethodPatch, path: bindingsPath + "/b", contentType: string(types.MergePatchType), body: []byte(`{"spec": {"paramRef": null}}`)},
		{method: http.MethodDelete, path: bindingsPath + "/b"},
		{method: http.MethodDelete, path: policiesPath + "/of-widgets"},
		{method: http.MethodDelete, path: policiesPath},
	} {
		last.client, last.token = client, olga
		if answer := a.do(t, last); answer.code != http.StatusOK {
			t.Errorf("%s %s: got %d and\n%s", last.method, last.path, answer.code, answer.body)
		}
	}
}

// testRecordedAuthors has what kube-apiserver 1.36.3 answers, and asks only about
// what is valid.
func testRecordedAuthors(t *testing.T, a *api) {
	const (
		kind   = `user &{olga  [system:authenticated] map[]} must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)`
		policy = "some-policy.example.com"
	)
	create := writeWays()[0]
	p := newPolicy("rej-1603.example.com")
	p.Spec.ParamKind = paramKinds()["of-configmaps"]
	if got := create.send(t, a, "olga", policiesPath, p.Name, p, "spec.paramKind"); got != kind {
		t.Errorf("got\n%s\nwant\n%s", got, kind)
	}
	p.Name = "rej-1606.example.com"
	if got := create.send(t, a, "peggy", policiesPath, p.Name, p, "spec.paramKind"); got != "" {
		t.Errorf("got\n%s", got)
	}
	b := withRef(policy, admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}})
	want := "unable to get policy " + policy + ` to determine minimum required permissions and user &{olga  [system:authenticated] map[]} does not have "list" permission for all groups, versions and resources`
	if got := create.send(t, a, "olga", bindingsPath, "b", b, "spec.paramRef"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	p.Name, p.Spec.Validations[0].Expression = "invalid", "nope"
	answer := a.do(t, request{method: http.MethodPost, path: policiesPath, body: encode(t, p), token: "olga", client: a.stranger(t)})
	if answer.code != http.StatusUnprocessableEntity || strings.Contains(string(answer.body), "permission") {
		t.Errorf("an invalid policy: got %d and\n%s", answer.code, answer.body)
	}
}
