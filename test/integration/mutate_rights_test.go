// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// readers are what the policies of the tests read, beside authors: nina may get the
// ConfigMap settings, lena list those of the namespace test, and olga nothing.
const readers = authors + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: settings, namespace: prod}
rules:
- {apiGroups: [''], resources: [configmaps], resourceNames: [settings], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: settings, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: settings}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nina}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: prod}
data: {team: ` + hiddenText + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lists, namespace: test}
rules:
- {apiGroups: [''], resources: [configmaps], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lists, namespace: test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lists}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: lena}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: existing, namespace: test}
---
apiVersion: v1
kind: Namespace
metadata: {name: test}
`

// hiddenText is what those who may not read it must not see.
const hiddenText = "lapis-lazuli"

// reading is a rule with a context entry that writes what it has read.
func reading(namespace, source, variable string) string {
	return fmt.Sprintf(`
rules:
- name: copy
  match: {any: [{resources: {kinds: [ConfigMap], namespaces: [%s]}}]}
  context: [{name: settings, %s}]
  mutate: {patchesJson6902: '- {op: add, path: /data/copied, value: "{{ %s }}"}'}
`, namespace, source, variable)
}

const (
	settingsOfProd = "configMap: {name: settings, namespace: prod}"
	teamOfSettings = "settings.data.team"
)

func newReaders(t *testing.T, opts ...harness.Option) *api {
	t.Helper()
	objects, files := t.TempDir(), t.TempDir()
	writeFile(t, objects, "readers.yaml", readers)
	tokens := writeFile(t, files, "tokens.csv", "olga,olga,\npeggy,peggy,\nnina,nina,\nglen,glen,\nlena,lena,\nall,all,\nroot,root,,system:masters\n")
	return newAPI(t, append(opts, harness.WithObjects(objects), harness.WithUsers("", tokens))...)
}

// TestRulesNeedRights: what a rule reads, whoever brings the rule must have the right to.
func TestRulesNeedRights(t *testing.T) {
	a := newReaders(t, withoutConditions())
	t.Run("Writes", func(t *testing.T) { testReadingWrites(t, a) })
	t.Run("Anything", func(t *testing.T) { testReadingAnything(t, a) })
	t.Run("Unchanged", func(t *testing.T) { testUnchangedReads(t, a) })
	t.Run("Candidates", func(t *testing.T) { testReadingCandidates(t, a) })
}

// readingCase is a rule that reads, where it says so, what is demanded of its writer, and
// who has that.
type readingCase struct {
	name, spec, field, right string
	allowed                  []string
}

func readingCases() []readingCase {
	const configMap, call = "spec.rules[0].context[0].configMap", "spec.rules[0].context[0].apiCall.urlPath"
	return []readingCase{
		{"one", reading("test", settingsOfProd, teamOfSettings), configMap, `get configmaps "settings" in namespace "prod"`, []string{"peggy", "nina", "all", "root"}},
		{
			"any of a namespace", reading("test", `configMap: {name: "{{ request.name }}", namespace: prod}`, teamOfSettings),
			configMap, `get configmaps in namespace "prod"`,
			[]string{"peggy", "all", "root"},
		},
		{
			"one of any namespace", reading("test", `configMap: {name: settings, namespace: "{{ request.namespace }}"}`, teamOfSettings),
			configMap, `get configmaps "settings" in all namespaces`,
			[]string{"peggy", "all", "root"},
		},
		{
			"a list", reading("test", `apiCall: {urlPath: /api/v1/namespaces/prod/secrets, jmesPath: "items[0].kind"}`, "settings"),
			call, `list secrets in namespace "prod"`,
			[]string{"nina", "all", "root"},
		},
		{
			"of another group", reading("test", `apiCall: {urlPath: "/apis/example.com/v1/namespaces/prod/widgets/{{ request.name }}"}`, "settings.kind"),
			call, `get widgets.example.com in namespace "prod"`,
			[]string{"peggy", "glen", "all", "root"},
		},
	}
}

func testReadingWrites(t *testing.T, a *api) {
	for i, test := range readingCases() {
		ways := writeWays()
		if i > 0 {
			ways = ways[:1] // the way makes no difference
		}
		for _, way := range ways {
			for _, author := range authorNames() {
				if err := a.clusterPolicies().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				written := clusterPolicy(t, "p", test.spec)
				written.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterPolicy"}
				if !way.create {
					written.ResourceVersion = a.createClusterPolicy(t, "p", mutateRule("test", labelPatch("a", "b"))).ResourceVersion
				}
				want := ""
				if !slices.Contains(test.allowed, author) {
					want = fmt.Sprintf("user %q must have the right to %s, which the policy reads", author, test.right)
				}
				if got := way.send(t, a, author, clusterPoliciesPath, "p", written, test.field); got != want {
					t.Errorf("%s: %s by %s: got\n%s\nwant\n%s", test.name, way.name, author, got, want)
				}
			}
		}
	}
}

// testReadingAnything: where a variable says which resource is read, that may be any, by
// name or as a list.
func testReadingAnything(t *testing.T, a *api) {
	p := clusterPolicy(t, "anything", reading("test", `apiCall: {urlPath: "/apis/{{ request.name }}/v1/widgets"}`, "settings.kind"))
	const at = "spec.rules[0].context[0].apiCall.urlPath"
	for author, allowed := range map[string]bool{"peggy": false, "glen": false, "all": true, "root": true} {
		_, err := a.as(t, a.As(author)).PolicyV1alpha1().ClusterPolicies().Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if allowed {
			if err != nil {
				t.Errorf("%s: %v", author, err)
			}
			continue
		}
		wantCauses(t, err, []string{at, at})
		for _, verb := range []string{"get", "list"} {
			if want := fmt.Sprintf("user %q must have the right to %s resources of every kind in all namespaces", author, verb); !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

// testUnchangedReads: a write that leaves the rules as they are takes no right, and
// neither does what goes. Whoever changes a rule could make another use of what it reads.
// What a Policy reads is in its namespace.
func testUnchangedReads(t *testing.T, a *api) {
	a.resetRules(t)
	p := a.createClusterPolicy(t, "p", reading("test", settingsOfProd, teamOfSettings))
	client := a.as(t, a.As("olga")).PolicyV1alpha1()
	labelled, err := client.ClusterPolicies().Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p = labelled.DeepCopy()
	p.Spec.Rules[0].Mutate.PatchesJSON6902 = `[{"op":"add","path":"/data/all","value":"{{ to_string(settings) }}"}]`
	_, err = client.ClusterPolicies().Update(t.Context(), p, metav1.UpdateOptions{})
	wantCauses(t, err, []string{"spec.rules[0].context[0].configMap"})
	p = labelled
	p.Spec.Rules[0].Context[0].ConfigMap.Name = "others"
	_, err = client.ClusterPolicies().Update(t.Context(), p, metav1.UpdateOptions{})
	wantCauses(t, err, []string{"spec.rules[0].context[0].configMap"})
	p.Spec.Rules[0].Context = nil
	p.Spec.Rules[0].Mutate.PatchesJSON6902 = "[]"
	if _, err = client.ClusterPolicies().Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	own := reading("team-a", "configMap: {name: settings}", teamOfSettings)
	own = strings.Replace(own, ", namespaces: [team-a]", "", 1)
	for namespace, allowed := range map[string]bool{"prod": true, "team-a": false} {
		_, err := a.as(t, a.As("nina")).PolicyV1alpha1().Policies(namespace).Create(t.Context(), namespacedPolicy(t, namespace, "p", own), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if allowed != (err == nil) || err != nil && !strings.Contains(err.Error(), `get configmaps "settings" in namespace "`+namespace+`"`) {
			t.Errorf("nina in %s: got error %v", namespace, err)
		}
	}
}

// testReadingCandidates: a preview reads with the right of its caller.
func testReadingCandidates(t *testing.T, a *api) {
	for _, test := range readingCases() {
		for _, author := range authorNames() {
			_, err := a.as(t, a.As(author)).PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{
				Request:  &v1alpha1.PreviewRequest{Object: raw(configMapOf(t, "test", "c", ""))},
				Policies: rulesOf(t, "p", test.spec),
			}}, metav1.CreateOptions{})
			if slices.Contains(test.allowed, author) {
				if err != nil {
					t.Errorf("%s by %s: %v", test.name, author, err)
				}
				continue
			}
			if want := `ClusterPolicy "p" reads it: ` + test.field; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s by %s: got error %v, want %s", test.name, author, err, want)
			}
		}
	}
}
