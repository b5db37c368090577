// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// call is the entry v with an apiCall.
func call(fields string) string { return `[{name: v, apiCall: {` + fields + `}}]` }

func review(path, spec string) string {
	return call(`urlPath: ` + path + `, method: POST, data: [{key: kind, value: SubjectAccessReview}, {key: apiVersion, value: authorization.k8s.io/v1}, {key: spec, value: ` + spec + `}]`)
}

const (
	reviews      = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	localReviews = "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews"
	getOne       = `{user: "{{request.userInfo.username}}", resourceAttributes: {verb: get, resource: configmaps, namespace: shop, name: one}}`
)

func TestAPICall(t *testing.T) {
	view := viewOf(t, world)
	tests := []struct {
		name, namespace, entries, expression string
		want, wantErr                        string
	}{
		{name: "one", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/two`), expression: "v.[kind, apiVersion, data.v]", want: `["ConfigMap","v1","two-v"]`},
		{name: "one with a path", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/two, jmesPath: data.v`), expression: "v", want: `"two-v"`},
		{name: "path with variables", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/two, jmesPath: "metadata.{{request.object.spec.nope || 'name'}}"`), expression: "v", want: `"two"`},
		{name: "method", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/two, method: GET, data: [{key: a, value: "{{request.object.nope}}"}], jmesPath: data.v`), expression: "v", want: `"two-v"`},
		{name: "variables", entries: call(`urlPath: "/api/v1/namespaces/{{request.namespace}}/configmaps/{{request.object.metadata.labels.cfg}}"`), expression: "v.data.v", want: `"one-v"`},
		{name: "escaped", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/t%77o`), expression: "v.data.v", want: `"two-v"`},
		{name: "list", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps`), expression: "v.[apiVersion, kind, items[].metadata.name]", want: `["v1","ConfigMapList",["empty","one","two"]]`},
		{name: "list with a path", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps, jmesPath: "items[?metadata.labels.grp == 'x'].metadata.name | sort(@)"`), expression: "v", want: `["one"]`},
		{name: "list of all namespaces", entries: call(`urlPath: /api/v1/configmaps`), expression: "v.items[].metadata.[namespace, name]", want: `[["default","base"],["lab","one"],["shop","empty"],["shop","one"],["shop","two"]]`},
		{name: "list by label", entries: call(`urlPath: "/api/v1/configmaps?labelSelector=grp={{request.object.spec.nope || 'x'}}"`), expression: "v.items[].metadata.namespace", want: `["lab","shop"]`},
		{name: "list by labels", entries: call(`urlPath: "/api/v1/configmaps?labelSelector=grp+in+%28y,z%29"`), expression: "v.items[].metadata.name", want: `["two"]`},
		{name: "list of none", entries: call(`urlPath: /api/v1/namespaces/shop/secrets`), expression: "v.items", want: "[]"},
		{name: "cluster-scoped", entries: call(`urlPath: /api/v1/namespaces/shop`), expression: "v.metadata.labels.team", want: `"s"`},
		{name: "list of cluster-scoped", entries: call(`urlPath: "/api/v1/namespaces?labelSelector=team"`), expression: "v.items[].metadata.name", want: `["shop"]`},
		{name: "group", entries: call(`urlPath: /apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/reader`), expression: "v.rules[0].verbs", want: `["get"]`},
		{name: "custom", entries: call(`urlPath: "/apis/{{request.object.apiVersion}}/namespaces/shop/widgets"`), expression: "v.[kind, items[0].spec.size]", want: `["WidgetList",4]`},

		{name: "missing", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/none`), expression: "v || 'z'", wantErr: `context entry "v": configmaps "none" of namespace shop does not exist`},
		{name: "default", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/none, jmesPath: data.v, default: "d-{{request.name}}"`), expression: "v", want: `"d-w"`},
		{name: "default for an unknown resource", entries: call(`urlPath: /apis/none.io/v1/things, default: []`), expression: "v", want: "[]"},
		{name: "unknown resource", entries: call(`urlPath: /apis/none.io/v1/things`), expression: "v", wantErr: `the API server serves no things.none.io in version v1`},
		{name: "unknown version", entries: call(`urlPath: /apis/apps/v3/deployments`), expression: "v", wantErr: `the API server serves no deployments.apps in version v3`},
		{name: "singular", entries: call(`urlPath: /api/v1/namespaces/shop/configmap`), expression: "v", wantErr: "no configmap in version v1"},
		{name: "without a namespace", entries: call(`urlPath: /api/v1/configmaps/one, default: d`), expression: "v", want: `"d"`},
		{name: "with a namespace too many", entries: call(`urlPath: /api/v1/namespaces/shop/nodes`), expression: "v", wantErr: "cluster-scoped"},
		{name: "what is not listed", entries: call(`urlPath: ` + reviews), expression: "v", wantErr: "lists no subjectaccessreviews"},
		{name: "no default for a path that fails", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/one, jmesPath: data.nope, default: d`), expression: "v", wantErr: `jmesPath: Unknown key "nope"`},
		{name: "no default for variables that fail", entries: call(`urlPath: "/api/v1/namespaces/shop/configmaps/{{request.object.nope}}", default: d`), expression: "v", wantErr: `urlPath: variable {{ request.object.nope }}`},
		{name: "path that finds null", entries: call(`urlPath: /api/v1/namespaces/shop/configmaps/one, jmesPath: "data.nope || data.none"`), expression: "v", want: "null"},

		// What variables hold must not lead elsewhere, and no default stands for it.
		{name: "more parts", entries: call(`urlPath: "/api/v1/namespaces/{{request.object.spec.many}}/configmaps", default: d`), expression: "v", wantErr: `not allowed here: the variables lead to b "configmaps" of namespace a`},
		{name: "fewer parts", entries: call(`urlPath: "/api/v1/namespaces/shop/configmaps{{request.object.spec.nope || '/one'}}", default: d`), expression: "v", wantErr: `not allowed here: the variables lead to configmaps "one" of namespace shop`},
		{name: "a query", entries: call(`urlPath: "/api/v1/namespaces/shop/{{request.object.spec.nope || 'secrets?x='}}configmaps", default: d`), expression: "v", wantErr: `not allowed here: the query "x=configmaps" is not supported`},
		{name: "upwards", entries: call(`urlPath: "/api/v1/namespaces/{{request.object.spec.nope || '..'}}/configmaps", default: d`), expression: "v", wantErr: `not allowed here: the path`},
		{name: "upwards in disguise", entries: call(`urlPath: "/api/v1/namespaces/{{request.object.spec.nope || '%2e%2e'}}/configmaps", default: d`), expression: "v", wantErr: `not allowed here: the path`},
		{name: "nothing", entries: call(`urlPath: "/api/v1/namespaces/{{request.object.spec.nope || ''}}/configmaps", default: d`), expression: "v", wantErr: `has the part "": it is empty`},
		{name: "wide", entries: `[{name: p, variable: {value: /api/v1/namespaces/shop/configmaps/one}}, {name: v, apiCall: {urlPath: "{{p}}"}}]`, expression: "v.data.v", want: `"one-v"`},
		{name: "refused by default of another", entries: `[{name: a, apiCall: {urlPath: "/api/v1/namespaces/{{request.object.spec.many}}/configmaps"}}, {name: v, variable: {jmesPath: a, default: d}}]`, expression: "v", wantErr: "not allowed here"},

		// A Policy of the namespace shop.
		{name: "own", namespace: "shop", entries: call(`urlPath: "/api/v1/namespaces/{{request.namespace}}/configmaps"`), expression: "v.items[].metadata.name", want: `["empty","one","two"]`},
		{name: "own namespace", namespace: "shop", entries: call(`urlPath: "/api/v1/namespaces/{{request.namespace}}"`), expression: "v.metadata.name", want: `"shop"`},
		{name: "own by a wide path", namespace: "shop", entries: `[{name: p, variable: {value: /api/v1/namespaces/shop/configmaps/one}}, {name: v, apiCall: {urlPath: "{{p}}"}}]`, expression: "v.data.v", want: `"one-v"`},
		{name: "of another", namespace: "shop", entries: call(`urlPath: "/api/v1/namespaces/{{request.object.spec.nope || 'lab'}}/configmaps", default: d`), expression: "v", wantErr: "not allowed here: the path must have /namespaces/shop/ in it"},
		{name: "of all", namespace: "shop", entries: `[{name: p, variable: {value: /api/v1/configmaps}}, {name: v, apiCall: {urlPath: "{{p}}", default: d}}]`, expression: "v", wantErr: "not allowed here: the path must have /namespaces/shop/ in it"},
		{name: "own configMap", namespace: "shop", entries: `[{name: v, configMap: {name: one}}]`, expression: "v.data.v", want: `"one-v"`},
		{name: "configMap of another", namespace: "shop", entries: `[{name: a, configMap: {name: one, namespace: "{{request.object.spec.nope || 'lab'}}"}}, {name: v, variable: {jmesPath: a, default: d}}]`, expression: "v", wantErr: "a Policy of namespace shop reads no ConfigMap of namespace lab"},

		{name: "may", entries: review(reviews, getOne), expression: "v.[kind, status.allowed, spec.user]", want: `["SubjectAccessReview",true,"alice"]`},
		{name: "may not", entries: review(reviews, `{user: alice, resourceAttributes: {verb: delete, resource: configmaps, namespace: lab}}`), expression: "v.status.allowed", want: "true"}, // edit
		{name: "others may not", entries: review(reviews, `{user: bob, resourceAttributes: {verb: get, resource: configmaps, namespace: shop}}`), expression: "v.status.allowed", want: "false"},
		{name: "by group", entries: review(reviews, `{groups: ["system:masters"], nonResourceAttributes: {verb: get, path: /metrics}}`), expression: "v.status.allowed", want: "true"},
		{name: "local", entries: review(localReviews, `{user: alice, resourceAttributes: {verb: get, resource: configmaps}}`), expression: "v.[kind, metadata.namespace, status.allowed]", want: `["LocalSubjectAccessReview","shop",true]`},
		{name: "local in a Policy", namespace: "shop", entries: review(localReviews, `{user: alice, resourceAttributes: {verb: get, resource: configmaps}}`), expression: "v.status.allowed", want: "true"},
		{name: "local of another namespace", entries: review(localReviews, `{user: alice, resourceAttributes: {verb: get, resource: configmaps, namespace: lab}}`), expression: "v", wantErr: `it is "lab", and the path names "shop"`},
		{name: "about nobody", entries: review(reviews, `{resourceAttributes: {verb: get, resource: configmaps}}`), expression: "v", wantErr: "spec.user or spec.groups"},
		{name: "about nothing", entries: review(reviews, `{user: alice}`), expression: "v", wantErr: "exactly one of resourceAttributes and nonResourceAttributes"},
		{name: "by selector", entries: review(reviews, `{user: alice, resourceAttributes: {verb: list, resource: pods, labelSelector: {rawSelector: a=b}}}`), expression: "v", wantErr: "selectors are not supported"},
		{name: "wrong type", entries: review(reviews, `{user: 5}`), expression: "v", wantErr: "data: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := newRun()
			variables := scope.New(policy.Input{Request: widgetRequest(t), View: view}, run)
			defer variables.Begin(mustCompile(t, test.namespace, test.entries))()
			got, err := resolve(t, run, variables, test.expression)
			check(t, got, err, test.want, test.wantErr)
		})
	}
}

