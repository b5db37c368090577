// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

func TestParamRights(t *testing.T) {
	const (
		meta      = "apiVersion: policy.portcullis.dev/v1alpha1, metadata: {name: p}"
		rules     = "matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}, validations: [{expression: 'true'}]"
		plain     = "{kind: ValidatingAdmissionPolicy, " + meta + ", spec: {" + rules + "}}"
		ofSecrets = "{kind: ValidatingAdmissionPolicy, " + meta + ", spec: {paramKind: {apiVersion: v1, kind: Secret}, " + rules + "}}"
		ofWidgets = "{kind: ValidatingAdmissionPolicy, " + meta + ", spec: {paramKind: {apiVersion: example.com/v1, kind: Widget}, " + rules + "}}"
		binding   = "{kind: ValidatingAdmissionPolicyBinding, " + meta + ", spec: {policyName: p, validationActions: [Deny]}}"
		byName    = "{kind: ValidatingAdmissionPolicyBinding, " + meta + ", spec: {policyName: p, validationActions: [Deny], paramRef: {name: key, namespace: prod, parameterNotFoundAction: Deny}}}"
		anywhere  = "{kind: ValidatingAdmissionPolicyBinding, " + meta + ", spec: {policyName: p, validationActions: [Deny], paramRef: {name: key, parameterNotFoundAction: Deny}}}"
		byLabel   = "{kind: ValidatingAdmissionPolicyBinding, " + meta + ", spec: {policyName: p, validationActions: [Deny], paramRef: {selector: {}, parameterNotFoundAction: Deny}}}"
		widgets   = "  cluster: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, " +
			"spec: {group: example.com, scope: Cluster, names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true}]}}]\n"

		getSecrets  = "get /v1/secrets */*"
		getKey      = "get /v1/secrets prod/key"
		getAnyKey   = "get /v1/secrets /key"
		listSecrets = "list /v1/secrets /"
		getWidgets  = "get example.com/v1/widgets */*"
		getGroup    = "get example.com/v1/* */*"
		getAllKey   = "get */*/* prod/key"
	)
	stored := func(kind *schema.GroupVersionKind) *policy.Unit {
		return &policy.Unit{ID: policy.ID{Kind: "ValidatingAdmissionPolicy", Name: "p"}, Policy: &policy.Policy{ParamKind: kind, Criteria: match.Compile(nil), NeedsBinding: true}}
	}
	tests := []struct {
		name       string
		candidates string
		cluster    string
		stored     *policy.Unit
		needed     []string
		refused    string // without the last of needed
	}{
		{name: "no candidates", candidates: ""},
		{name: "no params", candidates: plain + ", " + binding},
		{
			name: "a policy", candidates: ofSecrets, needed: []string{getSecrets},
			refused: `secrets "*" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p"`,
		},
		{
			name: "a kind that the preview brings", candidates: ofWidgets, cluster: widgets, needed: []string{getWidgets},
			refused: `widgets.example.com "*" is forbidden: User "jane" cannot get resource "widgets" in API group "example.com" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p"`,
		},
		{
			name: "a kind that the cluster lacks", candidates: ofWidgets, needed: []string{getGroup},
			refused: `*.example.com "*" is forbidden: User "jane" cannot get resource "*" in API group "example.com" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p", for all resources of the group: the cluster has no kind example.com/v1, Kind=Widget`,
		},
		{
			name: "a name", candidates: byName + ", " + ofSecrets, needed: []string{getKey, getSecrets},
			refused: `secrets "*" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p"`,
		},
		{
			name: "a name in any namespace", candidates: anywhere, stored: stored(&schema.GroupVersionKind{Version: "v1", Kind: "Secret"}), needed: []string{getAnyKey},
			refused: `secrets "key" is forbidden: User "jane" cannot get resource "secrets" in API group "" at the cluster scope: needed for the paramRef of ValidatingAdmissionPolicyBinding "p"`,
		},
		{
			name: "a selector", candidates: byLabel, stored: stored(&schema.GroupVersionKind{Version: "v1", Kind: "Secret"}), needed: []string{listSecrets},
			refused: `secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope: needed for the paramRef of ValidatingAdmissionPolicyBinding "p"`,
		},
		{
			name: "a candidate before the stored policy", candidates: byName + ", " + ofSecrets, stored: stored(&schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}),
			needed:  []string{getKey, getSecrets},
			refused: `secrets "*" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p"`,
		},
		{
			name: "an unknown policy", candidates: byName, needed: []string{getAllKey},
			refused: `*.* "key" is forbidden: User "jane" cannot get resource "*" in API group "*" in the namespace "prod": needed for the paramRef of ValidatingAdmissionPolicyBinding "p", for all resources: its policy is not known or has no paramKind`,
		},
		{
			name: "a policy without a paramKind", candidates: byName, stored: stored(nil), needed: []string{getAllKey},
			refused: `*.* "key" is forbidden: User "jane" cannot get resource "*" in API group "*" in the namespace "prod": needed for the paramRef of ValidatingAdmissionPolicyBinding "p", for all resources: its policy is not known or has no paramKind`,
		},
	}
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	for _, test := range tests {
		ask := func(t *testing.T, allowed []string) ([]string, error) {
			f := newFixture(t)
			f.rights.allowed = allowed
			if test.stored != nil {
				f.policies = (&policy.Set{}).Edit(nil, []*policy.Unit{test.stored})
			}
			_, err := f.create(genericapirequest.WithUser(t.Context(), jane), t,
				test.cluster+"  policies: ["+test.candidates+"]\n  request: {object: "+deployment+"}")
			if judged := f.request != nil; judged != (err == nil) {
				t.Errorf("judged: %v", judged)
			}
			return f.rights.asked, err
		}
		t.Run(test.name, func(t *testing.T) {
			asked, err := ask(t, test.needed)
			wantForbidden(t, err, "")
			if !slices.Equal(asked, test.needed) {
				t.Errorf("asked %q, want %q", asked, test.needed)
			}
			if len(test.needed) > 0 {
				_, err = ask(t, test.needed[:len(test.needed)-1])
				wantForbidden(t, err, test.refused)
			}
		})
	}
}

