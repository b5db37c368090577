// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

const (
	canary    = "kanarienvogel" // a value
	canaryKey = "goldammer"     // a key
)

func secret(name string) *unstructured.Unstructured {
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": name, "namespace": "default", "labels": map[string]any{"app": "web"},
			"annotations":   map[string]any{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + encoded + `"}}`},
			"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:data": map[string]any{"f:" + canaryKey: map[string]any{}}}}},
		},
		"data":       map[string]any{"password": encoded, canaryKey: encoded, "number": "MQ=="},
		"stringData": map[string]any{"password": canary, canaryKey: canary, "kind": canary},
	}}
}

func onSecret() *request.Request {
	return request.New(request.Fields{
		UID: "u", Name: "mine", Namespace: "default", Operation: admission.Update,
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Object:   secret("mine"), OldObject: secret("mine"),
	})
}

// tellsData says whether a text holds something from the data of a secret.
func tellsData(text string) bool {
	for _, part := range []string{canary, canaryKey, base64.StdEncoding.EncodeToString([]byte(canary))} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// spilling returns expressions that yield what ROOT holds, in all ways that come
// to mind.
func spilling() []string {
	reads := []string{
		"ROOT", "ROOT.data", "ROOT['data']", "ROOT.?data", "ROOT[?'data']", "ROOT.data.password", "ROOT.data['password']",
		"ROOT['da' + 'ta']['password']", "ROOT.?data.?password", "ROOT.?stringData.password", "ROOT.stringData.password", "ROOT.stringData",
		"ROOT.metadata", "ROOT.metadata.annotations", "ROOT.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
		"ROOT['metadata']", "ROOT.metadata.managedFields", "ROOT.metadata.managedFields[0]", "ROOT[ROOT.kind == 'x' ? 'kind' : 'stringData']",
		"ROOT[ROOT.kind == 'x' ? 'kind' : 'stringData'].password", "ROOT[ROOT.kind == 'x' ? 'kind' : 'stringData'].kind", "ROOT.data.map(k, k)", "ROOT.data.filter(k, k != '')", "[ROOT][0].data", "{'a': ROOT}['a'].data",
		"(ROOT.kind == 'x' ? ROOT : ROOT).stringData.password", "(true ? ROOT.metadata : ROOT.data)", "ROOT.stringData.transformMap(k, v, v)", "optional.of(ROOT).?data",
		"string(ROOT.stringData.password)", "bytes(ROOT.stringData.password)", "ROOT.stringData.password.split('x')",
		".ROOT.stringData.password", "(.ROOT).stringData.password", "[0].map(i, ROOT.stringData.password)[0]", "{ROOT.stringData.password: 1}.map(k, k)[0]",
		"[ROOT].map(x, x.stringData.password)[0]", "[ROOT].filter(ROOT, ROOT.stringData.password != '')[0].stringData.password", "ROOT.stringData[?'password'].orValue('')",
		"[ROOT.stringData.password].join(',')", "'%s'.format([ROOT.stringData.password])", "ROOT.stringData.password.lowerAscii().replace('z', '')",
		"ROOT.stringData.password + ''", "[ROOT.stringData.password]", "int(ROOT.stringData.password)", "duration(ROOT.stringData.password)", "quantity(ROOT.stringData.password)",
		"ROOT.data[ROOT.stringData.password]", "ROOT.metadata.labels[ROOT.stringData.password]", "url('http://' + ROOT.stringData.password)",
	}
	var all []string
	for i, read := range reads {
		all = append(all, "dyn("+read+") == 1")
		if i%4 == 0 {
			all = append(all, "has(ROOT.data.password) && dyn("+read+") != null")
		}
	}
	return append(all,
		"has(ROOT.stringData."+"password) && has(ROOT.data)",
		"ROOT.data.all(k, ROOT.data[k] == '')", "ROOT.stringData.exists(k, k == 'x' || ROOT.stringData[k] == 'y')",
		"ROOT.stringData.password.matches(ROOT.stringData.password)",
		"authorizer.group('').resource('secrets').name(ROOT.stringData.password).check('get').allowed()",
		"authorizer.group('').resource('secrets').name(ROOT.stringData.password).check('get').reason() == ''",
		"authorizer.path('/' + ROOT.stringData.password).check('get').errored()",
	)
}

// spillingPolicies returns the expressions above in every place of a policy, read
// directly and through variables, with another variable that nothing reads.
func spillingPolicies(t *testing.T, root, unread string) []policy.Program {
	t.Helper()
	dialect := cel.New()
	var programs []policy.Program
	add := func(s spec) {
		s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"}
		s.Variables = append(s.Variables, admissionregistrationv1.Variable{Name: "unread", Expression: unread})
		programs = append(programs, compiled(t, dialect, stored(s)).Policy.Program)
	}
	for i, expression := range spilling() {
		if root == "object" && i%2 == 1 || root == "oldObject" && i%2 == 0 { // they are alike
			continue
		}
		expression = strings.ReplaceAll(expression, "ROOT", root)
		operand := expression
		if inner, ok := strings.CutPrefix(expression, "dyn("); ok {
			operand = strings.TrimSuffix(inner, ") == 1")
		}
		message := "string(" + expression + ")"
		if strings.HasPrefix(expression, "authorizer") { // which messages do not have
			message = "string(variables.v)"
		}
		told := message
		if operand != expression { // the value itself, where that is a text
			told = "type(dyn(" + operand + ")) == string ? string(dyn(" + operand + ")) : " + message
		}
		rules := []admissionregistrationv1.Validation{
			{Expression: expression, MessageExpression: message},
			{Expression: "false", MessageExpression: told},
			{Expression: "false", MessageExpression: "string(variables.v)"},
		}
		for _, read := range []string{"variables.v", "variables.list", "variables.list[0]", "variables.part", "variables.v.data", "has(variables.v.data)"} {
			rules = append(rules, admissionregistrationv1.Validation{Expression: "dyn(" + read + ") == 1"})
		}
		add(spec{
			Variables: []admissionregistrationv1.Variable{
				{Name: "v", Expression: "dyn(" + operand + ")"}, {Name: "list", Expression: "[variables.v]"}, {Name: "part", Expression: "variables.v.data"},
			},
			Validations: rules,
			AuditAnnotations: []admissionregistrationv1.AuditAnnotation{
				{Key: "k", ValueExpression: told}, {Key: "v", ValueExpression: "string(variables.v)"},
			},
		})
		add(spec{
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: expression}},
			Validations:     []admissionregistrationv1.Validation{{Expression: "true"}},
		})
	}
	return programs
}

