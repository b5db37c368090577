// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

const webPod = `{name: web-1, namespace: shop, labels: {app: web, example.com/team: blue}, annotations: {note: hello}}`

// TestMatches: an empty reason means that the rule is about the request.
func TestMatches(t *testing.T) {
	pods := func(more string) string { return "{match: {any: [{resources: {kinds: [Pod]" + more + "}}]}}" }
	pod := func(change func(*request.Fields)) request.Fields {
		fields := create(object(t, "v1/Pod", webPod))
		if change != nil {
			change(&fields)
		}
		return fields
	}
	generated := create(object(t, "v1/Pod", `{generateName: web-, namespace: lab}`))
	namespace := create(object(t, "v1/Namespace", `{name: shop, labels: {kubernetes.io/metadata.name: shop}}`))
	namespace.Namespace = "shop"
	unnamed := create(object(t, "v1/Namespace", `{generateName: ns-, labels: {kubernetes.io/metadata.name: kube-system, a: b}}`))
	node := create(object(t, "v1/Node", `{name: n1}`))
	deleted := pod(func(f *request.Fields) { f.Object, f.OldObject, f.Operation = nil, f.Object, admission.Delete })
	scale := create(object(t, "autoscaling/v1/Scale", `{name: web, namespace: shop}`))
	scale.Resource.Group, scale.Resource.Version, scale.Resource.Resource, scale.SubResource = "apps", "v1", "deployments", "scale"
	containers := pod(func(f *request.Fields) { f.SubResource, f.Operation = "ephemeralcontainers", admission.Update })
	for name, test := range map[string]struct {
		rule, namespace string
		request         request.Fields
		whyNot          string
	}{
		"a kind":                    {pods(""), "", pod(nil), ""},
		"another kind":              {"{match: {any: [{resources: {kinds: [Node, apps/v1/Deployment]}}]}}", "", pod(nil), "match.any[0]: kind v1/Pod is none of Node, apps/v1/Deployment"},
		"kinds are exact":           {"{match: {any: [{resources: {kinds: [pod]}}]}}", "", pod(nil), "match.any[0]: kind v1/Pod is none of pod"},
		"the older form":            {"{match: {resources: {kinds: [Pod]}}}", "", pod(nil), ""},
		"the older form of another": {"{match: {resources: {kinds: [Node]}}}", "", pod(nil), "match: kind v1/Pod is none of Node"},
		"one of any":                {"{match: {any: [{resources: {kinds: [Node]}}, {resources: {kinds: [Pod]}}]}}", "", pod(nil), ""},
		"none of any":               {"{match: {any: [{resources: {kinds: [Node]}}, {resources: {kinds: [Pod], operations: [DELETE]}}]}}", "", pod(nil), "match.any[0]: kind v1/Pod is none of Node; match.any[1]: operation CREATE is none of DELETE"},
		"each of all":               {"{match: {all: [{resources: {kinds: [Pod]}}, {resources: {kinds: ['*'], names: [web-*]}}]}}", "", pod(nil), ""},
		"not each of all":           {"{match: {all: [{resources: {kinds: [Pod]}}, {resources: {kinds: ['*'], names: [api-*]}}]}}", "", pod(nil), "match.all[1]: name web-1 matches none of api-*"},
		"an operation":              {pods(", operations: [UPDATE, CREATE]"), "", pod(nil), ""},
		"a name":                    {pods(", name: 'w?b-*'"), "", pod(nil), ""},
		"another name":              {pods(", name: 'w?b'"), "", pod(nil), "match.any[0]: name web-1 does not match w?b"},
		"a name that is to be made": {pods(", names: [web-]"), "", generated, ""},
		"a namespace":               {pods(", namespaces: [lab, sh*]"), "", pod(nil), ""},
		"another namespace":         {pods(", namespaces: [lab, 'sh?']"), "", pod(nil), "match.any[0]: namespace shop matches none of lab, sh?"},
		"annotations":               {pods(", annotations: {n*: '?ello'}"), "", pod(nil), ""},
		"all annotations":           {pods(", annotations: {note: hello, other: '*'}"), "", pod(nil), "match.any[0]: no annotation matches other=*"},
		"a selector":                {pods(", selector: {matchLabels: {app: web}, matchExpressions: [{key: app, operator: Exists}]}"), "", pod(nil), ""},
		"another selector":          {pods(", selector: {matchLabels: {app: api}}"), "", pod(nil), "match.any[0]: selector app=api does not match the object (labels: app=web, example.com/team=blue)"},
		"a selector with wildcards": {pods(", selector: {matchLabels: {example.com/*: 'bl?e', app: web}}"), "", pod(nil), ""},
		"another one with them":     {pods(", selector: {matchLabels: {example.com/*: red}}"), "", pod(nil), "match.any[0]: selector example.com/*=red does not match the object (labels: app=web, example.com/team=blue)"},
		"wildcards need a label":    {pods(", selector: {matchLabels: {'*': '*'}}"), "", generated, "match.any[0]: selector *=* does not match the object (no labels)"},
		"a mistake beside wildcards": {
			pods(", selector: {matchLabels: {app: w*}, matchExpressions: [{key: app, operator: In, values: ['w*']}]}"), "", pod(nil),
			`match.any[0]: selector (values[0][app]: Invalid value: "w*": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '....) does not match the object (labels: app=web, example.com/team=blue)`,
		},
		"labels of the namespace": {pods(", namespaceSelector: {matchLabels: {env: p*}}"), "", pod(nil), ""},
		"other ones, which stay hidden": {
			pods(", namespaceSelector: {matchLabels: {env: test}}"), "", pod(nil),
			"match.any[0]: namespaceSelector env=test does not match namespace shop (labels: env=prod, kubernetes.io/metadata.name=shop)",
		},
		"a namespace without labels": {pods(", namespaceSelector: {matchLabels: {env: test}}"), "", generated, "match.any[0]: namespaceSelector env=test does not match namespace lab (no such label)"},
		"in no namespace":            {"{match: {any: [{resources: {kinds: [Node], namespaceSelector: {matchLabels: {env: test}}}}]}}", "", node, "match.any[0]: namespaceSelector env=test does not match: the object is in no namespace"},
		"in none, without a label":   {"{match: {any: [{resources: {kinds: [Node], namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}}]}}", "", node, ""},
		"a Namespace is not in one":  {"{match: {any: [{resources: {kinds: [Namespace], namespaceSelector: {}}}]}}", "", namespace, "match.any[0]: namespaceSelector does not select objects of kind Namespace"},
		"but it is one":              {"{match: {any: [{resources: {kinds: [Namespace], namespaces: [shop]}}]}}", "", namespace, ""},
		"its label":                  {"{match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}}]}}", "", namespace, ""},
		"its label before it has a name": {
			"{match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}}]}}", "", unnamed,
			"match.any[0]: selector kubernetes.io/metadata.name=kube-system does not match the object (labels: a=b)",
		},
		"the user":                        {"{match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: a*e}]}]}}", "", pod(nil), ""},
		"a group":                         {"{match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: Group, name: 'system:*'}]}]}}", "", pod(nil), ""},
		"nobody of them":                  {"{match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: Group, name: ops}, {kind: ServiceAccount, namespace: ci, name: '*'}]}]}}", "", pod(nil), "match.any[0]: user alice is none of Group ops, ServiceAccount ci/*"},
		"a service account":               {"{match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: ServiceAccount, namespace: 'c?', name: '*'}]}]}}", "", pod(func(f *request.Fields) { f.User = &user.DefaultInfo{Name: "system:serviceaccount:ci:builder"} }), ""},
		"a user of whom nothing is known": {"{match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: bob}]}]}}", "", pod(func(f *request.Fields) { f.User = nil }), ""},
		"who is not excluded either":      {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{subjects: [{kind: User, name: bob}]}]}}", "", pod(func(f *request.Fields) { f.User = nil }), ""},
		"a Role":                          {"{match: {any: [{resources: {kinds: [Pod]}, roles: ['lab:x', 'shop:editor']}]}}", "", pod(nil), ""},
		"another Role":                    {"{match: {any: [{resources: {kinds: [Pod]}, roles: ['shop:edit*']}]}}", "", pod(nil), "match.any[0]: the user has none of the Roles shop:edit*"},
		"a Role and no ClusterRole":       {"{match: {any: [{resources: {kinds: [Pod]}, roles: ['shop:editor'], clusterRoles: [admin]}]}}", "", pod(nil), "match.any[0]: the user has none of the ClusterRoles admin"},
		"excluded":                        {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {names: [x]}}, {resources: {namespaces: [shop]}}]}}", "", pod(nil), "excluded by exclude.any[1]"},
		"excluded by the older form":      {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {clusterRoles: [view]}}", "", pod(nil), "excluded by exclude"},
		"excluded by each of all":         {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {all: [{resources: {names: [web*]}}, {resources: {kinds: [Pod]}}]}}", "", pod(nil), "excluded by all of exclude.all"},
		"not excluded by each of all":     {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {all: [{resources: {names: [web*]}}, {resources: {kinds: [Node]}}]}}", "", pod(nil), ""},
		"nothing excluded":                {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{}], all: []}}", "", pod(nil), ""},
		"nothing excluded by all":         {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {all: [{}, {resources: {kinds: [Pod]}}]}}", "", pod(nil), ""},
		"its namespace":                   {pods(""), "shop", pod(nil), ""},
		"beyond its namespace":            {pods(""), "lab", pod(nil), "the policy is about namespace lab only, not shop"},
		"beyond every namespace":          {"{match: {any: [{resources: {kinds: [Namespace]}}]}}", "shop", namespace, "the policy is about namespace shop only, and the object is in none"},
		"an object that is deleted":       {pods(", selector: {matchLabels: {app: web}}, operations: [DELETE]"), "shop", deleted, ""},
		"no object":                       {pods(""), "", pod(func(f *request.Fields) { f.Object = nil }), "the request has no object"},
		"a subresource":                   {"{match: {any: [{resources: {kinds: [Deployment/scale]}}]}}", "", scale, ""},
		"not the kind of itself":          {"{match: {any: [{resources: {kinds: [Scale, '*/status']}}]}}", "", scale, "match.any[0]: kind Deployment/scale is none of Scale, */status"},
		"not of another kind":             {"{match: {any: [{resources: {kinds: [StatefulSet/scale]}}]}}", "", scale, "match.any[0]: kind Deployment/scale is none of StatefulSet/scale"},
		"not the object around it":        {"{match: {any: [{resources: {kinds: [Deployment]}}]}}", "", scale, "match.any[0]: kind Deployment/scale is none of Deployment"},
		"ephemeral containers":            {pods(""), "", containers, ""},
		"ephemeral containers of all":     {"{match: {any: [{resources: {kinds: ['*']}}]}}", "", containers, ""},
	} {
		t.Run(name, func(t *testing.T) {
			selected, subject := compile(t, test.rule, test.namespace), selection.NewSubject(request.New(test.request), &world{})
			matched, err := selected.Matches(t.Context(), subject)
			if err != nil || matched != (test.whyNot == "") {
				t.Errorf("got %v, error %v", matched, err)
			}
			if whyNot := selected.WhyNot(t.Context(), subject); whyNot != test.whyNot {
				t.Errorf("why not: %q, want %q", whyNot, test.whyNot)
			}
			req := request.New(test.request)
			if matched && !selected.MayMatch(selection.GlanceAt(req)) {
				t.Error("at a glance it does not match")
			}
			if matched && !found(selected, test.namespace, req) {
				t.Error("its kinds do not find the request")
			}
		})
	}
}

