// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// TestReads: whoever writes a policy has the rights to what it reads, except to what it
// has read before.
func TestReads(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	tests := []struct {
		name    string
		read    policy.Read
		before  []policy.Read
		needed  string
		refused string
	}{
		{
			name: "one object", read: policy.Read{Verb: "get", Resource: configMaps, Namespace: "shop", Name: "prices"},
			needed: "get /v1/configmaps shop/prices", refused: `user "jane" must have the right to get configmaps "prices" in namespace "shop", which the policy reads`,
		},
		{
			name: "a name with variables", read: policy.Read{Verb: "get", Resource: configMaps, Namespace: "shop"},
			needed: "get /v1/configmaps shop/*", refused: `user "jane" must have the right to get configmaps in namespace "shop", which the policy reads`,
		},
		{
			name: "a list", read: policy.Read{Verb: "list", Resource: deployments},
			needed: "list apps/v1/deployments */*", refused: `user "jane" must have the right to list deployments.apps in all namespaces, which the policy reads`,
		},
		{
			name: "anything", read: policy.Read{Verb: "get"},
			needed: "get */*/* */*", refused: `user "jane" must have the right to get resources of every kind in all namespaces, which the policy reads`,
		},
		{
			name: "as before", read: policy.Read{Verb: "get", Resource: configMaps, Field: field.NewPath("now")},
			before: []policy.Read{{Verb: "get", Resource: configMaps, Field: field.NewPath("then")}},
		},
		{
			name: "more than before", read: policy.Read{Verb: "get", Resource: configMaps},
			before: []policy.Read{{Verb: "get", Resource: configMaps, Namespace: "shop"}},
			needed: "get /v1/configmaps */*", refused: `user "jane" must have the right to get configmaps in all namespaces, which the policy reads`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.read.Field == nil {
				test.read.Field = field.NewPath("spec", "rules").Index(0).Child("context").Index(1)
			}
			ctx := genericapirequest.WithUser(t.Context(), jane)
			denying, allowing := &world{}, &world{allowed: test.needed}
			wantRefusal(t, denying.writes().Reads(ctx, []policy.Read{test.read}, test.before), "spec.rules[0].context[1]", test.refused)
			wantRefusal(t, allowing.writes().Reads(ctx, []policy.Read{test.read}, test.before), "", "")
			if test.needed == "" && len(denying.asked) > 0 || test.needed != "" && (len(denying.asked) != 1 || denying.asked[0] != test.needed) {
				t.Errorf("asked for %q, want %q", denying.asked, test.needed)
			}
			master := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}})
			wantRefusal(t, denying.writes().Reads(master, []policy.Read{test.read}, test.before), "", "")
			if test.needed != "" {
				wantRefusal(t, denying.writes().Reads(t.Context(), []policy.Read{test.read}, test.before), "spec.rules[0].context[1]", "cannot identify the user to authorize what the policy reads")
			}
		})
	}
}
