// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/value"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func mutateRule(name string) kyvernov1.Rule {
	rule := kyvernov1.Rule{Name: name, Mutate: &kyvernov1.Mutation{PatchesJSON6902: "[]"}}
	rule.Match.Any = []kyvernov1.ResourceFilter{{Resources: kyvernov1.ResourceDescription{Kinds: []string{"Pod"}}}}
	return rule
}

// clusterPolicyWith returns a valid policy with a number of rules.
func clusterPolicyWith(rules int) *policy.ClusterPolicy {
	p := &policy.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1, UID: "u", ResourceVersion: "1"}}
	for i := range rules {
		p.Spec.Rules = append(p.Spec.Rules, mutateRule(fmt.Sprintf("r%d", i)))
	}
	return p
}

func readyPolicyIn(namespace string) *policy.Policy {
	p := &policy.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Generation: 1}}
	p.Spec.Rules = []kyvernov1.Rule{mutateRule("r")}
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	return p
}

const wholeClusterPolicy = `{"kind":"ClusterPolicy","apiVersion":"policy.portcullis.dev/v1alpha1",` +
	`"metadata":{"name":"p","uid":"u","generation":3,"labels":{"a":"b"}},` +
	`"spec":{"rules":[{"name":"r","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"exclude":{"any":[{"clusterRoles":["admin"]}]},"mutate":{"patchesJson6902":"[]"}},` +
	`{"name":"s","match":{"any":[{"resources":{"kinds":["Secret"]}}]},"mutate":{"patchesJson6902":"[]"}}],"failurePolicy":"Ignore"},"status":{}}`

