// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

// robots lets the service account kube-system/robot, and nobody else, get Secrets.
const robots = `  cluster:
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: robots}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: robots}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: robots}, subjects: [{kind: ServiceAccount, name: robot, namespace: kube-system}]}
`

// judging puts the real judges behind the door.
func judging(t *testing.T, f *fixture, stored *policy.Set) {
	t.Helper()
	judge, err := plugin.NewRegistered(dialect.All(), chain.New(func() *policy.Set { return stored }, clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.door, _ = newDoor(t, judge, admissionpreview.Access{Authorizer: &f.rights, Stored: func() *policy.Set { return stored }})
}

// forAll is a candidate policy, with its binding, that is about everything.
func forAll(failurePolicy, rest string) string {
	return "  - {apiVersion: policy.portcullis.dev/v1alpha1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: p}, spec: {policyName: p, validationActions: [Deny]}}\n" +
		"  - apiVersion: policy.portcullis.dev/v1alpha1\n    kind: ValidatingAdmissionPolicy\n    metadata: {name: p}\n    spec:\n      failurePolicy: " + failurePolicy + "\n" +
		"      matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]}\n" + rest
}

// TestCandidatesAskTheAuthorizer: a candidate is told what the user of the
// request and the caller may do. Of others it is told only if the caller may be
// them; an error, and never a no, is all that it gets otherwise.
func TestCandidatesAskTheAuthorizer(t *testing.T) {
	const (
		robot     = "authorizer.serviceAccount('kube-system', 'robot').group('').resource('secrets').check('get')"
		asRobot   = "impersonate serviceaccounts kube-system/robot"
		forbidden = `serviceaccounts "robot" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "kube-system": needed by the candidates to ask the authorizer about "system:serviceaccount:kube-system:robot"`
		robotUser = "userInfo: {username: 'system:serviceaccount:kube-system:robot'}, "
	)
	deny := func(expression string) string { return "      validations: [{expression: \"" + expression + "\"}]\n" }
	jane := &user.DefaultInfo{Name: "jane", UID: "7", Groups: []string{"devs"}, Extra: map[string][]string{"a": {"b"}}}
	tests := []struct {
		name    string
		caller  user.Info // jane when nil
		as      string
		policy  string
		allowed []string
		asked   []string
		message string // in the verdict; none when the request is admitted
	}{
		{name: "allowed is no way to ask", policy: forAll("Fail", deny(robot+".allowed()")), asked: []string{asRobot}, message: forbidden},
		{name: "nor is not allowed", policy: forAll("Fail", deny("!"+robot+".allowed()")), asked: []string{asRobot}, message: forbidden},
		{name: "nor is the reason", policy: forAll("Fail", deny(robot+".reason() == ''")), asked: []string{asRobot}, message: forbidden},
		{name: "nor is the error", policy: forAll("Fail", deny(robot+".errored()")), asked: []string{asRobot}, message: forbidden},
		{name: "nor is what makes errors good", policy: forAll("Fail", deny(robot+".allowed() || true")), asked: []string{asRobot}, message: forbidden},
		{name: "nor is a path", policy: forAll("Fail", deny("!authorizer.serviceAccount('kube-system', 'robot').path('/metrics').check('get').allowed()")), asked: []string{asRobot}, message: forbidden},
		{
			name: "nor is a variable", asked: []string{asRobot}, message: forbidden,
			policy: forAll("Fail", "      variables: [{name: robot, expression: \""+robot+".allowed()\"}]\n"+deny("!variables.robot")),
		},
		{
			name: "nor is a match condition", asked: []string{asRobot}, message: forbidden,
			policy: forAll("Fail", "      matchConditions: [{name: robot, expression: \"!"+robot+".allowed()\"}]\n"+deny("false")),
		},
		{name: "the failure policy decides", policy: forAll("Ignore", deny("!"+robot+".allowed()")), asked: []string{asRobot}},
		{name: "the right to be the user", policy: forAll("Fail", deny(robot+".allowed()")), allowed: []string{asRobot}, asked: []string{asRobot}},
		{name: "and what the user may not do", policy: forAll("Fail", deny("!"+robot+".allowed()")), allowed: []string{asRobot}, asked: []string{asRobot}, message: "failed expression"},
		{name: "the right to another user", policy: forAll("Fail", deny(robot+".allowed()")), allowed: []string{"impersonate serviceaccounts prod/robot", "impersonate users /system:serviceaccount:kube-system:robot"}, asked: []string{asRobot}, message: forbidden},
		{name: "the caller, as the user of the request", policy: forAll("Fail", deny("!authorizer.group('').resource('secrets').check('get').allowed()"))},
		{name: "the request resource", policy: forAll("Fail", deny("!authorizer.requestResource.check('create').allowed()"))},
		{name: "another user of the request", as: robotUser, policy: forAll("Fail", deny("!authorizer.group('').resource('secrets').check('get').allowed()")), allowed: []string{asRobot}, asked: []string{asRobot}, message: "failed expression"},
		{name: "the user of the request by name", as: robotUser, policy: forAll("Fail", deny(robot+".allowed()")), allowed: []string{asRobot}, asked: []string{asRobot}},
		{
			name:   "the caller by name",
			caller: &user.DefaultInfo{Name: "system:serviceaccount:kube-system:robot", UID: "8", Groups: []string{"system:authenticated"}}, policy: forAll("Fail", deny(robot+".allowed()")),
		},
		{name: "the namespace", policy: forAll("Fail", deny("namespaceObject.metadata.name == ''")), asked: []string{"get /v1/namespaces prod/prod"}, message: `namespaces "prod" is forbidden: User "jane" cannot get resource "namespaces" in API group "" in the namespace "prod": needed by the candidates to look at namespaceObject`},
		{name: "the namespace, with the right to it", policy: forAll("Fail", deny("namespaceObject.metadata.name == ''")), allowed: []string{"get /v1/namespaces prod/prod"}, asked: []string{"get /v1/namespaces prod/prod"}, message: `namespaces "prod" not found`},
		{name: "an administrator", caller: &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}, policy: forAll("Fail", deny(robot+".allowed()"))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			judging(t, f, &policy.Set{})
			f.rights.allowed = test.allowed
			caller := test.caller
			if caller == nil {
				caller = jane
			}
			answer, err := f.create(genericapirequest.WithUser(t.Context(), caller), t,
				robots+"  policies:\n"+test.policy+"  request: {"+test.as+"object: "+deployment+"}")
			if err != nil {
				t.Fatal(err)
			}
			wantMessage(t, answer.Status, test.message)
			if got := slices.Compact(slices.Clone(f.rights.asked)); !slices.Equal(got, test.asked) {
				t.Errorf("asked %q, want %q", got, test.asked)
			}
		})
	}
}

