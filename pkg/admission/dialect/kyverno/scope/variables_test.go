// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// TestContext has what Kyverno 1.19 does with the same entries.
func TestContext(t *testing.T) {
	view := viewOf(t, world)
	tests := []struct {
		name, entries, expression string
		want, wantErr             string
	}{
		{name: "number", entries: `[{name: v, variable: {value: 76}}]`, expression: "v", want: "76"},
		{name: "false", entries: `[{name: v, variable: {value: false}}]`, expression: "v", want: "false"},
		{name: "empty text", entries: `[{name: v, variable: {value: ""}}]`, expression: "v", want: `""`},
		{name: "with variables", entries: `[{name: v, variable: {value: {k: "n={{request.object.spec.size}}", o: "{{request.object.spec.size}}"}}}]`, expression: "v", want: `{"k":"n=5","o":5}`},
		{name: "path of the variables", entries: `[{name: v, variable: {jmesPath: request.object.spec.m}}]`, expression: "v.x", want: "2"},
		{name: "path of a value", entries: `[{name: v, variable: {value: {a: [1, {b: deep}]}, jmesPath: "a[1].b"}}]`, expression: "v", want: `"deep"`},
		{name: "path with variables", entries: `[{name: k, variable: {value: m}}, {name: v, variable: {jmesPath: "request.object.spec.{{k}}.x"}}]`, expression: "v", want: "2"},
		{name: "path that variables empty", entries: `[{name: k, variable: {value: ""}}, {name: v, variable: {value: {a: 1}, jmesPath: "{{k}}", default: d}}]`, expression: "v", want: `{"a":1}`},
		{name: "path that variables break", entries: `[{name: k, variable: {value: "a["}}, {name: v, variable: {value: {a: 1}, jmesPath: "{{k}}"}}]`, expression: "v", wantErr: `context entry "v": jmesPath: `},
		{name: "default for a path that variables break", entries: `[{name: k, variable: {value: "a["}}, {name: v, variable: {value: {a: 1}, jmesPath: "{{k}}", default: d}}]`, expression: "v", want: `"d"`},
		{name: "default for a call that variables break", entries: `[{name: k, variable: {value: "nope(a)"}}, {name: v, variable: {jmesPath: "{{k}}", default: d}}]`, expression: "v", want: `"d"`},
		{name: "path that is no text", entries: `[{name: v, variable: {jmesPath: "{{request.object.spec.size}}"}}]`, expression: "v", wantErr: `jmesPath: a string is needed, and the variables give a number`},
		{name: "default for a missing field", entries: `[{name: v, variable: {jmesPath: request.object.nope, default: {d: 1}}}]`, expression: "v", want: `{"d":1}`},
		{name: "default for a missing field of a value", entries: `[{name: v, variable: {value: {a: 1}, jmesPath: zz, default: 5}}]`, expression: "v", want: "5"},
		{name: "default for null", entries: `[{name: v, variable: {jmesPath: "request.object.spec.m.\"null\"", default: d}}]`, expression: "v", want: `"d"`},
		{name: "no default for null of a value", entries: `[{name: v, variable: {value: {a: null}, jmesPath: a, default: d}}]`, expression: "v", wantErr: "it is null, which no variable may be"},
		{name: "default for a failing function", entries: `[{name: v, variable: {jmesPath: "add('a', request.object.spec.size)", default: d}}]`, expression: "v", want: `"d"`},
		{name: "default with variables", entries: `[{name: v, variable: {jmesPath: request.object.nope, default: "no {{request.object.spec.s}}"}}]`, expression: "v", want: `"no text"`},
		{name: "default that is not needed and fails", entries: `[{name: v, variable: {value: {a: 1}, jmesPath: a, default: "{{request.object.nope}}"}}]`, expression: "v", wantErr: "default: "},
		{name: "missing without default", entries: `[{name: v, variable: {jmesPath: request.object.nope}}]`, expression: "v", wantErr: `context entry "v": jmesPath: Unknown key "nope" in path`},
		{name: "error is not missing", entries: `[{name: v, variable: {jmesPath: request.object.nope}}]`, expression: "v || 'z'", wantErr: `Unknown key "nope"`},
		{name: "default for an error", entries: `[{name: b, variable: {jmesPath: request.object.nope}}, {name: v, variable: {jmesPath: b.x, default: d}}]`, expression: "v", want: `"d"`},
		{name: "null", entries: `[{name: v, variable: {value: "{{request.object.spec.m.\"null\"}}"}}]`, expression: "v", wantErr: "it is null"},
		{name: "unknown", entries: `[]`, expression: "v", wantErr: `Unknown key "v"`},
		{name: "lazy", entries: `[{name: bad, variable: {jmesPath: request.object.nope}}, {name: v, variable: {value: fine}}]`, expression: "v", want: `"fine"`},

		{name: "chain", entries: `[{name: a, variable: {jmesPath: request.object.spec.size}}, {name: b, variable: {jmesPath: "add(a, ` + "`1`" + `)"}}, {name: c, variable: {value: "{{a}}-{{b}}"}}]`, expression: "c", want: `"5-6"`},
		{name: "later entry", entries: `[{name: a, variable: {value: "{{b}}"}}, {name: b, variable: {value: x}}]`, expression: "a", wantErr: `Unknown key "b"`},
		{name: "itself", entries: `[{name: a, variable: {jmesPath: a, default: fresh}}]`, expression: "a", want: `"fresh"`},
		{name: "last of a name", entries: `[{name: a, variable: {value: one}}, {name: a, variable: {value: two}}]`, expression: "a", want: `"two"`},
		{name: "of the former of its name", entries: `[{name: a, variable: {value: "1"}}, {name: a, variable: {value: "2{{a}}"}}]`, expression: "a", want: `"21"`},
		{name: "last of a name before it", entries: `[{name: a, variable: {value: "1"}}, {name: b, variable: {value: "b{{a}}"}}, {name: a, variable: {value: "2"}}]`, expression: "[a, b]", want: `["2","b1"]`},
		{name: "former of a name fails", entries: `[{name: a, variable: {jmesPath: request.object.nope}}, {name: a, variable: {value: two}}]`, expression: "a", wantErr: `Unknown key "nope"`},
		{name: "name with a dot", entries: `[{name: a.b, variable: {value: 7}}]`, expression: `"a.b"`, want: "7"},

		{name: "configMap", entries: `[{name: cm, configMap: {name: one, namespace: shop}}]`, expression: "[cm.data.json, cm.metadata.labels.grp, cm.kind]", want: `["{\"a\": 1}","x",null]`},
		{name: "configMap by variables", entries: `[{name: cm, configMap: {name: "{{request.object.metadata.labels.cfg}}", namespace: "{{request.namespace}}"}}]`, expression: "cm.data.v", want: `"one-v"`},
		{name: "configMap by a configMap", entries: `[{name: a, configMap: {name: one, namespace: shop}}, {name: b, configMap: {name: "{{a.data.next}}", namespace: shop}}]`, expression: "b.data.v", want: `"two-v"`},
		{name: "configMap of the namespace default", entries: `[{name: cm, configMap: {name: base}}]`, expression: "cm.data.v", want: `"default-v"`},
		{name: "configMap without data", entries: `[{name: cm, configMap: {name: empty, namespace: shop}}]`, expression: "cm.data", want: "null"},
		{name: "no such key", entries: `[{name: cm, configMap: {name: one, namespace: shop}}]`, expression: "cm.data.nope", wantErr: `Unknown key "nope"`},
		{name: "no such configMap", entries: `[{name: cm, configMap: {name: none, namespace: shop}}]`, expression: "cm.data || 'z'", wantErr: `context entry "cm": ConfigMap shop/none does not exist`},
		{name: "configMap without a name", entries: `[{name: e, variable: {value: ""}}, {name: cm, configMap: {name: "{{e}}", namespace: shop}}]`, expression: "cm", wantErr: "configMap.name: the variables leave it empty"},
		{name: "configMap with a number", entries: `[{name: cm, configMap: {name: "{{request.object.spec.size}}", namespace: shop}}]`, expression: "cm", wantErr: "configMap.name: a string is needed, and the variables give a number"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := newRun()
			variables := scope.New(policy.Input{Request: widgetRequest(t), View: view}, run)
			defer variables.Begin(mustCompile(t, "", test.entries))()
			got, err := resolve(t, run, variables, test.expression)
			check(t, got, err, test.want, test.wantErr)
			again, errAgain := resolve(t, run, variables, test.expression)
			if again != got || (err == nil) != (errAgain == nil) {
				t.Errorf("got %s and %v when asked again", again, errAgain)
			}
		})
	}
}