// TestOneStoredSet: the stored policies may change while a preview is answered.
// Those that judge it are those against which rights were asked for.
func TestOneStoredSet(t *testing.T) {
	const binding = "  policies: [{apiVersion: policy.portcullis.dev/v1alpha1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: p, validationActions: [Deny], " +
		"paramRef: {name: key, namespace: prod, parameterNotFoundAction: Deny}}}]\n  request: {object: " + deployment + "}"
	of := func(kind string) *policy.Set {
		return (&policy.Set{}).Edit(nil, []*policy.Unit{{
			ID:     policy.ID{Kind: "ValidatingAdmissionPolicy", Name: "p"},
			Policy: &policy.Policy{Criteria: match.Compile(nil), NeedsBinding: true, ParamKind: &schema.GroupVersionKind{Version: "v1", Kind: kind}},
		}})
	}
	sets := []*policy.Set{of("ConfigMap"), of("Secret")}
	f, asked := newFixture(t), 0
	f.door, _ = newDoor(t, f.judge, admissionpreview.Access{Authorizer: &f.rights, Stored: func() *policy.Set {
		asked++
		return sets[asked-1]
	}})
	f.rights.allowed = []string{"get /v1/configmaps prod/key"}
	jane := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
	if _, err := f.create(jane, t, binding); err != nil {
		t.Fatal(err)
	}
	if f.trial.Stored != sets[0] {
		t.Error("the preview was judged with another set than the one that rights were asked for")
	}
	if _, err := f.create(jane, t, binding); err == nil {
		t.Error("the second preview needs the right to the Secret")
	}
	if asked != 2 {
		t.Errorf("the set was taken %d times for two previews", asked)
	}
}
