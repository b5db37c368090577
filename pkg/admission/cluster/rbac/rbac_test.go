// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// source has objects by kind, in order.
type source map[string][]*unstructured.Unstructured

func (s source) Objects(_ context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	return s[selection.Kind.Kind], nil
}

func sourceOf(t testing.TB, text string) source {
	t.Helper()
	objects, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := source{}
	for _, obj := range objects {
		s[obj.GetKind()] = append(s[obj.GetKind()], obj)
	}
	return s
}

func clusterRole(name, more string) string {
	return fmt.Sprintf("---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, %s}\n", name, more)
}

func clusterRoleBinding(name, role, subject string) string {
	return fmt.Sprintf("---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s}, roleRef: {kind: ClusterRole, name: %s}, subjects: [{kind: User, name: %s}]}\n", name, role, subject)
}

func roleBinding(namespace, name, more string) string {
	return fmt.Sprintf("---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s, namespace: %q}, %s}\n", name, namespace, more)
}

const getPods = "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"

// mayGetPods asks for a user in the namespace blue.
func mayGetPods(name string, groups ...string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name, Groups: groups}, Verb: "get", Resource: "pods", Namespace: "blue", ResourceRequest: true,
	}
}

func TestMasters(t *testing.T) {
	for _, objects := range []rbac.Source{source{}, failing{}} {
		decision, reason, err := rbac.New(objects).Authorize(t.Context(), mayGetPods("x", "a", "system:masters"))
		if decision != authorizer.DecisionAllow || reason != "" || err != nil {
			t.Errorf("got %v, %q, %v, want system:masters allowed without a reason", decision, reason, err)
		}
	}
}

func TestNobody(t *testing.T) {
	evaluator := rbac.New(sourceOf(t, clusterRole("r", getPods)+clusterRoleBinding("b", "r", "''")))
	decision, _, err := evaluator.Authorize(t.Context(), authorizer.AttributesRecord{Verb: "get", Resource: "pods", ResourceRequest: true})
	if decision != authorizer.DecisionNoOpinion || err == nil {
		t.Errorf("got %v, %v, want an error for a question without a user", decision, err)
	}
}

func TestConditions(t *testing.T) {
	evaluator := rbac.New(sourceOf(t, clusterRole("r", getPods)+clusterRoleBinding("b", "r", "u")))
	if got := evaluator.ConditionsAwareAuthorize(t.Context(), mayGetPods("u")); !got.IsAllow() || got.Reason() != `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "u"` {
		t.Errorf("got %v, want allow", got)
	}
	if got := evaluator.ConditionsAwareAuthorize(t.Context(), mayGetPods("v")); !got.IsNoOpinion() {
		t.Errorf("got %v, want no opinion", got)
	}
	decision, _, err := evaluator.EvaluateConditions(t.Context(), authorizer.ConditionsAwareDecision{}, nil)
	if decision != authorizer.DecisionDeny || !errors.Is(err, authorizer.ErrorConditionEvaluationNotSupported) {
		t.Errorf("got %v, %v, want a denial", decision, err)
	}
}

// TestUnreadable has objects that no API server would have stored. They never
// allow, and never pass for objects that do not exist.
func TestUnreadable(t *testing.T) {
	sound := clusterRole("r", getPods) + clusterRoleBinding("b", "r", "u")
	tests := []struct {
		name    string
		objects string
		// Whether u, who may get pods without these objects, v and w may.
		want [3]authorizer.Decision
		// What the errors of those without leave begin with; empty for no error.
		wantErr [3]string
	}{
		{
			name:    "binding of the cluster",
			objects: sound + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: r}, subjects: v}",
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
			wantErr: [3]string{"", `RBAC: ClusterRoleBinding "x" cannot be read: `, `RBAC: ClusterRoleBinding "x" cannot be read: `},
		},
		{
			name:    "binding in the namespace",
			objects: sound + roleBinding("blue", "x", "roleRef: [r]"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
			wantErr: [3]string{"", `RBAC: RoleBinding "blue/x" cannot be read: `, `RBAC: RoleBinding "blue/x" cannot be read: `},
		},
		{
			name:    "binding in another namespace",
			objects: sound + roleBinding("green", "x", "roleRef: [r]"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
		},
		{
			name:    "binding in no namespace",
			objects: sound + roleBinding("", "x", "roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: v}]"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
		},
		{
			name:    "role of v",
			objects: sound + clusterRole("x", "rules: [{apiGroups: [''], resources: pods, verbs: [get]}]") + clusterRoleBinding("x", "x", "v"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
			wantErr: [3]string{"", `RBAC: ClusterRole "x" cannot be read: `},
		},
		{
			name: "role that v's aggregates",
			objects: sound + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x, labels: {a: b}}, rules: {}}\n" +
				clusterRole("z", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}") + clusterRoleBinding("z", "z", "v"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
			wantErr: [3]string{"", `RBAC: ClusterRole "x" cannot be read: `},
		},
		{
			name:    "role of v with an unusable selector",
			objects: sound + clusterRole("x", "aggregationRule: {clusterRoleSelectors: [{}, {matchExpressions: [{key: a, operator: Equals}]}]}") + clusterRoleBinding("x", "x", "v"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
			wantErr: [3]string{"", `RBAC: ClusterRole "x" cannot be aggregated: aggregationRule.clusterRoleSelectors[1]: `},
		},
		{
			name: "unknown kinds",
			objects: sound + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}, roleRef: {kind: Robe, name: r}, subjects: [{kind: User, name: w}]}\n" +
				"---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: z}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: Use, name: v}, {kind: ServiceAccount, name: v}, {name: v}]}",
			want: [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
		},
		{
			name:    "an empty selector selects all",
			objects: sound + clusterRole("x", "aggregationRule: {clusterRoleSelectors: [{}]}") + clusterRoleBinding("x", "x", "v"),
			want:    [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionAllow, authorizer.DecisionNoOpinion},
		},
		{
			name: "roles that aggregate only each other",
			objects: sound + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x, labels: {a: x}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: z}}]}, " + getPods + "}\n" +
				"---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: z, labels: {a: z}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: x}}]}, " + getPods + "}\n" +
				clusterRoleBinding("x", "x", "v") + clusterRoleBinding("z", "z", "w"),
			want: [3]authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			evaluator := rbac.New(sourceOf(t, test.objects))
			for i, name := range []string{"u", "v", "w"} {
				decision, reason, err := evaluator.Authorize(t.Context(), mayGetPods(name))
				if decision != test.want[i] {
					t.Errorf("%s: got %v, %q, %v, want %v", name, decision, reason, err, test.want[i])
				}
				if got := fmt.Sprint(err); (err == nil) != (test.wantErr[i] == "") || err != nil && !strings.HasPrefix(got, test.wantErr[i]) {
					t.Errorf("%s: got error %v, want %s", name, err, test.wantErr[i])
				}
				if unanswered := (*cluster.UnansweredError)(nil); err != nil && !errors.As(err, &unanswered) {
					t.Errorf("%s: got %T, want a cluster.UnansweredError", name, err)
				}
			}
		})
	}
}