func check(t *testing.T, got string, err error, want, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && err != nil:
		t.Errorf("got error %v", err)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("got %s and error %v, want error %q", got, err, wantErr)
	case got != want:
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestScopes(t *testing.T) {
	run := newRun()
	variables := scope.New(policy.Input{Request: widgetRequest(t), View: viewOf(t, world)}, run)
	is := func(expression, want string) {
		t.Helper()
		got, err := resolve(t, run, variables, expression)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
	unknown := func(name string) string { return `Unknown key "` + name + `" in path` }

	is("element", unknown("element"))
	end := variables.Begin(mustCompile(t, "", `[{name: v, variable: {value: rule}}, {name: seen, variable: {value: "{{request.object.spec.size}}"}}]`))
	is("v", `"rule"`)
	popOuter := variables.Push(map[string]any{"name": "x"}, 3)
	for index, want := range []string{`"a-3-rule"`, `"b-3-rule"`} {
		pop := variables.Push([]string{"a", "b"}[index], index)
		endInner := variables.Begin(mustCompile(t, "", `[{name: v, variable: {value: "{{element}}-{{elementIndex0}}-{{v}}"}}]`))
		is("v", want)
		is("[element, elementIndex, element0.name, elementIndex0, elementIndex1]", `["`+[]string{"a", "b"}[index]+`",`+[]string{"0", "1"}[index]+`,"x",3,`+[]string{"0", "1"}[index]+`]`)
		is("element2", unknown("element2"))
		is("element01", unknown("element01"))
		is("elements", unknown("elements"))
		endInner()
		pop()
		is("v", `"rule"`)
	}
	is("element.name", `"x"`)
	popOuter()
	is("element", unknown("element"))

	is("seen", "5")
	changed := object(t, strings.Replace(widget, "size: 5", "size: 6", 1))
	variables.SetObject(changed)
	is("request.object.spec.size", "6")
	is("seen", "5")
	end()
	is("v", unknown("v"))
	end = variables.Begin(mustCompile(t, "", `[{name: v, variable: {jmesPath: v, default: fresh}}, {name: seen, variable: {value: "{{request.object.spec.size}}"}}]`))
	is("[v, seen]", `["fresh",6]`)
	end()
}

// TestEntriesSeeTheirLoops has entries of a rule, which do not see the elements of loops
// that begin later: what they are must not depend on when they are asked for.
func TestEntriesSeeTheirLoops(t *testing.T) {
	run := newRun()
	variables := scope.New(policy.Input{Request: widgetRequest(t), View: viewOf(t, "")}, run)
	defer variables.Begin(mustCompile(t, "", `[{name: v, variable: {jmesPath: element, default: none}}]`))()
	defer variables.Push("x", 0)()
	got, err := resolve(t, run, variables, "[v, element]")
	check(t, got, err, `["none","x"]`, "")
}

func TestRequest(t *testing.T) {
	req := widgetRequest(t)
	tests := []struct{ expression, want, wantErr string }{
		{expression: "request.[uid, name, namespace, operation, dryRun]", want: `["u-1","w","shop","CREATE",false]`},
		{expression: "request.[kind, resource, requestKind.kind]", want: `[{"group":"example.com","kind":"Widget","version":"v1"},{"group":"example.com","resource":"widgets","version":"v1"},"Widget"]`},
		{expression: "request.userInfo", want: `{"extra":{"scopes":["a","b"]},"groups":["dev"],"uid":"7","username":"alice"}`},
		{expression: "request.object.spec.size", want: "5"},
		{expression: "request.oldObject.spec.size", wantErr: `Unknown key "oldObject"`},
		{expression: "request.oldObject.spec.size || 'none'", want: `"none"`},
		{expression: "request.subResource", wantErr: `Unknown key "subResource"`},
		{expression: "[serviceAccountName, serviceAccountNamespace]", want: `["",""]`},
		{expression: "request.roles", want: `["shop:reader"]`},
		{expression: "request.clusterRoles", want: `["edit"]`},
		{expression: "images", wantErr: `Unknown key "images"`},
		{expression: "sort(keys(@))", want: `["request","serviceAccountName","serviceAccountNamespace"]`},
	}
	view := viewOf(t, world)
	for _, test := range tests {
		t.Run(test.expression, func(t *testing.T) {
			run := newRun()
			got, err := resolve(t, run, scope.New(policy.Input{Request: req, View: view}, run), test.expression)
			check(t, got, err, test.want, test.wantErr)
		})
	}
}

func TestRequestThatDeletes(t *testing.T) {
	req := request.New(request.Fields{Operation: admission.Delete, OldObject: object(t, widget), SubResource: "scale"})
	run := newRun()
	variables := scope.New(policy.Input{Request: req, View: viewOf(t, "")}, run)
	got, err := resolve(t, run, variables, "[request.object, request.oldObject.spec.size, request.subResource, request.roles]")
	check(t, got, err, `[null,5,"scale",null]`, "")
}

func TestServiceAccount(t *testing.T) {
	for name, want := range map[string]string{
		"system:serviceaccount:ci:builder":   `["ci","builder"]`,
		"system:serviceaccount:ci":           `["",""]`,
		"system:serviceaccount::builder":     `["",""]`,
		"system:serviceaccount:ci:builder:x": `["",""]`,
		"not-a-service-account-at:ci:x":      `["",""]`,
	} {
		run := newRun()
		req := request.New(request.Fields{User: &user.DefaultInfo{Name: name}})
		got, err := resolve(t, run, scope.New(policy.Input{Request: req}, run), "[serviceAccountNamespace, serviceAccountName]")
		if got != want || err != nil {
			t.Errorf("%s is %s (%v), want %s", name, got, err, want)
		}
	}
}

func TestRoles(t *testing.T) {
	run := newRun()
	variables := scope.New(policy.Input{Request: widgetRequest(t)}, run) // without a view
	variables.WithoutRoles()
	if got, err := resolve(t, run, variables, "request.[name, not_null(roles, 'none')]"); got != `["w","none"]` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if len(variables.Read()) != 0 {
		t.Errorf("read %v", variables.Read())
	}
	for text, want := range map[string]bool{
		`{a: ["{{request.roles}}"]}`:         true,
		`{"{{request.clusterRoles[0]}}": 1}`: true,
		`{a: ["{{request.userInfo}}", 1]}`:   false,
	} {
		if got := scope.AsksRoles("x", value(t, text)); got != want {
			t.Errorf("AsksRoles(%s) is %v", text, got)
		}
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	tests := []struct {
		name       string
		run        *jmespath.Run
		entries    string
		expression string
		want       error
		wantErr    string
	}{
		{
			name: "size", run: &jmespath.Run{Steps: 1 << 20, Bytes: 64 << 20}, expression: "[a, b, v]", wantErr: "larger than 2097152 bytes together",
			// A default must not stand for it.
			entries: `[{name: a, variable: {value: ["` + long + `", "` + long + `"]}}, {name: b, variable: {value: ["{{a}}", "x"]}}, {name: v, variable: {jmesPath: b, default: d}}]`,
		},
		{name: "steps", run: &jmespath.Run{Steps: 20, Bytes: 1 << 20}, expression: "v", want: jmespath.ErrBudget, entries: `[{name: a, variable: {value: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}}, {name: v, variable: {jmesPath: a, default: d}}]`},
		{name: "nesting", run: newRun(), expression: "v99", wantErr: "more than 64 entries", entries: chainOf(100)},
		{name: "enough nesting", run: newRun(), expression: "v40", entries: chainOf(100)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			variables := scope.New(policy.Input{Request: widgetRequest(t)}, test.run)
			variables.WithoutRoles()
			defer variables.Begin(mustCompile(t, "", test.entries))()
			got, err := resolve(t, test.run, variables, test.expression)
			switch {
			case test.want != nil && !errors.Is(err, test.want),
				test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)),
				test.want == nil && test.wantErr == "" && err != nil:
				t.Errorf("got %.100s and error %v, want %v%s", got, err, test.want, test.wantErr)
			}
		})
	}
}