// found says whether an index finds a rule for a request by its kinds.
func found(selected *selection.Selection, namespace string, req *request.Request) bool {
	var kinds []match.Kind
	for _, kind := range selected.Kinds() {
		kinds = append(kinds, match.Kind(kind))
	}
	var index *match.Index[string]
	index = index.Edit(nil, []match.Item[string]{{Name: "rule", Criteria: match.CompileKinds(namespace, kinds)}})
	return len(index.Candidates(match.NewSubject(req, &world{}), nil)) > 0
}

// TestGlance: most rules are seen at a glance, or by an index, not to be about a request.
func TestGlance(t *testing.T) {
	pods := func(more string) string { return "{match: {any: [{resources: {kinds: [Pod]" + more + "}}]}}" }
	for name, test := range map[string]struct {
		rule       string
		may, finds bool
	}{
		"it is":                    {pods(", names: [web-*], namespaces: [shop], selector: {matchLabels: {app: web}}"), true, true},
		"another kind":             {"{match: {any: [{resources: {kinds: [Node]}}]}}", false, false},
		"another name":             {pods(", name: api-1"), false, false},
		"names with wildcards":     {pods(", names: [other-*, api-*]"), false, false},
		"one without a beginning":  {pods(", names: [other-*, '*-2']"), false, true},
		"another namespace":        {pods(", namespaces: [bank, lab]"), false, false},
		"another label":            {pods(", selector: {matchLabels: {app: api}}"), false, false},
		"one of several values":    {pods(", selector: {matchExpressions: [{key: app, operator: In, values: [api, store]}]}"), false, true},
		"annotations":              {pods(", annotations: {note: bye}"), false, true},
		"one of any":               {"{match: {any: [{resources: {kinds: [Pod], name: api-1}}, {resources: {kinds: [Pod], namespaces: [shop]}}]}}", true, true},
		"none of any":              {"{match: {any: [{resources: {kinds: [Pod], name: api-1}}, {resources: {kinds: [Pod], name: db-1}}]}}", false, false},
		"the second of all":        {"{match: {all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod], name: db-1}}]}}", false, true},
		"excluded is not seen":     {"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {kinds: [Pod]}}]}}", true, true},
		"the cluster is not asked": {pods(", namespaceSelector: {matchLabels: {env: nowhere}}"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			selected, req := compile(t, test.rule, ""), request.New(create(object(t, "v1/Pod", webPod)))
			if may := selected.MayMatch(selection.GlanceAt(req)); may != test.may {
				t.Errorf("at a glance it may match: %v, want %v", may, test.may)
			}
			if finds := found(selected, "", req); finds != test.finds {
				t.Errorf("its kinds find the request: %v, want %v", finds, test.finds)
			}
		})
	}
}

