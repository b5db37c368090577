// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// formerObjects are those of files that were full when they were written.
func formerObjects() map[string]runtime.Object {
	cluster, namespaced := storedClusterPolicy(), storedNamespacedPolicy()
	cluster.Status.Autogen, namespaced.Status.Autogen = policy.AutogenStatus{}, policy.AutogenStatus{}
	return map[string]runtime.Object{"clusterpolicy.json": cluster, "policy.json": namespaced}
}

// storedClusterPolicy has every field, though validation refuses many of them beside each
// other: all are seen to be read.
func storedClusterPolicy() *policy.ClusterPolicy {
	return &policy.ClusterPolicy{ObjectMeta: storedMeta(), Spec: storedMutateSpec(), Status: storedPolicyStatus()}
}

func storedNamespacedPolicy() *policy.Policy {
	p := &policy.Policy{ObjectMeta: storedMeta(), Spec: storedMutateSpec(), Status: storedPolicyStatus()}
	p.Namespace = "team-a"
	return p
}

func storedPolicyStatus() policy.PolicyStatus {
	return policy.PolicyStatus{
		ObservedGeneration: 3,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 3,
			LastTransitionTime: storedTime(4), Reason: "InForce", Message: "every server enforces it",
		}},
		Autogen: policy.AutogenStatus{Rules: []kyvernov1.Rule{storedRule()}, Omitted: 2},
	}
}

func storedMutateSpec() kyvernov1.Spec {
	return kyvernov1.Spec{
		Rules:            []kyvernov1.Rule{storedRule()},
		ApplyRules:       ptr.To(kyvernov1.ApplyOne),
		FailurePolicy:    ptr.To(kyvernov1.Ignore),
		Admission:        ptr.To(true),
		Background:       ptr.To(true),
		EmitWarning:      ptr.To(true),
		SchemaValidation: ptr.To(true),
		WebhookConfiguration: &kyvernov1.WebhookConfiguration{
			FailurePolicy:   ptr.To(kyvernov1.Fail),
			TimeoutSeconds:  ptr.To[int32](5),
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "not-system", Expression: "!request.userInfo.username.startsWith('system:')"}},
		},
		WebhookTimeoutSeconds:            ptr.To[int32](7),
		MutateExistingOnPolicyUpdate:     true,
		ValidationFailureAction:          "Audit",
		ValidationFailureActionOverrides: []apiextensionsv1.JSON{*storedJSON(`{"action":"Enforce","namespaces":["a"]}`)},
		GenerateExisting:                 true,
		GenerateExistingOnPolicyUpdate:   ptr.To(true),
		UseServerSideApply:               true,
	}
}

func storedRule() kyvernov1.Rule {
	return kyvernov1.Rule{
		Name:                   "set-label",
		Context:                []kyvernov1.ContextEntry{storedContextEntry()},
		Match:                  storedRuleMatch(),
		Exclude:                ptr.To(storedRuleMatch()),
		Preconditions:          storedJSON(`{"all":[{"key":"{{ request.operation }}","operator":"Equals","value":"CREATE"}]}`),
		SkipBackgroundRequests: ptr.To(true),
		ReportProperties:       map[string]string{"team": "a"},
		Mutate: &kyvernov1.Mutation{
			PatchStrategicMerge: storedJSON(`{"metadata":{"labels":{"+(a)":"b"}}}`),
			PatchesJSON6902:     "- op: add\n  path: /metadata/labels/a\n  value: \"b\"\n",
			ForEach: []kyvernov1.ForEachMutation{{
				List:                "request.object.spec.containers",
				Order:               ptr.To(kyvernov1.Descending),
				Context:             []kyvernov1.ContextEntry{storedContextEntry()},
				Preconditions:       storedJSON(`{"any":[{"key":"{{ element.name }}","operator":"NotEquals","value":"a"}]}`),
				PatchStrategicMerge: storedJSON(`{"spec":{"containers":[{"(name)":"{{ element.name }}","tty":true}]}}`),
				PatchesJSON6902:     "[]",
				ForEach:             storedJSON(`[{"list":"element.env","patchesJson6902":"[]"}]`),
			}},
			Targets:                      []apiextensionsv1.JSON{*storedJSON(`{"apiVersion":"v1","kind":"Secret","name":"a"}`)},
			MutateExistingOnPolicyUpdate: ptr.To(true),
		},
		CELPreconditions: []apiextensionsv1.JSON{*storedJSON(`{"expression":"true","name":"a"}`)},
		ImageExtractors:  storedJSON(`{"Task":[{"path":"/spec/steps/*/image"}]}`),
		Validate:         storedJSON(`{"message":"m"}`),
		Generate:         storedJSON(`{"kind":"ConfigMap"}`),
		VerifyImages:     []apiextensionsv1.JSON{*storedJSON(`{"imageReferences":["*"]}`)},
	}
}

func storedContextEntry() kyvernov1.ContextEntry {
	return kyvernov1.ContextEntry{
		Name:      "settings",
		Variable:  &kyvernov1.Variable{Value: storedJSON(`{"a":1}`), JMESPath: "a", Default: storedJSON(`0`)},
		ConfigMap: &kyvernov1.ConfigMapReference{Name: "settings", Namespace: "team-a"},
		APICall: &kyvernov1.APICall{
			URLPath: "/api/v1/namespaces", Method: "POST", Data: []kyvernov1.RequestData{{Key: "spec", Value: storedJSON(`{"a":"b"}`)}},
			JMESPath: "items", Default: storedJSON(`[]`), Service: storedJSON(`{"url":"https://a.b/c"}`),
		},
		ImageRegistry:   storedJSON(`{"reference":"a.b/c:d"}`),
		GlobalReference: storedJSON(`{"name":"deployments"}`),
	}
}

func storedRuleMatch() kyvernov1.MatchResources {
	filter := kyvernov1.ResourceFilter{
		Roles:        []string{"team-a:editor"},
		ClusterRoles: []string{"cluster-admin"},
		Subjects:     []rbacv1.Subject{{Kind: "ServiceAccount", APIGroup: "rbac.authorization.k8s.io", Name: "deployer", Namespace: "team-a"}},
		Resources: kyvernov1.ResourceDescription{
			Kinds: []string{"apps/v1/Deployment"}, Name: "web", Names: []string{"web-*"}, Namespaces: []string{"team-?"},
			Annotations: map[string]string{"example.com/*": "*"}, Selector: storedSelector(), NamespaceSelector: storedSelector(),
			Operations: []kyvernov1.Operation{"CREATE"},
		},
	}
	return kyvernov1.MatchResources{Any: []kyvernov1.ResourceFilter{filter}, All: []kyvernov1.ResourceFilter{filter}, ResourceFilter: filter}
}

func storedJSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