// chainOf returns entries that depend on one another.
func chainOf(count int) string {
	var text strings.Builder
	text.WriteString("[{name: v0, variable: {value: x}}")
	name := func(i int) string {
		return "v" + strings.TrimLeft(string([]rune{rune('0' + i/10), rune('0' + i%10)}), "0")
	}
	for i := 1; i < count; i++ {
		from := name(i - 1)
		if i == 1 {
			from = "v0"
		}
		text.WriteString(", {name: " + name(i) + ", variable: {jmesPath: " + from + ", default: d}}")
	}
	return text.String() + "]"
}

// TestSizeOfIterations has more in all iterations together than may be at a time.
func TestSizeOfIterations(t *testing.T) {
	entries := mustCompile(t, "", `[{name: v, variable: {value: "`+strings.Repeat("x", 1<<20)+`"}}]`)
	run := newRun()
	variables := scope.New(policy.Input{Request: widgetRequest(t)}, run)
	for range 5 {
		end := variables.Begin(entries)
		if got, err := resolve(t, run, variables, "length(v)"); got != "1048576" || err != nil {
			t.Fatal(got, err)
		}
		end()
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	run := newRun()
	variables := scope.New(policy.Input{Request: widgetRequest(t)}, run)
	defer variables.Begin(mustCompile(t, "", `[{name: v, variable: {jmesPath: request.object.nope, default: d}}]`))()
	cancel()
	if got, ok, err := variables.Field(ctx, "v"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, %v", got, ok, err)
	}
}

// TestShared has many requests, and policies of one request, at the same time.
func TestShared(t *testing.T) {
	entries := mustCompile(t, "", `[{name: cm, configMap: {name: one, namespace: shop}},
		{name: list, apiCall: {urlPath: "/api/v1/namespaces/{{request.namespace}}/configmaps", jmesPath: "items[].metadata.name"}},
		{name: v, variable: {value: "{{request.object.spec.size}} {{cm.data.v}} {{list[0]}}"}}]`)
	view, req := viewOf(t, world), widgetRequest(t)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			run := newRun()
			variables := scope.New(policy.Input{Request: req, View: view}, run)
			defer variables.Begin(entries)()
			if got, err := resolve(t, run, variables, "[v, request.userInfo.username]"); got != `["5 one-v empty","alice"]` || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	wg.Wait()
}
