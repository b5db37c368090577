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
		"string(ROOT.stringData.password)", "bytes(ROOT.stringData.password)", "base64.decode(ROOT.data.password)", "ROOT.stringData.password.split('x')",
		"ROOT.stringData.password + ''", "[ROOT.stringData.password]", "int(ROOT.stringData.password)", "duration(ROOT.stringData.password)", "quantity(ROOT.stringData.password)",
		"ROOT.data[ROOT.stringData.password]", "ROOT.metadata.labels[ROOT.stringData.password]", "url('http://' + ROOT.stringData.password)",
	}
	var all []string
	for _, read := range reads {
		all = append(all, "dyn("+read+") == 1", "has(ROOT.data.password) && dyn("+read+") != null")
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
// directly and through variables.
func spillingPolicies(t *testing.T, root string) []policy.Program {
	t.Helper()
	dialect := cel.New()
	var programs []policy.Program
	add := func(s spec) {
		s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"}
		unit, _ := dialect.Compile(t.Context(), stored(s)) // what does not compile must not tell anything either
		programs = append(programs, unit.Policy.Program)
	}
	for _, expression := range spilling() {
		expression = strings.ReplaceAll(expression, "ROOT", root)
		operand := expression
		if inner, ok := strings.CutPrefix(expression, "dyn("); ok {
			operand = strings.TrimSuffix(inner, ") == 1")
		}
		rules := []admissionregistrationv1.Validation{{Expression: expression, MessageExpression: "string(" + expression + ")"}}
		for _, read := range []string{"variables.v", "variables.list", "variables.list[0]", "variables.part", "variables.v.data", "has(variables.v.data)"} {
			rules = append(rules, admissionregistrationv1.Validation{Expression: "dyn(" + read + ") == 1"})
		}
		add(spec{
			Variables: []admissionregistrationv1.Variable{
				{Name: "v", Expression: operand}, {Name: "list", Expression: "[variables.v]"}, {Name: "part", Expression: "variables.v.data"},
			},
			Validations:      rules,
			AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "k", ValueExpression: "string(" + expression + ")"}},
		})
		add(spec{MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: expression}}, Validations: rules[:1]})
	}
	return programs
}

// TestSecretsAreConcealed: no way to write an expression makes an explanation
// tell what lies in the data of a Secret that the asker may not read.
func TestSecretsAreConcealed(t *testing.T) {
	view := emptyCluster(t)
	var told, asked, concealed int
	for _, root := range []string{"object", "oldObject", "params"} {
		for _, program := range spillingPolicies(t, root) {
			for name, explain := range map[string]*policy.Explain{
				"nobody asked": {},
				"may read another": {MayRead: func(_ context.Context, ref verdict.ParamRef) bool {
					asked++
					return ref != verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "mine"} &&
						ref != verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "theirs"}
				}},
				"may": {MayRead: func(context.Context, verdict.ParamRef) bool { return true }},
			} {
				findings := asking{request: onSecret(), param: secret("theirs"), explain: explain, view: view}.with(t, program)
				for _, finding := range findings {
					if finding.Trace == nil {
						t.Errorf("%s: no trace of %s", name, finding.Expression)
						continue
					}
					text := marshalled(t, finding.Trace)
					switch {
					case name == "may" && tellsData(text):
						told++
					case tellsData(text):
						t.Fatalf("%s: %s\n%s", name, finding.Expression, text)
					case strings.Contains(text, `{"concealed":"data of Secret default/`):
						concealed++
					}
				}
			}
		}
	}
	t.Logf("told %d, concealed %d, asked %d times", told, concealed, asked)
	if told < 300 || concealed < 300 || asked < 300 {
		t.Error("the expressions prove little")
	}
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
