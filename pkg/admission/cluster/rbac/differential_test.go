// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// world is a cluster of RBAC objects that answers by walking them all.
type world struct {
	ClusterRoles        map[string]*rbacv1.ClusterRole
	Roles               map[string]*rbacv1.Role // by namespace/name
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	RoleBindings        []rbacv1.RoleBinding
}

// TestAgainstWalk compares the index with a walk over generated objects, whose
// few names collide on purpose. The walk knows rules in their plainest form only;
// the rest is in TestAnswers.
func TestAgainstWalk(t *testing.T) {
	allowed := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(random)
		evaluator, another := rbac.New(w.source(t)), rbac.New(w.source(t))
		for range 60 {
			asked := authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: pick(random, users), Groups: some(random, groups)},
				Verb: pick(random, verbs), Resource: pick(random, resources), Namespace: pick(random, namespaces), ResourceRequest: true,
			}
			want := w.allows(asked)
			decision, reason, err := evaluator.Authorize(t.Context(), asked)
			if got := decision == authorizer.DecisionAllow; got != want || err != nil {
				t.Fatalf("seed %d: got %v, %q, %v, want allowed %t: %+v", seed, decision, reason, err, want, asked)
			}
			again, sameReason, _ := another.Authorize(t.Context(), asked)
			if again != decision || sameReason != reason {
				t.Fatalf("seed %d: got %v, %q, and then %v, %q", seed, decision, reason, again, sameReason)
			}
			if want {
				allowed++
			}
		}
	}
	if allowed < 2_000 || allowed > 16_000 {
		t.Errorf("got %d of 18,000 allowed: the questions show little", allowed)
	}
}

var (
	users      = []string{"a", "b", "system:serviceaccount:x:a", "system:serviceaccount:y:a", "g"}
	groups     = []string{"a", "g", "h"}
	verbs      = []string{"get", "list", "delete"}
	resources  = []string{"pods", "secrets", "nodes"}
	namespaces = []string{"", "x", "y"}
	roleNames  = []string{"r0", "r1", "r2", "r3", "r4"}
)

func pick(random *rand.Rand, from []string) string { return from[random.IntN(len(from))] }

func some(random *rand.Rand, from []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(string) bool { return random.IntN(2) == 0 })
}

func newWorld(random *rand.Rand) *world {
	w := &world{ClusterRoles: map[string]*rbacv1.ClusterRole{}, Roles: map[string]*rbacv1.Role{}}
	rules := func() []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: some(random, resources), Verbs: some(random, verbs)}}
	}
	for _, name := range roleNames {
		if random.IntN(5) == 0 {
			continue // missing
		}
		made := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": pick(random, verbs)}}}
		if random.IntN(3) == 0 {
			made.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"l": pick(random, verbs)}}}}
		} else {
			made.Rules = rules()
		}
		w.ClusterRoles[name] = made
	}
	for range 4 {
		made := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: pick(random, namespaces[1:]), Name: pick(random, roleNames)}, Rules: rules()}
		w.Roles[made.Namespace+"/"+made.Name] = made
	}
	subjects := func() (made []rbacv1.Subject) {
		for range 1 + random.IntN(3) {
			made = append(made, rbacv1.Subject{Kind: pick(random, []string{"User", "Group", "ServiceAccount", "Other"}), Name: pick(random, users), Namespace: pick(random, namespaces)})
		}
		return made
	}
	for i := range 3 {
		w.ClusterRoleBindings = append(w.ClusterRoleBindings, rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Subjects: subjects(), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: pick(random, roleNames)},
		})
	}
	for i := range 6 {
		w.RoleBindings = append(w.RoleBindings, rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pick(random, namespaces[1:]), Name: fmt.Sprint(i)}, Subjects: subjects(),
			RoleRef: rbacv1.RoleRef{Kind: pick(random, []string{"ClusterRole", "Role"}), Name: pick(random, roleNames)},
		})
	}
	return w
}

func (w *world) source(t *testing.T) source {
	t.Helper()
	s := source{}
	add := func(kind string, obj any) {
		data, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := json.Unmarshal(data, &content); err != nil {
			t.Fatal(err)
		}
		s[kind] = append(s[kind], &unstructured.Unstructured{Object: content})
	}
	for _, name := range slices.Sorted(maps.Keys(w.ClusterRoles)) {
		add("ClusterRole", w.ClusterRoles[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		add("Role", w.Roles[name])
	}
	for i := range w.ClusterRoleBindings {
		add("ClusterRoleBinding", w.ClusterRoleBindings[i])
	}
	for i := range w.RoleBindings {
		add("RoleBinding", w.RoleBindings[i])
	}
	return s
}

func (w *world) allows(asked authorizer.AttributesRecord) bool {
	for _, b := range w.ClusterRoleBindings {
		if isSubject(asked.User, b.Subjects, "") && w.clusterRoleAllows(b.RoleRef.Name, asked, nil) {
			return true
		}
	}
	for _, b := range w.RoleBindings {
		if b.Namespace != asked.Namespace || !isSubject(asked.User, b.Subjects, b.Namespace) {
			continue
		}
		if b.RoleRef.Kind == "ClusterRole" && w.clusterRoleAllows(b.RoleRef.Name, asked, nil) {
			return true
		}
		if found := w.Roles[b.Namespace+"/"+b.RoleRef.Name]; b.RoleRef.Kind == "Role" && found != nil && rulesAllow(found.Rules, asked) {
			return true
		}
	}
	return false
}

func (w *world) clusterRoleAllows(name string, asked authorizer.AttributesRecord, path []string) bool {
	found := w.ClusterRoles[name]
	if found == nil || slices.Contains(path, name) {
		return false
	}
	if found.AggregationRule == nil {
		return rulesAllow(found.Rules, asked)
	}
	for other := range w.ClusterRoles {
		selected := labels.SelectorFromSet(found.AggregationRule.ClusterRoleSelectors[0].MatchLabels).Matches(labels.Set(w.ClusterRoles[other].Labels))
		if selected && w.clusterRoleAllows(other, asked, append(slices.Clone(path), name)) {
			return true
		}
	}
	return false
}

func isSubject(who user.Info, subjects []rbacv1.Subject, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case "User":
			return s.Name == who.GetName()
		case "Group":
			return slices.Contains(who.GetGroups(), s.Name)
		case "ServiceAccount":
			if s.Namespace != "" {
				namespace = s.Namespace
			}
			rest, found := strings.CutPrefix(who.GetName(), "system:serviceaccount:")
			return found && namespace != "" && rest == namespace+":"+s.Name
		default:
			return false
		}
	})
}

func rulesAllow(rules []rbacv1.PolicyRule, asked authorizer.AttributesRecord) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, asked.Verb) && slices.Contains(r.Resources, asked.Resource)
	})
}
