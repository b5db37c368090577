// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// idle is a policy about nothing, with the defaults of what is applied as a whole.
const idle = `{matchConstraints: {matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, resourceRules: [{apiGroups: [nowhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings], scope: '*'}]}, validations: [{expression: 'true'}]}`

// kubectl runs kubectl as p and returns what it says, and whether it failed.
func kubectl(t *testing.T, p *person, input string, args ...string) (string, error) {
	t.Helper()
	command := shared.Kubectl(t.Context(), p.kubeconfig, args...)
	command.Stdin = strings.NewReader(input)
	said, err := command.CombinedOutput()
	return string(said), err
}

// manifestOf is a policy about nothing and a binding of it, with a label.
func manifestOf(name, label string) string {
	meta := `metadata: {name: ` + name + `, labels: {kubectl: ` + label + `}}`
	return `{apiVersion: policy.portcullis.dev/v1alpha1, kind: ValidatingAdmissionPolicyBinding, ` + meta + `, spec: {policyName: ` + name + `, validationActions: [Deny]}}
---
{apiVersion: policy.portcullis.dev/v1alpha1, kind: ValidatingAdmissionPolicy, ` + meta + `, spec: ` + idle + `}
`
}

// TestKubectl: what users do with kubectl works through the aggregator.
func TestKubectl(t *testing.T) {
	const name = "kubectl.example.com"
	t.Cleanup(func() {
		for _, kind := range []string{"pvap", "pvapb"} {
			_ = shared.Kubectl(context.WithoutCancel(t.Context()), admin.kubeconfig, "delete", kind, "-l", "kubectl").Run()
		}
	})
	manifest := manifestOf(name, "one")
	steps := []struct {
		input string
		args  string
		want  []string
		fails bool
	}{
		{manifest, "apply --server-side -f -", []string{"validatingadmissionpolicy.policy.portcullis.dev/" + name + " serverside-applied", "validatingadmissionpolicybinding.policy.portcullis.dev/" + name + " serverside-applied"}, false},
		{"", "wait --for=condition=Ready --timeout=30s pvap/" + name, []string{"condition met"}, false},
		{"", "wait --for=condition=TypeChecked --timeout=30s pvap/" + name, []string{"condition met"}, false},
		{manifest, "diff --server-side -f -", nil, false}, // nobody has anything left to write
		{"", "get portcullis -l kubectl -o name", []string{"validatingadmissionpolicy.policy.portcullis.dev/" + name, "validatingadmissionpolicybinding.policy.portcullis.dev/" + name}, false},
		{"", "get pvap " + name, []string{"NAME", "VALIDATIONS", "PARAMKIND", "AGE", name}, false},
		{"", "get pvapb -l kubectl -o wide", []string{"NAME", "POLICYNAME", "PARAMREF", "AGE", name}, false},
		{"", "get validatingadmissionpolicies.policy.portcullis.dev " + name + " -o jsonpath={.spec.failurePolicy}", []string{"Fail"}, false},
		{"", "get validatingadmissionpolicy " + name, []string{`validatingadmissionpolicies.admissionregistration.k8s.io "` + name + `" not found`}, true},
		{"", "describe pvap " + name, []string{"Name:         " + name, "API Version:  policy.portcullis.dev/v1alpha1"}, false},
		{"", "label pvap " + name + " a=b", []string{"labeled"}, false},
		{"", "annotate pvapb " + name + " a=b", []string{"annotated"}, false},
		{"", "patch pvap " + name + ` --type=merge -p {"spec":{"failurePolicy":"Ignore"}}`, []string{"patched"}, false},
		{"", "get pvap " + name + " -o jsonpath={.spec.failurePolicy},{.metadata.generation}", []string{"Ignore,2"}, false},
		{manifest, "apply --server-side -f -", []string{"serverside-applied"}, false},
		{strings.Replace(manifest, "expression: 'true'", "expression: '1'", 1), "apply --server-side -f -", []string{"is invalid: spec.validations[0].expression: Invalid value", "must evaluate to bool"}, true},
		{strings.Replace(manifest, "validations:", "validation:", 1), "apply -f -", []string{`unknown field "spec.validation"`}, true},
		{manifestOf("kubectl-2.example.com", "two"), "create -f -", []string{"created"}, false},
		{"", "get pvap --chunk-size=1 -l kubectl -o name", []string{name, "kubectl-2.example.com"}, false},
		{"", "get pvap --field-selector metadata.name=" + name + " -o name", []string{name}, false},
		{"", "api-resources --api-group=policy.portcullis.dev", []string{"admissionpreviews", "pvap ", "pvapb", "mutations", "validations", "policy.portcullis.dev/v1alpha1"}, false},
		{"", "get --raw /apis/policy.portcullis.dev/v1alpha1", []string{`"kind":"APIResourceList"`, `"kind":"AdmissionReview"`}, false},
		{"", "auth whoami", []string{"admin", "[system:masters system:authenticated]"}, false},
		{"", "auth can-i delete pvap", []string{"yes"}, false},
		{"", "auth can-i create admissionpreviews.policy.portcullis.dev --as=nobody", []string{"no"}, true},
		{"", "delete pvap,pvapb -l kubectl=two", []string{`"kubectl-2.example.com" deleted`}, false},
		{"", "get pvap -l kubectl -o name", []string{name}, false},
		{"", "delete pvap,pvapb " + name, []string{"deleted"}, false},
	}
	for _, step := range steps {
		said, err := kubectl(t, admin, step.input, strings.Fields(step.args)...)
		if (err != nil) != step.fails {
			t.Errorf("kubectl %s: %v\n%s", step.args, err, said)
		}
		for _, part := range step.want {
			if !strings.Contains(said, part) {
				t.Errorf("kubectl %s: got\n%s\nwant %s", step.args, said, part)
			}
		}
	}
}