// TestSecretsAreConcealed: no way to write an expression makes an explanation
// tell what lies in the data of a Secret that the asker may not read.
func TestSecretsAreConcealed(t *testing.T) {
	for name, test := range map[string]struct {
		roots         []string
		unread        string
		values, texts int // that are told and concealed, at least
	}{
		"with values":    {[]string{"object", "oldObject", "params"}, "1", 300, 100},
		"without values": {[]string{"params"}, "'" + strings.Repeat("x", 64<<10) + "'", 0, 50}, // too large
	} {
		t.Run(name, func(t *testing.T) {
			var seen spilled
			for _, root := range test.roots {
				for _, program := range spillingPolicies(t, root, test.unread) {
					seen.look(t, program)
				}
			}
			t.Logf("%+v", seen)
			if min(seen.texts, seen.concealedTexts, seen.asked) < test.texts || min(seen.values, seen.concealedValues) < test.values {
				t.Error("the expressions prove little")
			}
		})
	}
}

// spilled counts what is told to those who may read it, and what is concealed
// from the others.
type spilled struct{ values, texts, concealedValues, concealedTexts, asked int }

func (s *spilled) look(t *testing.T, program policy.Program) {
	t.Helper()
	view := emptyCluster(t)
	for name, explain := range map[string]*policy.Explain{
		"nobody asked": {},
		"may read another": {MayRead: func(_ context.Context, ref verdict.ParamRef) bool {
			s.asked++
			return ref != verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "mine"} &&
				ref != verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "theirs"}
		}},
		"may": mayReadAll(),
	} {
		for _, finding := range (asking{request: onSecret(), param: secret("theirs"), explain: explain, view: view}).with(t, program) {
			texts := finding.Shown(finding.Message) + finding.Shown(finding.Value)
			if finding.Trace == nil {
				if name != "may" {
					t.Fatalf("%s: no trace of %s", name, finding.Expression)
				}
				continue // a match condition: nothing to conceal, and no values
			}
			values := marshalled(t, finding.Trace.Values)
			if name == "may" {
				s.values += count(tellsData(values))
				s.texts += count(tellsData(texts))
				continue
			}
			if tellsData(values) || tellsData(texts) {
				t.Fatalf("%s: %s\n%s\n%s", name, finding.Expression, values, texts)
			}
			concealed := strings.Contains(values, `{"concealed":"data of Secret default/`)
			if finding.Trace.Concealed != "" {
				concealed = true
				s.concealedTexts++
			}
			s.concealedValues += count(strings.Contains(values, `"concealed"`))
			if concealed && (finding.Trace.Cost != 0 || finding.Trace.Took != 0) {
				t.Errorf("%s: %s: the cost %d or the time %s tells how long the data is", name, finding.Expression, finding.Trace.Cost, finding.Trace.Took)
			}
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// TestConcealed holds what is shown of a Secret.
func TestConcealed(t *testing.T) {
	mine := `{"concealed":"data of Secret default/mine: you may not get it"}`
	theirs := `{"concealed":"data of Secret default/theirs: you may not get it"}`
	for expression, want := range map[string]string{
		"object.metadata.name == 'mine' && object.metadata.labels['app'] == 'web' && object.type == 'Opaque'": `{"object.metadata.labels['app']":"web","object.metadata.name":"mine","object.type":"Opaque"}`,
		"object.data.password == ''":                     `{"object.data.password":` + mine + `}`,
		"has(object.data.password)":                      `{"has(object.data.password)":` + mine + `}`,
		"object == oldObject":                            `{"object":` + mine + `,"oldObject":` + mine + `}`,
		"params.stringData == object.metadata.name":      `{"object.metadata.name":"mine","params.stringData":` + theirs + `}`,
		"variables.name == variables.count":              `{"object.data":` + mine + `,"object.metadata.name":"mine","variables.count":` + mine + `,"variables.name":"mine"}`,
		"request.name == 'mine' && variables.again == 0": `{"object.data":` + mine + `,"request.name":"mine","variables.again":` + mine + `,"variables.count":` + mine + `}`,
	} {
		obj := stored(spec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"},
			Variables: []admissionregistrationv1.Variable{
				{Name: "name", Expression: "object.metadata.name"}, {Name: "count", Expression: "object.data.size()"}, {Name: "again", Expression: "dyn(variables.count)"},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: strings.Replace(expression, "== variables.count", "== dyn(variables.count)", 1)}},
		})
		findings := asking{policy: obj, request: onSecret(), param: secret("theirs"), explain: &policy.Explain{}}.findings(t)
		if got := marshalled(t, findings[0].Trace.Values); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", expression, got, want)
		}
	}
}