// unsure is a view that does not know what users may do.
type unsure struct {
	cluster.View
	authorizer authorizer.UnconditionalAuthorizer
}

func (u unsure) Authorizer() authorizer.UnconditionalAuthorizer { return u.authorizer }

type unanswered struct{}

func (unanswered) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", &cluster.UnansweredError{Err: errors.New("cut off")}
}

// silent panics, as the authorizer of candidates does about others than the caller.
type silent struct{}

func (silent) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	panic(interpreter.EvalCancelledError{Message: "jane may not be told"})
}

func TestReviewWithoutAnswer(t *testing.T) {
	for want, rights := range map[string]authorizer.UnconditionalAuthorizer{
		"nothing is known here": nil, "cut off": unanswered{}, "jane may not be told": silent{},
	} {
		run := newRun()
		variables := scope.New(policy.Input{Request: widgetRequest(t), View: unsure{viewOf(t, ""), rights}}, run)
		end := variables.Begin(mustCompile(t, "", call(`urlPath: `+reviews+`, method: POST, default: {}, data: [{key: spec, value: `+getOne+`}]`)))
		_, err := resolve(t, run, variables, "v")
		check(t, "", err, "", want)
		end()
	}
}

func TestRead(t *testing.T) {
	run := newRun()
	variables := scope.New(policy.Input{Request: widgetRequest(t), View: viewOf(t, world)}, run)
	variables.WithoutRoles()
	defer variables.Begin(mustCompile(t, "", `[
		{name: a, configMap: {name: one, namespace: shop}},
		{name: b, apiCall: {urlPath: /api/v1/namespaces/shop/configmaps/one}},
		{name: c, apiCall: {urlPath: /apis/example.com/v1/widgets}},
		{name: d, configMap: {name: none, namespace: shop}},
		{name: e, configMap: {name: two, namespace: shop}}]`))()
	if _, err := resolve(t, run, variables, "[a, b, c.items]"); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(t, run, variables, "d"); err == nil {
		t.Fatal("found what is not there")
	}
	want := []verdict.ParamRef{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "one"},
		{APIVersion: "example.com/v1", Kind: "Widget"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "none"},
	}
	if got := variables.Read(); !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestReads(t *testing.T) {
	tests := []struct{ namespace, entries, want string }{
		{entries: `[{name: v, configMap: {name: one, namespace: shop}}]`, want: "[context[0].configMap get /v1/configmaps shop one]"},
		{entries: `[{name: v, configMap: {name: "{{request.name}}"}}]`, want: "[context[0].configMap get /v1/configmaps default ]"},
		{entries: `[{name: v, configMap: {name: one, namespace: "{{request.namespace}}"}}]`, want: "[context[0].configMap get /v1/configmaps  one]"},
		{entries: `[{name: v, configMap: {name: one, namespace: "{{request.namespace}}"}}]`, namespace: "shop", want: "[context[0].configMap get /v1/configmaps shop one]"},
		{entries: `[{name: v, variable: {value: 1}}]`, want: "[]"},
		{entries: call(`urlPath: /api/v1/namespaces/shop/secrets/s`), want: "[context[0].apiCall.urlPath get /v1/secrets shop s]"},
		{entries: call(`urlPath: /apis/apps/v1/deployments`), want: "[context[0].apiCall.urlPath list apps/v1/deployments  ]"},
		{entries: call(`urlPath: "/apis/apps/v1/namespaces/{{request.namespace}}/deployments?labelSelector={{request.name}}"`), want: "[context[0].apiCall.urlPath list apps/v1/deployments  ]"},
		{entries: call(`urlPath: "/apis/apps/v1/namespaces/{{request.namespace}}/deployments/x-{{request.name}}"`), want: "[context[0].apiCall.urlPath get apps/v1/deployments  ]"},
		{entries: call(`urlPath: "/apis/apps/v1/namespaces/{{request.namespace}}/deployments/x"`), namespace: "shop", want: "[context[0].apiCall.urlPath get apps/v1/deployments shop x]"},
		{entries: call(`urlPath: "/api/v1/namespaces/{{request.namespace}}"`), namespace: "shop", want: "[context[0].apiCall.urlPath get /v1/namespaces  shop]"},
		{entries: call(`urlPath: "/api/v1/{{request.resource.resource}}"`), want: "[context[0].apiCall.urlPath list //  ]"},
		{entries: call(`urlPath: "/apis/{{request.object.apiVersion}}/namespaces/shop/widgets"`), want: "[context[0].apiCall.urlPath list //   context[0].apiCall.urlPath get //  ]"},
		{entries: call(`urlPath: "/apis/{{request.object.apiVersion}}/namespaces/shop/widgets"`), namespace: "shop", want: "[context[0].apiCall.urlPath list // shop  context[0].apiCall.urlPath get // shop ]"},
		{entries: review(reviews, getOne), want: "[context[0].apiCall.urlPath create authorization.k8s.io/v1/subjectaccessreviews  ]"},
		{entries: review(localReviews, getOne), want: "[context[0].apiCall.urlPath create authorization.k8s.io/v1/localsubjectaccessreviews shop ]"},
	}
	for _, test := range tests {
		t.Run(test.entries+test.namespace, func(t *testing.T) {
			_, reads, errs := compile(t, test.namespace, test.entries)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			texts := []string{}
			for _, r := range reads {
				texts = append(texts, fmt.Sprintf("%s %s %s/%s/%s %s %s", r.Field, r.Verb, r.Resource.Group, r.Resource.Version, r.Resource.Resource, r.Namespace, r.Name))
			}
			if got := fmt.Sprint(texts); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