// TestApplyChangesNothing: what is applied again as it is stays as it is.
func TestApplyChangesNothing(t *testing.T) {
	const name = "apply.example.com"
	policies := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicies()
	manifest := manifestOf(name, "apply")
	t.Cleanup(func() {
		_ = shared.Kubectl(context.WithoutCancel(t.Context()), admin.kubeconfig, "delete", "pvap,pvapb", name).Run()
	})
	for _, args := range []string{"apply --server-side -f -", "apply --server-side -f -", "apply --server-side --field-manager=other -f -"} {
		if said, err := kubectl(t, admin, manifest, strings.Fields(args)...); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", args, err, said)
		}
		waitReady(t, name)
	}
	got, err := policies.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var managers []string
	for _, field := range got.ManagedFields {
		if field.Subresource == "" {
			managers = append(managers, field.Manager)
		}
	}
	if slices.Sort(managers); got.Generation != 1 || !slices.Equal(managers, []string{"kubectl", "other"}) {
		t.Errorf("got generation %d and the managers %v", got.Generation, managers)
	}
	said, err := kubectl(t, admin, strings.ReplaceAll(manifest, "'true'", "'false'"), "apply", "--server-side", "--field-manager=third", "-f", "-")
	if err == nil || !strings.Contains(said, `conflicts with "kubectl"`) && !strings.Contains(said, "conflict") {
		t.Errorf("another manager took the fields over: %v\n%s", err, said)
	}
}