// TestErrorsMatterWhereTheyDecide: what cannot be read is an error, and never no match,
// where nothing else decides.
func TestErrorsMatterWhereTheyDecide(t *testing.T) {
	const (
		around = "namespaceSelector: {matchLabels: {env: prod}}"
		pods   = "{resources: {kinds: [Pod]}}"
		nodes  = "{resources: {kinds: [Node]}}"
		bad    = "{resources: {kinds: [Pod], " + around + "}}"
		roles  = "{resources: {kinds: [Pod]}, roles: ['a:b']}"
	)
	pod := create(object(t, "v1/Pod", webPod))
	status := pod
	status.SubResource = "status"
	for name, test := range map[string]struct {
		rule    string
		request request.Fields
		matched bool
		err     string
	}{
		"a namespace":                   {"{match: {any: [" + bad + "]}}", pod, false, `reading namespace "shop" for its labels: the store does not answer`},
		"roles":                         {"{match: {any: [" + roles + "]}}", pod, false, "reading each RoleBinding for the roles of the user: the store does not answer"},
		"the kind of a subresource":     {"{match: {any: [{resources: {kinds: [Pod/status]}}]}}", status, false, "finding the kind of pods, to which status belongs: the store does not answer"},
		"one of any matches":            {"{match: {any: [" + bad + ", " + pods + "]}}", pod, true, ""},
		"another of any does not":       {"{match: {any: [" + bad + ", " + nodes + "]}}", pod, false, "reading namespace"},
		"one of all does not":           {"{match: {all: [" + bad + ", " + nodes + "]}}", pod, false, ""},
		"each other of all matches":     {"{match: {all: [" + bad + ", " + pods + "]}}", pod, false, "reading namespace"},
		"the name does not":             {"{match: {any: [{resources: {kinds: [Pod], name: x, " + around + "}}]}}", pod, false, ""},
		"excluded anyway":               {"{match: {any: [" + pods + "]}, exclude: {any: [" + bad + ", " + pods + "]}}", pod, false, ""},
		"perhaps excluded":              {"{match: {any: [" + pods + "]}, exclude: {any: [" + bad + "]}}", pod, false, "reading namespace"},
		"not excluded by all anyway":    {"{match: {any: [" + pods + "]}, exclude: {all: [" + bad + ", " + nodes + "]}}", pod, true, ""},
		"perhaps matched, and excluded": {"{match: {any: [" + bad + "]}, exclude: {any: [" + pods + "]}}", pod, false, ""},
		"not matched, perhaps excluded": {"{match: {any: [" + nodes + "]}, exclude: {any: [" + bad + "]}}", pod, false, ""},
		"another subresource":           {"{match: {any: [{resources: {kinds: [Pod/exec]}}]}}", status, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			subject := selection.NewSubject(request.New(test.request), &world{broken: true})
			selected := compile(t, test.rule, "")
			matched, err := selected.Matches(t.Context(), subject)
			if matched != test.matched || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, error %v; want %v, error %q", matched, err, test.matched, test.err)
			}
			if whyNot := selected.WhyNot(t.Context(), subject); (whyNot == "") != (matched || err != nil) {
				t.Errorf("why not: %q", whyNot)
			}
			if err != nil && (!selected.MayMatch(selection.GlanceAt(request.New(test.request))) || !found(selected, "", request.New(test.request))) {
				t.Error("the rule is passed over")
			}
		})
	}
}

