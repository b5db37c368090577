// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// answering is a cluster whose authorizer gives one answer.
type answering struct {
	cluster.View
	decision authorizer.Decision
	err      error
}

func (a answering) Authorizer() authorizer.UnconditionalAuthorizer {
	return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return a.decision, "", a.err
	})
}

func unanswered() error {
	return fmt.Errorf("asking: %w", &cluster.UnansweredError{Err: errors.New("out of reach")})
}

// unreadable is a cluster of which nothing can be listed.
type unreadable struct{ cluster.View }

func (unreadable) Objects(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	return nil, errors.New("out of reach")
}

// withRoles lays RBAC objects over base, whose own ones then have to be read.
func withRoles(t *testing.T, base cluster.View) cluster.View {
	t.Helper()
	objects, err := manifest.Decode([]byte(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: judged}, rules: []}`))
	if err != nil {
		t.Fatal(err)
	}
	view, err := overlay.New(base, objects)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

const check = "authorizer.requestResource.check('create')"

// askingPolicies returns policies that ask the authorizer, by where they do.
func askingPolicies() map[string]spec {
	type validation = admissionregistrationv1.Validation
	type condition = admissionregistrationv1.MatchCondition
	type variable = admissionregistrationv1.Variable
	validating := func(expression string) spec { return spec{Validations: []validation{{Expression: expression}}} }
	with := func(value, expression string) spec {
		return spec{Variables: []variable{{Name: "v", Expression: value}}, Validations: []validation{{Expression: expression}}}
	}
	only := func(expression string) spec {
		return spec{MatchConditions: []condition{{Name: "c", Expression: expression}}, Validations: []validation{{Expression: "false"}}}
	}
	return map[string]spec{
		"no":                       validating("!" + check + ".allowed()"),
		"yes":                      validating(check + ".allowed()"),
		"the reason":               validating(check + ".reason() == ''"),
		"the error":                validating(check + ".errored()"),
		"or true":                  validating(check + ".allowed() || true"),
		"or true, counted":         validating(check + ".allowed() || [3, 1].sort() == [1, 3]"),
		"in a loop":                validating("['a'].exists(v, authorizer.path('/' + v).check('get').allowed()) || true"),
		"a variable":               with(check+".allowed()", "!variables.v"),
		"a decision":               with(check, "!variables.v.allowed()"),
		"a variable of variable":   {Variables: []variable{{Name: "a", Expression: check}, {Name: "b", Expression: "variables.a.allowed()"}}, Validations: []validation{{Expression: "!variables.b"}}},
		"a variable that is there": with(check+".allowed()", "has(variables.v)"),
		"a match condition":        only(check + ".allowed()"),
		"a negated one":            only("!" + check + ".allowed()"),
		"a variable of the first of two": {
			Variables:   []variable{{Name: "v", Expression: check + ".allowed()"}},
			Validations: []validation{{Expression: "!variables.v"}, {Expression: "true"}},
		},
	}
}

// TestAuthorizerDoesNotAnswer: neither yes nor no is assumed where the authorizer
// does not know, with and without an explanation; the explanation has no values.
func TestAuthorizerDoesNotAnswer(t *testing.T) {
	for cause, view := range map[string]cluster.View{
		"the question fails":      answering{View: emptyCluster(t), decision: authorizer.DecisionDeny, err: unanswered()},
		"even with a yes":         answering{View: emptyCluster(t), decision: authorizer.DecisionAllow, err: unanswered()},
		"roles cannot be read":    withRoles(t, unreadable{emptyCluster(t)}),
		"roles are of no meaning": withRoles(t, meaningless{emptyCluster(t)}),
	} {
		for name, of := range askingPolicies() {
			t.Run(cause+"/"+name, func(t *testing.T) {
				var plain string
				for _, explain := range []*policy.Explain{nil, mayReadAll()} {
					found := asking{policy: stored(of), request: web(), view: view, explain: explain}.findings(t)
					if len(found) == 0 || found[0].Kind != verdict.Error || !strings.Contains(found[0].Message, "the authorizer does not answer: ") {
						t.Fatalf("got %+v, want an error", found)
					}
					if len(found) > 1 && found[1].Kind != verdict.Pass {
						t.Errorf("got %+v, want that the other validation passes", found[1])
					}
					if explain == nil {
						plain = marshalled(t, found)
						continue
					}
					if got := marshalled(t, traceless(found)); got != plain {
						t.Errorf("got %s with an explanation and %s without", got, plain)
					}
					if trace := found[0].Trace; trace == nil || strings.Contains(marshalled(t, trace.Values), "allowed") {
						t.Errorf("got the trace %+v, want one without an answer", trace)
					}
				}
			})
		}
	}
}

// meaningless is a cluster with a binding that cannot be read, which may bind anybody.
type meaningless struct{ cluster.View }

func (meaningless) Objects(_ context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	if selection.Kind.Kind != "ClusterRoleBinding" {
		return nil, nil
	}
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "x"}, "subjects": "all",
	}}}, nil
}

// TestAuthorizerAnswers: what it does answer is told, and an error that is not about
// being asked is for the expression, as in kube-apiserver.
func TestAuthorizerAnswers(t *testing.T) {
	no := answering{View: emptyCluster(t), decision: authorizer.DecisionNoOpinion}
	yes := answering{View: emptyCluster(t), decision: authorizer.DecisionAllow}
	other := answering{View: emptyCluster(t), decision: authorizer.DecisionNoOpinion, err: errors.New("no such verb")}
	for _, test := range []struct {
		policy string
		view   cluster.View
		want   verdict.Kind
	}{
		{policy: "no", view: no, want: verdict.Pass},
		{policy: "no", view: yes, want: verdict.Fail},
		{policy: "no", view: other, want: verdict.Pass},
		{policy: "no", view: withRoles(t, emptyCluster(t)), want: verdict.Pass},
		{policy: "yes", view: no, want: verdict.Fail},
		{policy: "yes", view: yes, want: verdict.Pass},
		{policy: "the error", view: no, want: verdict.Fail},
		{policy: "the error", view: other, want: verdict.Pass},
		{policy: "a variable", view: no, want: verdict.Pass},
		{policy: "a decision", view: yes, want: verdict.Fail},
		{policy: "a match condition", view: no, want: verdict.NotMatched},
		{policy: "a match condition", view: yes, want: verdict.Fail},
		{policy: "a negated one", view: no, want: verdict.Fail},
	} {
		for _, explain := range []*policy.Explain{nil, mayReadAll()} {
			found := asking{policy: stored(askingPolicies()[test.policy]), request: web(), view: test.view, explain: explain}.findings(t)
			if len(found) != 1 || found[0].Kind != test.want {
				t.Errorf("%s: got %+v, want %v", test.policy, found, test.want)
			}
		}
	}
}

// TestMessagesDoNotAskTheAuthorizer: messages and annotations are not given it, nor
// in variables; whether it answers changes nothing there.
func TestMessagesDoNotAskTheAuthorizer(t *testing.T) {
	of := spec{
		Variables:   []admissionregistrationv1.Variable{{Name: "v", Expression: check + ".allowed() ? 'yes' : 'no'"}},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "plain", MessageExpression: "'got ' + variables.v"}},
		AuditAnnotations: []admissionregistrationv1.AuditAnnotation{
			{Key: "a", ValueExpression: check + ".allowed() ? 'yes' : 'no'"}, {Key: "v", ValueExpression: "variables.v"},
		},
	}
	for _, explain := range []*policy.Explain{nil, mayReadAll()} {
		var both string
		for _, err := range []error{nil, unanswered()} {
			findings := asking{policy: stored(of), request: web(), view: answering{View: emptyCluster(t), err: err}, explain: explain}.findings(t)
			if len(findings) != 3 || findings[0].Kind != verdict.Fail || findings[0].Message != "plain" ||
				findings[1].Kind != verdict.Misconfigured || findings[2].Kind != verdict.Misconfigured {
				t.Errorf("got %+v, want a plain message and annotations that fail", findings)
			}
			both += marshalled(t, traceless(findings)) + "\n"
		}
		if first, rest, _ := strings.Cut(both, "\n"); first+"\n" != rest {
			t.Errorf("got\n%s", both)
		}
	}
}
