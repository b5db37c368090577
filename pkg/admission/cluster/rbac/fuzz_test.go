// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// FuzzAuthorize asks questions about any objects at all: whatever their content,
// there is an answer, it is always the same, and nobody is allowed anything
// where there is no binding or no role.
func FuzzAuthorize(f *testing.F) {
	f.Add(`{"kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods","*/log"],"resourceNames":["p"],"verbs":["get","*"]},{"nonResourceURLs":["/a/*"],"verbs":["get"]}]}
{"kind":"ClusterRoleBinding","metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"}]}`,
		"u", "g", "get", "n", "pods", "log", "p")
	f.Add(`{"kind":"Role","metadata":{"name":"r","namespace":"n"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}
{"kind":"RoleBinding","metadata":{"name":"b","namespace":"n"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"ServiceAccount","name":"s"}]}`,
		"system:serviceaccount:n:s", "", "", "n", "", "", "")
	f.Add(`{"kind":"ClusterRole","metadata":{"name":"a","labels":{"l":"a"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"l":"b"}}]}}
{"kind":"ClusterRole","metadata":{"name":"b","labels":{"l":"b"}},"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"l","operator":"In","values":["a"]}]}]},"rules":[{}]}
{"kind":"RoleBinding","metadata":{"name":"b","namespace":"n"},"roleRef":{"kind":"ClusterRole","name":"a"},"subjects":[{"kind":"Group","name":"g"}]}`,
		"u", "g", "get", "n", "pods", "", "")
	f.Add(`{"kind":"ClusterRole","metadata":{"name":"a","labels":{"a":1}},"aggregationRule":{"clusterRoleSelectors":[{},null]}}`, "", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, text, name, group, verb, namespace, resource, subresource, path string) {
		s := source{}
		decoder := json.NewDecoder(strings.NewReader(text))
		for {
			var content map[string]any
			if decoder.Decode(&content) != nil {
				break
			}
			obj := &unstructured.Unstructured{Object: content}
			s[obj.GetKind()] = append(s[obj.GetKind()], obj)
		}
		noOne := len(s["ClusterRole"])+len(s["Role"]) == 0 || len(s["ClusterRoleBinding"])+len(s["RoleBinding"]) == 0
		evaluator := rbac.New(s)
		for _, isResource := range []bool{true, false} {
			asked := authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: name, Groups: []string{group, "g" + group}}, Verb: verb, Namespace: namespace,
				Resource: resource, Subresource: subresource, Name: path, Path: path, ResourceRequest: isResource,
			}
			decision, reason, err := evaluator.Authorize(t.Context(), asked)
			if decision == authorizer.DecisionDeny || noOne && decision == authorizer.DecisionAllow && group != user.SystemPrivilegedGroup {
				t.Errorf("got %v, %q, %v", decision, reason, err)
			}
			again, sameReason, sameErr := evaluator.Authorize(t.Context(), asked)
			if again != decision || sameReason != reason || (sameErr == nil) != (err == nil) {
				t.Errorf("got %v, %q, %v, and then %v, %q, %v", decision, reason, err, again, sameReason, sameErr)
			}
		}
	})
}