func wantMessage(t *testing.T, status policyapi.AdmissionPreviewStatus, want string) {
	t.Helper()
	switch {
	case want == "" && !status.Allowed:
		t.Errorf("got %s, want that the request is admitted", status.Result.Message)
	case want != "" && status.Allowed:
		t.Errorf("the request is admitted, want %s", want)
	case want != "" && !strings.Contains(status.Result.Message, want):
		t.Errorf("got\n%s\nwant\n%s", status.Result.Message, want)
	}
}

// TestStoredPoliciesAskTheAuthorizer: who has stored a policy was allowed to.
func TestStoredPoliciesAskTheAuthorizer(t *testing.T) {
	f := newFixture(t)
	stored := `  policies:
` + forAll("Fail", "      validations: [{expression: \"!authorizer.serviceAccount('kube-system', 'robot').group('').resource('secrets').check('get').allowed()\"}]\n")
	f.ask(t, stored+"  request: {object: "+deployment+"}")
	judging(t, f, (&policy.Set{}).Edit(nil, f.candidates))
	jane := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
	for _, candidates := range []string{"", "  policies: [{apiVersion: policy.portcullis.dev/v1alpha1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: q}, spec: {policyName: p, validationActions: [Deny]}}]\n"} {
		answer, err := f.create(jane, t, robots+candidates+"  request: {object: "+deployment+"}")
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, answer.Status, "failed expression")
		if len(f.rights.asked) > 0 {
			t.Errorf("asked %q, want nothing", f.rights.asked)
		}
	}
}

// TestCandidateView: candidates alone have a view of their own, which is as the
// other one where that cannot tell what anybody may do.
func TestCandidateView(t *testing.T) {
	f := newFixture(t)
	f.ask(t, "  request: {object: "+deployment+"}")
	if f.trial.CandidateView != nil {
		t.Error("a preview without candidates has a view for them")
	}
	f.ask(t, "  policies:\n"+forAll("Fail", "      validations: [{expression: 'true'}]\n")+"  request: {object: "+deployment+"}")
	if f.trial.CandidateView == nil || f.trial.CandidateView == f.trial.View {
		t.Fatal("the candidates have no view of their own")
	}
	if _, ok := f.trial.CandidateView.Authorizer().(authorizer.Authorizer); !ok {
		t.Errorf("%T is no authorizer.Authorizer, which that of the cluster is", f.trial.CandidateView.Authorizer())
	}
	if f.trial.CandidateView.Mapper() != f.trial.View.Mapper() {
		t.Error("the candidates see another mapper")
	}
}