// TestSalvageClusterPolicy: what is not understood of a rule never makes the policy match
// less than it did, and nothing that is read changes an object.
func TestSalvageClusterPolicy(t *testing.T) {
	const (
		all, both = "all", "Pod-1 Secret-0" // kinds, with the number of filters that exclude
		webhook   = `"failurePolicy":"Ignore"`
	)
	tests := []struct{ name, stored, matches, failure string }{
		{"garbage", "\x00", all, "Fail"},
		{"an unknown version", change(wholeClusterPolicy, "v1alpha1", "v9"), both, "Ignore"},
		{"an unknown patch", change(wholeClusterPolicy, `{"patchesJson6902":"[]"}`, `7`), both, "Ignore"},
		{"a number in place of the rules", change(wholeClusterPolicy, `"rules":[`, `"rules":7,"r":[`), all, "Ignore"},
		{"a number in place of a rule", change(wholeClusterPolicy, `"rules":[`, `"rules":[7,`), all, "Ignore"},
		{"an unknown field in match", change(wholeClusterPolicy, `["Secret"]`, `["Secret"],"phase":"x"`, "v1alpha1", "v9"), all, "Ignore"},
		{"an unknown operation in match", change(wholeClusterPolicy, `["Secret"]`, `["Secret"],"operations":["WRITE"]`, "v1alpha1", "v9"), all, "Ignore"},
		{"a malformed kind", change(wholeClusterPolicy, `["Secret"]`, `["apps/Secret"]`, "v1alpha1", "v9"), all, "Ignore"},
		{"no match", change(wholeClusterPolicy, `"match":{"any":[{"resources":{"kinds":["Secret"]}}]},`, ``, "v1alpha1", "v9"), all, "Ignore"},
		{"two matches", change(wholeClusterPolicy, `"name":"s",`, `"name":"s","match":{"any":[{"resources":{"kinds":["Node"]}}]},`, `"a":"b"`, `"a":7`), all, "Ignore"},
		{"an unknown field in exclude", change(wholeClusterPolicy, `["admin"]`, `["admin"],"phase":"x"`, "v1alpha1", "v9"), "Pod-0 Secret-0", "Ignore"},
		{"cut in the rules", wholeClusterPolicy[:strings.Index(wholeClusterPolicy, `"Secret"`)], all, "Fail"},
		{"cut after the rules", wholeClusterPolicy[:strings.Index(wholeClusterPolicy, `,"failurePolicy"`)], both, "Fail"},
		{"an unknown failurePolicy", change(wholeClusterPolicy, `"Ignore"`, `"Never"`, "v1alpha1", "v9"), both, "Fail"},
		{"the failurePolicy of the webhook", change(wholeClusterPolicy, webhook, `"webhookConfiguration":{"failurePolicy":"Ignore"}`, "v1alpha1", "v9"), both, "Ignore"},
		{"the failurePolicy of the webhook wins", change(wholeClusterPolicy, webhook, webhook+`,"webhookConfiguration":{"failurePolicy":"Fail"}`, "v1alpha1", "v9"), both, "Fail"},
		{"an unknown failurePolicy of the webhook", change(wholeClusterPolicy, webhook, webhook+`,"webhookConfiguration":{"failurePolicy":7}`), both, "Fail"},
		{"a webhook without failurePolicy", change(wholeClusterPolicy, webhook, webhook+`,"webhookConfiguration":{"timeoutSeconds":"x"}`), both, "Ignore"},
		{"a number in place of the webhook", change(wholeClusterPolicy, webhook, webhook+`,"webhookConfiguration":7`), both, "Fail"},
	}
	s := newSalvager(t, clusterPolicies())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj, same := s.read(t, "p", test.stored)
			p, ok := obj.(*policy.ClusterPolicy)
			if !ok || same {
				t.Fatalf("got a %T, as it is stored: %t", obj, same)
			}
			matches, failure := all, "Fail"
			if len(p.Spec.Rules) > 0 {
				matches = matchesOf(p.Spec.Rules)
			}
			if p.Spec.FailurePolicy != nil {
				failure = string(*p.Spec.FailurePolicy)
			}
			if matches != test.matches || failure != test.failure {
				t.Errorf("matches %s with failurePolicy %s, want %s and %s", matches, failure, test.matches, test.failure)
			}
			for i := range p.Spec.Rules {
				if p.Spec.Rules[i].Mutate != nil {
					t.Errorf("rule %d changes something", i)
				}
			}
			if len(clusterPolicies().Validate(p)) == 0 || Damage(p) == nil {
				t.Error("what can be read of the object passes for an object")
			}
			ready := meta.FindStatusCondition(p.Status.Conditions, "Ready")
			if ready == nil || ready.Status != metav1.ConditionFalse || !strings.HasSuffix(ready.Message, "failurePolicy "+test.failure) {
				t.Errorf("condition Ready is %+v", ready)
			}
		})
	}
}

func matchesOf(rules []kyvernov1.Rule) string {
	var texts []string
	for i := range rules {
		excluded := 0
		if rules[i].Exclude != nil {
			excluded = len(rules[i].Exclude.Any)
		}
		texts = append(texts, fmt.Sprintf("%s-%d", rules[i].Match.Any[0].Resources.Kinds[0], excluded))
	}
	return strings.Join(texts, " ")
}

// TestSalvageNamespacedPolicy: the key says in which namespace a Policy is, whatever the
// object says.
func TestSalvageNamespacedPolicy(t *testing.T) {
	s := newSalvager(t, policies())
	stored := change(wholeClusterPolicy, `"ClusterPolicy"`, `"Policy"`, `"name":"p"`, `"name":"p","namespace":"n"`)
	for _, test := range []struct{ key, stored, matches string }{
		{"n/p", change(stored, "v1alpha1", "v9"), "Pod-1 Secret-0"},
		{"m/p", stored, "Pod-1 Secret-0"},
		{"n/p", change(stored, `["Secret"]`, `["Secret"],"namespaces":["m"]`, "v1alpha1", "v9"), ""},
	} {
		name := strings.Split(test.key, "/")
		data, _, err := s.TransformFromStorage(t.Context(), []byte(test.stored), value.DefaultContext(s.root+test.key))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := runtime.Decode(s.codec, data)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := obj.(*policy.Policy)
		if !ok || Damage(p) == nil || p.Namespace != name[0] || p.Name != name[1] || matchesOf(p.Spec.Rules) != test.matches {
			t.Errorf("%s is read as %+v", test.key, obj)
		}
	}
}