// TestWatchThroughAggregator: watches tell of what was there, of what happens, and of
// how far they are.
func TestWatchThroughAggregator(t *testing.T) {
	policies := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicies()
	first := newPolicy(t, "watch-1.example.com", idle)
	first.Labels = map[string]string{"watch": "yes"}
	storePolicy(t, first)
	initial := true
	stream, err := policies.Watch(t.Context(), metav1.ListOptions{
		LabelSelector: "watch=yes", AllowWatchBookmarks: true, SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	next := func() (watch.EventType, *v1alpha1.ValidatingAdmissionPolicy) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		select {
		case event := <-stream.ResultChan():
			policy, ok := event.Object.(*v1alpha1.ValidatingAdmissionPolicy)
			if !ok {
				t.Fatalf("got %s %T", event.Type, event.Object)
			}
			return event.Type, policy
		case <-ctx.Done():
			t.Fatal("nothing happens")
			return "", nil
		}
	}
	until := func(wanted watch.EventType, seen func(*v1alpha1.ValidatingAdmissionPolicy) bool) {
		t.Helper()
		for {
			happened, policy := next()
			if happened == wanted && seen(policy) {
				return
			}
			if happened != watch.Modified && happened != watch.Bookmark { // conditions are written
				t.Fatalf("got %s of %q, want %s", happened, policy.Name, wanted)
			}
		}
	}
	named := func(name string) func(*v1alpha1.ValidatingAdmissionPolicy) bool {
		return func(p *v1alpha1.ValidatingAdmissionPolicy) bool { return p.Name == name }
	}
	until(watch.Added, named("watch-1.example.com"))
	until(watch.Bookmark, func(p *v1alpha1.ValidatingAdmissionPolicy) bool {
		return p.Annotations[metav1.InitialEventsAnnotationKey] == "true" && p.ResourceVersion != ""
	})
	second := newPolicy(t, "watch-2.example.com", idle)
	second.Labels = map[string]string{"watch": "yes"}
	storePolicy(t, second)
	until(watch.Added, named(second.Name))
	if _, err := policies.Patch(t.Context(), second.Name, types.MergePatchType, []byte(`{"spec": {"failurePolicy": "Ignore"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(watch.Modified, func(p *v1alpha1.ValidatingAdmissionPolicy) bool { return p.Name == second.Name && p.Generation == 2 })
	if err := policies.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "watch=yes", FieldSelector: "metadata.name=" + second.Name}); err != nil {
		t.Fatal(err)
	}
	until(watch.Deleted, named(second.Name))
	left, err := policies.List(t.Context(), metav1.ListOptions{LabelSelector: "watch=yes"})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != first.Name {
		t.Errorf("got %v, %v, want only %s", left, err, first.Name)
	}
}

// TestPages: a long list comes in pages that belong together, whatever happens
// meanwhile.
func TestPages(t *testing.T) {
	bindings := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings()
	for i := range 7 {
		binding := newBinding(t, fmt.Sprintf("pages-%d.example.com", i), `{}`)
		binding.Labels = map[string]string{"pages": "yes"}
		storeBinding(t, binding)
	}
	options := metav1.ListOptions{LabelSelector: "pages=yes", Limit: 3}
	var names, versions []string
	for {
		page, err := bindings.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		versions = append(versions, page.ResourceVersion)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
		if err := bindings.Delete(t.Context(), "pages-6.example.com", metav1.DeleteOptions{}); err != nil && len(versions) == 1 {
			t.Fatal(err)
		}
	}
	if len(names) != 7 || !slices.IsSorted(names) || len(versions) != 3 || versions[0] != versions[2] {
		t.Errorf("got %v in pages of the versions %v", names, versions)
	}
}

// TestRolesOfManifests: the roles that are installed give what their names say.
func TestRolesOfManifests(t *testing.T) {
	const name = "roles.example.com"
	group := oursVersion.Group
	may := map[string][]string{
		"viewer":    {"get pvap", "list pvap", "watch pvapb"},
		"previewer": {"create admissionpreviews." + group},
		"editor":    {"get pvap", "list pvap", "watch pvapb", "create pvap", "update pvapb", "patch pvap", "delete pvap", "deletecollection pvapb", "create admissionpreviews." + group},
	}
	questions := append(slices.Clone(may["editor"]), "create validations."+group, "create mutations."+group, "update pvap --subresource=status", "get secrets")
	for role, allowed := range may {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "roles-" + role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: role}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "portcullis:" + role},
		}
		if _, err := admin.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ignoreAbsence(t, admin.kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{}))
		})
		p := user(t, role)
		for _, question := range questions {
			wanted := map[bool]string{true: "yes", false: "no"}[slices.Contains(allowed, question)]
			eventually(t, role+": "+question, func(context.Context) error {
				said, _ := kubectl(t, p, "", append([]string{"auth", "can-i"}, strings.Fields(question)...)...)
				if lines := strings.Split(strings.TrimSpace(said), "\n"); lines[len(lines)-1] != wanted {
					return errors.New(said)
				}
				return nil
			})
		}
	}
	editor, viewer := user(t, "editor"), user(t, "viewer")
	waitMay(t, editor, &authorizationv1.ResourceAttributes{Verb: "create", Group: group, Resource: "validatingadmissionpolicies"})
	if said, err := kubectl(t, editor, manifestOf(name, "roles"), "apply", "-f", "-"); err != nil {
		t.Errorf("editor: %v\n%s", err, said)
	}
	if said, err := kubectl(t, viewer, "", "get", "portcullis"); err != nil || !strings.Contains(said, name) {
		t.Errorf("viewer: %v\n%s", err, said)
	}
	const refusal = `validatingadmissionpolicies.policy.portcullis.dev "` + name + `" is forbidden: User "viewer" cannot delete resource "validatingadmissionpolicies" in API group "policy.portcullis.dev" at the cluster scope`
	if said, err := kubectl(t, viewer, "", "delete", "pvap", name); err == nil || !strings.Contains(said, refusal) {
		t.Errorf("viewer: got %v\n%s\nwant %s", err, said, refusal)
	}
	if said, err := kubectl(t, editor, "", "delete", "pvap,pvapb", name); err != nil {
		t.Errorf("editor: %v\n%s", err, said)
	}
}
