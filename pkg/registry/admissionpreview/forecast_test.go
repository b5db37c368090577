// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

// weather is a forecast over a cluster, with what it needs to decode manifests.
type weather struct {
	*admissionpreview.Forecast
	decoder runtime.Decoder
	rights  grants
	stored  *policy.Set
}

func newWeather(t *testing.T, objects ...string) *weather {
	t.Helper()
	var manifests []*unstructured.Unstructured
	for _, object := range objects {
		manifest := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &manifest.Object); err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, manifest)
	}
	view, err := offline.New(manifests)
	if err != nil {
		t.Fatal(err)
	}
	w := &weather{stored: &policy.Set{}, decoder: newFixture(t).decoder}
	current := func() *policy.Set { return w.stored }
	judge, err := plugin.NewRegistered(dialect.All(), chain.New(current, clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Forecast = admissionpreview.NewForecast(judge, func() cluster.View { return view }, catalog.New(dialect.All()),
		admissionpreview.Access{Authorizer: &w.rights, Stored: current})
	return w
}

func decodeAs[T runtime.Object](t *testing.T, w *weather, manifest string) T {
	t.Helper()
	object, _, err := w.decoder.Decode([]byte("apiVersion: policy.portcullis.dev/v1alpha1\n"+manifest), nil, nil)
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	typed, ok := object.(T)
	if !ok {
		t.Fatalf("decoded %T", object)
	}
	return typed
}

func (w *weather) policy(t *testing.T, spec string) *policyapi.ValidatingAdmissionPolicy {
	t.Helper()
	return decodeAs[*policyapi.ValidatingAdmissionPolicy](t, w, "kind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {"+spec+"}\n")
}

func (w *weather) binding(t *testing.T, spec string) *policyapi.ValidatingAdmissionPolicyBinding {
	t.Helper()
	return decodeAs[*policyapi.ValidatingAdmissionPolicyBinding](t, w, "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {"+spec+"}\n")
}

// store puts an object into the stored set.
func (w *weather) store(t *testing.T, kind string, object runtime.Object) {
	t.Helper()
	unit, errs := catalog.New(dialect.All()).Compile(t.Context(), kind, object)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	w.stored = w.stored.Edit(nil, []*policy.Unit{unit})
}

func as(t *testing.T, name string, groups ...string) context.Context {
	t.Helper()
	return genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: groups})
}

func admin(t *testing.T) context.Context {
	t.Helper()
	return as(t, "admin", user.SystemPrivilegedGroup)
}

func deploymentOf(namespace, name string, replicas int) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {replicas: %d}}", name, namespace, replicas)
}

// ruleOn writes matchConstraints.
func ruleOn(operations, groups, versions, resources string) string {
	return fmt.Sprintf("matchConstraints: {resourceRules: [{apiGroups: [%s], apiVersions: [%s], operations: [%s], resources: [%s]}]}, ", groups, versions, operations, resources)
}

const (
	onCreate = "matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]}, "
	few      = "validations: [{expression: 'object.spec.replicas <= 5'}]"
	unbound  = "no stored binding names the policy: existing objects are judged as if one did, everywhere, with the action Deny"
)