// TestConcealedObjects: of a param and of the Namespace of the request, whatever
// they are, the asker sees what they may get. The objects of the request are
// theirs.
func TestConcealedObjects(t *testing.T) {
	const (
		param     = `{"concealed":"ConfigMap default/limit: you may not get it"}`
		namespace = `{"concealed":"Namespace default: you may not get it"}`
	)
	mayRead := func(kind string) *policy.Explain {
		return &policy.Explain{MayRead: func(_ context.Context, ref verdict.ParamRef) bool {
			return ref == verdict.ParamRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "limit"} && kind == ref.Kind ||
				ref == verdict.ParamRef{APIVersion: "v1", Kind: "Namespace", Name: "default"} && kind == ref.Kind
		}}
	}
	for name, test := range map[string]struct {
		explain    *policy.Explain
		expression string
		values     string
		message    string // of a messageExpression that quotes the expression
	}{
		"a param": {
			mayRead("Namespace"), "params.registry == namespaceObject.metadata.name",
			`{"namespaceObject.metadata.name":"default","params.registry":` + param + `}`, "(concealed: ConfigMap default/limit: you may not get it)",
		},
		"the name of a param": {
			mayRead(""), "params.metadata.name == params.metadata.namespace && params.kind == params.apiVersion",
			`{"params.metadata.name":"limit","params.metadata.namespace":"default"}`, "got false",
		},
		"the labels of a param": {mayRead("Namespace"), "has(params.metadata.labels)", `{"has(params.metadata.labels)":` + param + `}`, "(concealed: ConfigMap default/limit: you may not get it)"},
		"through variables": {
			mayRead("Namespace"), "variables.tooMany == false",
			`{"object.spec.replicas":6,"params.maxReplicas":` + param + `,"variables.tooMany":` + param + `,"variables.twice":12}`, "(concealed: ConfigMap default/limit: you may not get it)",
		},
		"a namespace": {
			mayRead("ConfigMap"), "namespaceObject.metadata.labels.size() == params.maxReplicas",
			`{"namespaceObject.metadata.labels":` + namespace + `,"params.maxReplicas":3}`, "(concealed: Namespace default: you may not get it)",
		},
		"the name of a namespace": {mayRead(""), "namespaceObject.metadata.name == 'x'", `{"namespaceObject.metadata.name":"default"}`, "got false"},
		"the object":              {mayRead(""), "object.spec.replicas == oldObject.spec.replicas", `{"object.spec.replicas":6,"oldObject.spec.replicas":5}`, "got false"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := withVariables(admissionregistrationv1.Validation{Expression: test.expression, MessageExpression: "'got ' + string(" + test.expression + ")"})
			finding := asking{policy: obj, request: web(), param: limit(), explain: test.explain}.findings(t)[0]
			if got := marshalled(t, finding.Trace.Values); got != test.values {
				t.Errorf("got  %s\nwant %s", got, test.values)
			}
			if got := finding.Shown(finding.Message); got != test.message {
				t.Errorf("got message %q, want %q", got, test.message)
			}
			concealed := finding.Trace.Concealed != ""
			if concealed != (finding.Trace.Cost == 0) || concealed != (finding.Trace.Took == 0) {
				t.Errorf("concealed %v, and yet the cost is %d and the time %s", concealed, finding.Trace.Cost, finding.Trace.Took)
			}
		})
	}
}