// TestCompiles: the language of a policy is asked about what is valid, and about a change
// only when the spec has changed.
func TestCompiles(t *testing.T) {
	kind := clusterPolicies()
	asked := 0
	kind.Compiles = func(_ context.Context, obj runtime.Object) field.ErrorList {
		asked++
		if p, ok := obj.(*policy.ClusterPolicy); !ok || len(p.Spec.Rules) == 1 {
			return nil
		}
		return field.ErrorList{field.Invalid(field.NewPath("spec", "rules").Index(1), "", "does not compile")}
	}
	authorized := 0
	kind.Authorize = func(context.Context, runtime.Object, runtime.Object) field.ErrorList { authorized++; return nil }
	writes := strategy{kind: kind}
	labelled, controllers := clusterPolicyWith(2), clusterPolicyWith(2)
	labelled.Labels = map[string]string{"a": "b"}
	controllers.Annotations = map[string]string{kyvernov1.AutogenControllersAnnotation: ""}
	for _, test := range []struct {
		name                     string
		write                    func() field.ErrorList
		asked, authorized, fault int
	}{
		{"create", func() field.ErrorList { return writes.Validate(t.Context(), clusterPolicyWith(1)) }, 1, 1, 0},
		{"create with a fault", func() field.ErrorList { return writes.Validate(t.Context(), clusterPolicyWith(2)) }, 1, 0, 1},
		{"create what is not valid", func() field.ErrorList { return writes.Validate(t.Context(), clusterPolicyWith(0)) }, 0, 0, 1},
		{"update", func() field.ErrorList {
			return writes.ValidateUpdate(t.Context(), clusterPolicyWith(1), clusterPolicyWith(2))
		}, 1, 1, 0},
		{"update with a fault", func() field.ErrorList {
			return writes.ValidateUpdate(t.Context(), clusterPolicyWith(2), clusterPolicyWith(1))
		}, 1, 0, 1},
		{"update of the metadata", func() field.ErrorList { return writes.ValidateUpdate(t.Context(), labelled, clusterPolicyWith(2)) }, 0, 1, 0},
		{"update of the controllers", func() field.ErrorList {
			return writes.ValidateUpdate(t.Context(), controllers, clusterPolicyWith(2))
		}, 1, 0, 1},
	} {
		asked, authorized = 0, 0
		if errs := test.write(); len(errs) != test.fault || asked != test.asked || authorized != test.authorized {
			t.Errorf("%s: %v, compiled %d times and authorized %d times; want %d faults, %d and %d", test.name, errs, asked, authorized, test.fault, test.asked, test.authorized)
		}
	}
}

// TestControllersAreAWish: which controllers rules are made for is what the user wants, as
// the spec is; other annotations are not.
func TestControllersAreAWish(t *testing.T) {
	with := func(annotations map[string]string) *policy.ClusterPolicy {
		p := clusterPolicyWith(1)
		p.Generation, p.Annotations = 3, annotations
		return p
	}
	const controllers = kyvernov1.AutogenControllersAnnotation
	for _, test := range []struct {
		name     string
		obj, old map[string]string
		want     int64
	}{
		{"given", map[string]string{controllers: ""}, nil, 4},
		{"taken away", nil, map[string]string{controllers: ""}, 4},
		{"another", map[string]string{controllers: "none"}, map[string]string{controllers: "Job"}, 4},
		{"the same", map[string]string{controllers: "none", "a": "b"}, map[string]string{controllers: "none"}, 3},
		{"another annotation", map[string]string{"a": "b"}, nil, 3},
	} {
		obj := with(test.obj)
		strategy{kind: clusterPolicies()}.PrepareForUpdate(t.Context(), obj, with(test.old))
		if obj.Generation != test.want {
			t.Errorf("%s: generation %d, want %d", test.name, obj.Generation, test.want)
		}
	}
}