func TestSubjectAsksOnceAndOnlyIfAsked(t *testing.T) {
	w := &world{}
	fields := create(object(t, "v1/Pod", webPod))
	fields.SubResource = "status"
	subject := selection.NewSubject(request.New(fields), w)
	cheap := compile(t, "{match: {any: [{resources: {kinds: [Pod, Node/exec], names: ['*']}, subjects: [{kind: User, name: '*'}]}]}}", "")
	if _, err := cheap.Matches(t.Context(), subject); err != nil || len(w.asked) > 0 {
		t.Errorf("asked for %q, error %v", w.asked, err)
	}
	all := compile(t, "{match: {any: [{resources: {kinds: [Pod/status], namespaceSelector: {matchLabels: {env: prod}}}, roles: ['shop:editor'], clusterRoles: [view]}]}}", "")
	for range 3 {
		if matched, err := all.Matches(t.Context(), subject); !matched || err != nil {
			t.Errorf("got %v, error %v", matched, err)
		}
	}
	if want := []string{"kind of pods", "namespace shop", "RoleBinding", "ClusterRoleBinding"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked for %q, want %q", w.asked, want)
	}
}

func TestSetObject(t *testing.T) {
	labelled := compile(t, "{match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {app: api}}, annotations: {note: bye}, names: [web-2]}}]}}", "")
	fields := create(object(t, "v1/Pod", webPod))
	subject := selection.NewSubject(request.New(fields), &world{})
	for i, want := range []bool{false, true, false} {
		switch i {
		case 1:
			subject.SetObject(object(t, "v1/Pod", `{name: web-2, namespace: shop, labels: {app: api}, annotations: {note: bye}}`))
		case 2:
			subject.SetObject(fields.Object)
		}
		if got, err := labelled.Matches(t.Context(), subject); got != want || err != nil {
			t.Errorf("%d: got %v, error %v", i, got, err)
		}
	}
	// A rule that moves the object brings it into no other namespace's policy.
	subject.SetObject(object(t, "v1/Pod", `{name: web-2, namespace: lab}`))
	if got, err := compile(t, "{match: {any: [{resources: {kinds: [Pod]}}]}}", "lab").Matches(t.Context(), subject); got || err != nil {
		t.Errorf("moved: got %v, error %v", got, err)
	}
}