func TestForecastOfPolicy(t *testing.T) {
	const first = ", the first: default/two: failed expression: object.spec.replicas <= 5"
	tests := []struct {
		name, policy string
		bindings     []string
		want         []string
	}{
		{"without a binding", onCreate + few, nil, []string{unbound, "2 of 3 existing deployments.apps would be denied" + first}},
		{"with a binding", onCreate + few, []string{"policyName: p, validationActions: [Deny]"}, []string{"2 of 3 existing deployments.apps would be denied" + first}},
		{
			"with a binding for less", onCreate + few,
			[]string{"policyName: p, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}"},
			[]string{"1 of 3 existing deployments.apps would be denied" + first},
		},
		{"with a binding that warns", onCreate + few, []string{"policyName: p, validationActions: [Warn]"}, []string{"2 of 3 existing deployments.apps would get a warning" + first}},
		{"with a binding that audits", onCreate + few, []string{"policyName: p, validationActions: [Audit]"}, []string{"2 of 3 existing deployments.apps would be noted in the audit log" + first}},
		{"nothing to deny", onCreate + "validations: [{expression: 'true'}]", []string{"policyName: p, validationActions: [Deny]"}, []string{"none of 3 existing deployments.apps would be denied"}},
		{
			"errors", onCreate + "validations: [{expression: 'object.metadata.name == \"two\" && object.spec.paused'}]",
			[]string{"policyName: p, validationActions: [Deny]"},
			[]string{"1 of 3 existing deployments.apps would be denied, 2 would be denied because a policy cannot be judged, the first: default/one: failed expression: object.metadata.name == \"two\" && object.spec.paused"},
		},
		{
			"errors that are ignored", "failurePolicy: Ignore, " + onCreate + "validations: [{expression: '!object.spec.paused'}]",
			[]string{"policyName: p, validationActions: [Deny]"},
			[]string{"3 of 3 existing deployments.apps cannot be judged, which failurePolicy Ignore lets pass, the first: default/one: expression '!object.spec.paused' resulted in error: no such key: paused"},
		},
		{"of updates", ruleOn("UPDATE", "apps", "v1", "deployments") + "validations: [{expression: 'object.spec.replicas <= 5 || object == oldObject'}]", []string{"policyName: p, validationActions: [Deny]"}, []string{"none of 3 existing deployments.apps would be denied on UPDATE"}},
		{"of deletions", ruleOn("DELETE", "apps", "v1", "deployments") + "validations: [{expression: 'oldObject.spec.replicas <= 5'}]", []string{"policyName: p, validationActions: [Deny]"}, []string{"2 of 3 existing deployments.apps would be denied on DELETE, the first: default/two: failed expression: oldObject.spec.replicas <= 5"}},
		{"of connections", ruleOn("CONNECT", "''", "v1", "pods") + "validations: [{expression: 'true'}]", nil, []string{"existing objects not looked at: pods (only on CONNECT)"}},
		{"of what does not exist", ruleOn("CREATE", "batch", "v1", "jobs") + "validations: [{expression: 'true'}]", nil, nil},
		{"of what the cluster does not have", ruleOn("CREATE", "example.com", "v1", "widgets") + "validations: [{expression: 'true'}]", nil, []string{"existing objects not looked at: the cluster has no widgets.v1.example.com"}},
		{
			"of several", "matchConstraints: {resourceRules: [{apiGroups: [apps, ''], apiVersions: ['*'], operations: ['*'], resources: [deployments, deployments/scale, 'configmaps/*', '*/status']}]}, validations: [{expression: 'object.kind == \"ConfigMap\"'}]",
			[]string{"policyName: p, validationActions: [Deny]"},
			[]string{
				"3 of 3 existing deployments.apps would be denied, the first: default/one: failed expression: object.kind == \"ConfigMap\"",
				"none of 1 existing configmaps would be denied",
				"existing objects not looked at: deployments/scale (a subresource), */status (names no resource)",
			},
		},
		{"of everything", ruleOn("CREATE", "'*'", "'*'", "'*'") + "validations: [{expression: 'true'}]", nil, []string{"existing objects not looked at: * (names no resource)"}},
		{"of every group", ruleOn("CREATE", "'*'", "'*'", "deployments") + few, nil, []string{unbound, "2 of 3 existing deployments.apps would be denied" + first}},
		{"of an older version, too", ruleOn("CREATE", "apps", "v1beta1, v1", "deployments") + few, nil, []string{unbound, "2 of 3 existing deployments.apps would be denied" + first}},
		{"of what is exempt", ruleOn("CREATE", "policy.portcullis.dev", "v1alpha1", "validatingadmissionpolicies") + few, nil, []string{"existing objects not looked at: no policy judges validatingadmissionpolicies.v1alpha1.policy.portcullis.dev: they are exempt"}},
		{"with params and no binding", "paramKind: {apiVersion: v1, kind: ConfigMap}, " + onCreate + few, nil, []string{"existing objects are not looked at: no stored binding names the policy, which takes its params from one"}},
		{
			"with params", "paramKind: {apiVersion: v1, kind: ConfigMap}, " + onCreate + "validations: [{expression: 'object.spec.replicas <= int(params.data.most)'}]",
			[]string{"policyName: p, validationActions: [Deny], paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}"},
			[]string{"1 of 3 existing deployments.apps would be denied, the first: other/two: failed expression: object.spec.replicas <= int(params.data.most)"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWeather(t, deploymentOf("default", "two", 6), deploymentOf("default", "one", 1), deploymentOf("other", "two", 9),
				"{apiVersion: v1, kind: Namespace, metadata: {name: other}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: default}, data: {most: '6'}}")
			for _, binding := range test.bindings {
				w.store(t, "ValidatingAdmissionPolicyBinding", w.binding(t, binding))
			}
			got := w.Policy(admin(t), w.policy(t, test.policy))
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestForecastIsOfThePolicyAlone: what others deny is no news of this write.
func TestForecastIsOfThePolicyAlone(t *testing.T) {
	w := newWeather(t, deploymentOf("default", "two", 6))
	other := w.policy(t, onCreate+"validations: [{expression: 'false'}]")
	other.Name = "other"
	w.store(t, "ValidatingAdmissionPolicy", other)
	bound := w.binding(t, "policyName: other, validationActions: [Deny]")
	bound.Name = "other"
	w.store(t, "ValidatingAdmissionPolicyBinding", bound)
	w.store(t, "ValidatingAdmissionPolicy", w.policy(t, onCreate+few)) // replaced by what is written
	w.store(t, "ValidatingAdmissionPolicyBinding", w.binding(t, "policyName: p, validationActions: [Deny]"))
	got := w.Policy(admin(t), w.policy(t, onCreate+"validations: [{expression: 'object.spec.replicas <= 6'}]"))
	if want := []string{"none of 1 existing deployments.apps would be denied"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestForecastOfBinding(t *testing.T) {
	denied := "2 of 3 existing deployments.apps would be denied, the first: default/two: failed expression: object.spec.replicas <= 5"
	notFound := apierrors.NewNotFound(policyapi.Resource("validatingadmissionpolicies"), "p")
	tests := []struct {
		name, binding, policy string
		err                   error
		want                  []string
	}{
		{"of a policy", "policyName: p, validationActions: [Deny]", onCreate + few, nil, []string{denied}},
		{"for less", "policyName: p, validationActions: [Deny], matchResources: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments], resourceNames: [one]}]}", onCreate + few, nil, []string{"none of 3 existing deployments.apps would be denied"}},
		{"with a param", "policyName: p, validationActions: [Warn], paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}", "paramKind: {apiVersion: v1, kind: ConfigMap}, " + onCreate + "validations: [{expression: 'object.spec.replicas <= int(params.data.most)'}]", nil, []string{"1 of 3 existing deployments.apps would get a warning, the first: other/two: failed expression: object.spec.replicas <= int(params.data.most)"}},
		{"of no policy", "policyName: p, validationActions: [Deny]", "", notFound, []string{`existing objects are not looked at: the policy "p" is not stored`}},
		{"of a policy that cannot be read", "policyName: p, validationActions: [Deny]", "", apierrors.NewTimeoutError("no etcd", 0), []string{`existing objects are not looked at: the policy "p" cannot be read: Timeout: no etcd`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWeather(t, deploymentOf("default", "two", 6), deploymentOf("default", "one", 1), deploymentOf("other", "two", 9),
				"{apiVersion: v1, kind: Namespace, metadata: {name: other}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: default}, data: {most: '6'}}")
			got := w.Binding(admin(t), w.binding(t, test.binding), func(_ context.Context, name string) (*policyapi.ValidatingAdmissionPolicy, error) {
				if test.err != nil || name != "p" {
					return nil, test.err
				}
				return w.policy(t, test.policy), nil
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestForecastTellsWhatTheWriterMayRead: a writer who may not list objects hears
// nothing of them, and one who may not read a param or a Namespace learns nothing
// through them.
func TestForecastTellsWhatTheWriterMayRead(t *testing.T) {
	secrets := ruleOn("CREATE", "'', apps", "v1", "deployments, secrets") + "validations: [{expression: 'false', messageExpression: 'string(object.metadata.name)'}]"
	tests := []struct {
		name, policy string
		allowed      []string
		want         []string
	}{
		{"nothing", secrets, nil, []string{"existing objects not looked at: deployments.apps (you may not list them), secrets (you may not list them)"}},
		{
			"one of two", secrets,
			[]string{listDeployments},
			[]string{unbound, "1 of 1 existing deployments.apps would be denied, the first: default/two: two", "existing objects not looked at: secrets (you may not list them)"},
		},
		{"no Namespace", onCreate + "validations: [{expression: 'false', messageExpression: 'string(namespaceObject.metadata.name)'}]", []string{listDeployments}, []string{unbound, "1 of 1 existing deployments.apps would be denied because a policy cannot be judged, the first: default/two: failed to configure binding: namespaces \"default\" is forbidden: User \"jane\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"de..."}},
		{"no params", "paramKind: {apiVersion: v1, kind: Secret}, " + onCreate + few, []string{listDeployments}, []string{`existing objects are not looked at: secrets "*" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "*": needed for the paramKind of ValidatingAdmissionPolicy "p"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWeather(t, deploymentOf("default", "two", 6), "{apiVersion: v1, kind: Secret, metadata: {name: hidden, namespace: default}}")
			w.rights.allowed = test.allowed
			if strings.Contains(test.policy, "paramKind") {
				w.store(t, "ValidatingAdmissionPolicyBinding", w.binding(t, "policyName: p, validationActions: [Deny], paramRef: {name: hidden, namespace: default, parameterNotFoundAction: Deny}"))
			}
			got := w.Policy(as(t, "jane"), w.policy(t, test.policy))
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if text := strings.Join(got, ""); strings.Contains(text, "hidden") {
				t.Errorf("the writer is told of a Secret: %s", text)
			}
		})
	}
}

// TestForecastIsBounded: the objects of many resources are looked at in part, and
// what is said fits into headers.
func TestForecastIsBounded(t *testing.T) {
	var objects []string
	for i := range 600 {
		objects = append(objects, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%03d, namespace: default}}", i))
	}
	w := newWeather(t, append(objects, deploymentOf("default", "two", 6))...)
	long := strings.Repeat("ü\\n", 2000)
	got := w.Policy(admin(t), w.policy(t, ruleOn("CREATE", "''", "v1", "configmaps, pods, secrets, services, endpoints, nodes, events")+"validations: [{expression: 'false', message: \""+"m"+"\", messageExpression: \"'"+long+"'\"}]"))
	// A slow machine judges fewer in the time that each resource has.
	if len(got) != 3 || !regexp.MustCompile(`^(\d\d?|100) of the first (\d\d?|100) existing configmaps would be denied, the first: default/c000: `).MatchString(got[1]) || got[2] != "existing objects not looked at: nodes, events" {
		t.Errorf("got %q", got)
	}
	total := 0
	for _, line := range got {
		total += utf8.RuneCountInString(line)
		if strings.ContainsAny(line, "\n\r") || !utf8.ValidString(line) {
			t.Errorf("no header carries %q", line)
		}
	}
	if total > 1024 {
		t.Errorf("%d characters in all", total)
	}
	got = w.Policy(admin(t), w.policy(t, ruleOn("CREATE", "''", "v1", "configmaps")+"validations: [{expression: 'false'}]"))
	if want := "500 of the first 500 existing configmaps would be denied, the first: default/c000: failed expression: false"; len(got) != 2 || got[1] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestForecastBeforePoliciesAreComplete(t *testing.T) {
	w := newWeather(t, deploymentOf("default", "two", 6))
	w.stored = nil
	got := w.Policy(admin(t), w.policy(t, onCreate+few))
	if want := []string{"existing objects are not looked at: not yet ready to handle request"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