// failing is a source that cannot be read until it is told that it can.
type failing struct{ works *atomic.Bool }

func (f failing) Objects(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	if f.works == nil || !f.works.Load() {
		return nil, errors.New("out of reach")
	}
	return nil, nil
}

func TestSourceFails(t *testing.T) {
	objects := failing{works: &atomic.Bool{}}
	evaluator := rbac.New(objects)
	decision, _, err := evaluator.Authorize(t.Context(), mayGetPods("u"))
	if want := "RBAC: Roles cannot be read: out of reach"; decision != authorizer.DecisionNoOpinion || err == nil || err.Error() != want {
		t.Errorf("got %v, %v, want no opinion, %s", decision, err, want)
	}
	if unanswered := (*cluster.UnansweredError)(nil); !errors.As(err, &unanswered) {
		t.Errorf("got %T, want a cluster.UnansweredError", err)
	}
	objects.works.Store(true)
	if decision, _, err = evaluator.Authorize(t.Context(), mayGetPods("u")); decision != authorizer.DecisionNoOpinion || err != nil {
		t.Errorf("got %v, %v, want no opinion and no error: that the source failed must not be kept", decision, err)
	}
}

// TestReasonIsBounded has more missing roles than a reason names.
func TestReasonIsBounded(t *testing.T) {
	var text strings.Builder
	for i := range 150 {
		text.WriteString(clusterRoleBinding(fmt.Sprintf("b%03d", i), fmt.Sprintf("r%03d", i), "u"))
		text.WriteString(clusterRoleBinding(fmt.Sprintf("c%03d", i), fmt.Sprintf("r%03d", i), "u"))
	}
	_, reason, err := rbac.New(sourceOf(t, text.String())).Authorize(t.Context(), mayGetPods("u"))
	if err != nil || strings.Count(reason, " not found") != 100 || !strings.HasSuffix(reason, `"r099" not found, and 50 more missing roles]`) {
		t.Errorf("got %q, %v, want 100 missing roles and a count of the others", reason, err)
	}
}

// counting counts how often it is read.
type counting struct {
	source
	reads atomic.Int32
}

func (c *counting) Objects(ctx context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	c.reads.Add(1)
	return c.source.Objects(ctx, selection)
}

func TestConcurrentQuestions(t *testing.T) {
	objects := &counting{source: sourceOf(t, clusterRole("r", getPods)+
		clusterRole("x", "aggregationRule: {clusterRoleSelectors: [{}]}")+clusterRoleBinding("b", "x", "u"))}
	evaluator := rbac.New(objects)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				if decision, reason, err := evaluator.Authorize(t.Context(), mayGetPods("u")); decision != authorizer.DecisionAllow || err != nil {
					t.Errorf("got %v, %q, %v, want allow", decision, reason, err)
				}
				if decision, _, err := evaluator.Authorize(t.Context(), mayGetPods("v")); decision != authorizer.DecisionNoOpinion || err != nil {
					t.Errorf("got %v, %v, want no opinion", decision, err)
				}
			}
		})
	}
	all.Wait()
	if got := objects.reads.Load(); got != 4 {
		t.Errorf("got %d reads, want one of each kind", got)
	}
}