func TestWithoutCompileIsAnError(t *testing.T) {
	subject := selection.NewSubject(request.New(create(object(t, "v1/Pod", webPod))), &world{})
	for name, selected := range map[string]*selection.Selection{"nil": nil, "zero": {}} {
		matched, err := selected.Matches(t.Context(), subject)
		if matched || err == nil || selected.NeedsRoles() || len(selected.Kinds()) > 0 {
			t.Errorf("%s: got %v, error %v", name, matched, err)
		}
	}
}

func TestNeedsRoles(t *testing.T) {
	for document, want := range map[string]bool{
		"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {names: [a]}}]}}":      false,
		"{match: {any: [{resources: {kinds: [Pod]}, roles: ['a:b']}]}}":                                   true,
		"{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {subjects: [{kind: User, name: alice}]}}": true,
	} {
		if got := compile(t, document, "").NeedsRoles(); got != want {
			t.Errorf("%s: %v", document, got)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1_000)
	var filters, names []string
	for i := range 50 {
		names = append(names, fmt.Sprint("n", i, long))
	}
	for range 20 {
		filters = append(filters, "{resources: {kinds: [Pod], names: ["+strings.Join(names, ", ")+"]}}")
	}
	fields := create(object(t, "v1/Pod", "{name: "+long+", namespace: shop}"))
	selected := compile(t, "{match: {any: ["+strings.Join(filters, ", ")+"]}}", "")
	whyNot := selected.WhyNot(t.Context(), selection.NewSubject(request.New(fields), &world{}))
	if len(whyNot) > 8_000 || !strings.HasSuffix(whyNot, "and 42 more; and 16 more") {
		t.Errorf("%d bytes: ...%s", len(whyNot), whyNot[max(0, len(whyNot)-100):])
	}
}

// TestMatchesDoesNotAllocate: kinds and names are what nearly all rules ask for.
func TestMatchesDoesNotAllocate(t *testing.T) {
	selected := compile(t, "{match: {any: [{resources: {kinds: [Node, apps/v1/Deployment]}}, {resources: {kinds: [Pod], names: ['w?b-*'], namespaces: [shop]}}]}, exclude: {any: [{resources: {names: [x*]}}]}}", "")
	subject := selection.NewSubject(request.New(create(object(t, "v1/Pod", webPod))), &world{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		if matched, err := selected.Matches(ctx, subject); !matched || err != nil {
			t.Fatal(matched, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatches(b *testing.B) {
	selected := compile(b, "{match: {any: [{resources: {kinds: [Pod], names: ['w?b-*']}}]}}", "")
	subject := selection.NewSubject(request.New(create(object(b, "v1/Pod", webPod))), &world{})
	b.ReportAllocs()
	for b.Loop() {
		if matched, err := selected.Matches(b.Context(), subject); !matched || err != nil {
			b.Fatal(matched, err)
		}
	}
}