// TestConcealedTexts: only the texts that may tell something are concealed.
func TestConcealedTexts(t *testing.T) {
	type rule = admissionregistrationv1.Validation
	for name, test := range map[string]struct {
		rule  rule
		shown bool
	}{
		"a message of its own":   {rule{Expression: "params.maxReplicas > 10", Message: "too many"}, true},
		"the expression":         {rule{Expression: "params.maxReplicas > 10"}, true},
		"a harmless message":     {rule{Expression: "params.maxReplicas > 10", MessageExpression: "'limit: ' + params.metadata.name"}, true},
		"a message":              {rule{Expression: "object.spec.replicas > 10", MessageExpression: "'limit: ' + string(params.maxReplicas)"}, false},
		"an error":               {rule{Expression: "int(params.registry) == 1"}, false},
		"an error of the object": {rule{Expression: "int(object.metadata.name) == 1"}, true},
	} {
		finding := asking{policy: withVariables(test.rule), request: web(), param: limit(), explain: &policy.Explain{}}.findings(t)[0]
		if finding.Message == "" || (finding.Shown(finding.Message) == finding.Message) != test.shown {
			t.Errorf("%s: got %q, concealed: %q", name, finding.Message, finding.Trace.Concealed)
		}
	}
}

// TestConcealedUnderEveryName: a Secret is one by its kind, by the resource, and
// by what the object says; another Secret may not be read in its name.
func TestConcealedUnderEveryName(t *testing.T) {
	other, others := web().Kind, web().Resource
	mayRead := func(names ...string) *policy.Explain {
		return &policy.Explain{MayRead: func(_ context.Context, ref verdict.ParamRef) bool {
			return strings.Contains(strings.Join(names, " "), ref.Namespace+"/"+ref.Name)
		}}
	}
	for name, test := range map[string]struct {
		change  func(*request.Fields)
		explain *policy.Explain
		told    bool
	}{
		"kind":     {func(f *request.Fields) { f.Resource, f.RequestResource = others, others }, mayRead(), false},
		"resource": {func(f *request.Fields) { f.Kind, f.RequestKind = other, other; f.Object.SetKind("Other") }, mayRead(), false},
		"what it says": {func(f *request.Fields) {
			f.Kind, f.RequestKind, f.Resource, f.RequestResource = other, other, others, others
		}, mayRead(), false},
		"not a Secret": {func(f *request.Fields) {
			f.Kind, f.RequestKind, f.Resource, f.RequestResource = other, other, others, others
			f.Object.SetKind("Other")
			f.OldObject.SetKind("Other")
		}, mayRead(), true},
		"its name":           {func(*request.Fields) {}, mayRead("default/mine"), true},
		"only one name":      {func(f *request.Fields) { f.Object.SetName("yours"); f.OldObject.SetName("yours") }, mayRead("default/mine"), false},
		"only the other":     {func(f *request.Fields) { f.Object.SetName("yours"); f.OldObject.SetName("yours") }, mayRead("default/yours"), false},
		"both names":         {func(f *request.Fields) { f.Object.SetName("yours"); f.OldObject.SetName("yours") }, mayRead("default/mine", "default/yours"), true},
		"name of the object": {func(f *request.Fields) { f.Name = "" }, mayRead("default/mine"), true},
	} {
		t.Run(name, func(t *testing.T) {
			fields := onSecret().Fields
			test.change(&fields)
			req := request.New(fields)
			findings := asking{policy: validating("object.stringData.password == oldObject.stringData.password"), request: req, explain: test.explain}.findings(t)
			if got := marshalled(t, findings[0].Trace.Values); tellsData(got) != test.told {
				t.Errorf("got %s", got)
			}
		})
	}
}
