// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

var jane = &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}

// world is a cluster with Secrets and stored policies that take params of some
// kinds. Its authorizer allows one right and keeps what it is asked.
type world struct {
	allowed string
	err     error
	asked   []string
}

func (w *world) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if !a.IsResourceRequest() || a.GetUser() == nil {
		return authorizer.DecisionDeny, "", errors.New("not a question about a user and a resource")
	}
	question := fmt.Sprintf("%s %s/%s/%s %s/%s", a.GetVerb(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetNamespace(), a.GetName())
	w.asked = append(w.asked, question)
	if question == w.allowed {
		return authorizer.DecisionAllow, "", w.err
	}
	return authorizer.DecisionNoOpinion, "for a reason", w.err
}

func (*world) mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, meta.RESTScopeRoot)
	return mapper
}

func (*world) policy(_ context.Context, name string) (*policyapi.ValidatingAdmissionPolicy, error) {
	kind, known := map[string]*admissionregistrationv1.ParamKind{
		"secrets": {APIVersion: "v1", Kind: "Secret"},
		"gadgets": {APIVersion: "example.com/v1", Kind: "Gadget"},
		"broken":  {APIVersion: "a/b/c", Kind: "Secret"},
		"plain":   nil,
	}[name]
	if !known {
		return nil, errors.New("no such policy")
	}
	return withParams(kind), nil
}

func withParams(kind *admissionregistrationv1.ParamKind) *policyapi.ValidatingAdmissionPolicy {
	return &policyapi.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{ParamKind: kind}}
}

func (w *world) writes() *rights.Writes { return rights.NewWrites(w, w.mapper, w.policy) }

// wantRefusal checks the only error; an empty one wants none.
func wantRefusal(t *testing.T, errs field.ErrorList, path, want string) {
	t.Helper()
	if want == "" {
		if len(errs) > 0 {
			t.Errorf("got errors %v, want none", errs)
		}
		return
	}
	if len(errs) != 1 || errs[0].Type != field.ErrorTypeForbidden || errs[0].Field != path || errs[0].Detail != want {
		t.Errorf("got errors\n%v\nwant %s to be forbidden:\n%s", errs, path, want)
	}
}

func TestWritesOfPolicies(t *testing.T) {
	of := func(version, kind string) *policyapi.ValidatingAdmissionPolicy {
		return withParams(&admissionregistrationv1.ParamKind{APIVersion: version, Kind: kind})
	}
	refused := func(kind, version string) string {
		return fmt.Sprintf(`user &{jane  [system:authenticated] map[]} must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`, kind, version)
	}
	const allSecrets = "get /v1/secrets */*"
	tests := []struct {
		name     string
		obj, old *policyapi.ValidatingAdmissionPolicy
		needed   string // empty asks nothing
		refused  string
	}{
		{name: "new without params", obj: withParams(nil)},
		{name: "new", obj: of("v1", "Secret"), needed: allSecrets, refused: refused("Secret", "v1")},
		{name: "new with a custom kind", obj: of("example.com/v1", "Widget"), needed: "get example.com/v1/widgets */*", refused: refused("Widget", "example.com/v1")},
		{name: "new with an unknown kind", obj: of("example.com/v1", "Gadget"), needed: "get example.com/v1/* */*", refused: refused("Gadget", "example.com/v1")},
		{name: "new with an unknown version", obj: of("v2", "Secret"), needed: "get /v2/* */*", refused: refused("Secret", "v2")},
		{name: "new with what is no version", obj: of("a/b/c", "Secret"), needed: "get */*/* */*", refused: refused("Secret", "a/b/c")},
		{name: "the same kind", obj: of("v1", "Secret"), old: of("v1", "Secret")},
		{name: "params taken away", obj: withParams(nil), old: of("v1", "Secret")},
		{name: "params for the first time", obj: of("v1", "Secret"), old: withParams(nil), needed: allSecrets, refused: refused("Secret", "v1")},
		{name: "another kind", obj: of("v1", "Secret"), old: of("v1", "ConfigMap"), needed: allSecrets, refused: refused("Secret", "v1")},
		{name: "another version", obj: of("v1", "Secret"), old: of("v2", "Secret"), needed: allSecrets, refused: refused("Secret", "v1")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkWrite(t, test.needed, test.refused, "spec.paramKind", func(ctx context.Context, writes *rights.Writes) field.ErrorList {
				return writes.Policy(ctx, test.obj, test.old)
			})
		})
	}
}

func TestWritesOfBindings(t *testing.T) {
	deny, allow := admissionregistrationv1.DenyAction, admissionregistrationv1.AllowAction
	of := func(policy string, ref *admissionregistrationv1.ParamRef) *policyapi.ValidatingAdmissionPolicyBinding {
		return &policyapi.ValidatingAdmissionPolicyBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy, ParamRef: ref}}
	}
	named := func(policy, namespace, name string) *policyapi.ValidatingAdmissionPolicyBinding {
		action := deny
		return of(policy, &admissionregistrationv1.ParamRef{Namespace: namespace, Name: name, ParameterNotFoundAction: &action})
	}
	selected := func(policy, namespace, label string) *policyapi.ValidatingAdmissionPolicyBinding {
		return of(policy, &admissionregistrationv1.ParamRef{
			Namespace: namespace, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"l": label}}, ParameterNotFoundAction: &deny,
		})
	}
	lenient := named("secrets", "prod", "key")
	lenient.Spec.ParamRef.ParameterNotFoundAction = &allow

	const who = "user &{jane  [system:authenticated] map[]} does not have "
	unsure := func(what, verb string) string {
		return "unable to " + what + " to determine minimum required permissions and " + who + `"` + verb + `" permission for all groups, versions and resources`
	}
	plain := func(verb string) string {
		return who + `"` + verb + `" permission on the object referenced by paramRef`
	}
	tests := []struct {
		name     string
		obj, old *policyapi.ValidatingAdmissionPolicyBinding
		needed   string // empty asks nothing
		refused  string
	}{
		{name: "new without params", obj: of("secrets", nil)},
		{name: "new", obj: named("secrets", "prod", "key"), needed: "get /v1/secrets prod/key", refused: plain("get")},
		{name: "new in any namespace", obj: named("secrets", "", "key"), needed: "get /v1/secrets /key", refused: plain("get")},
		{name: "new with a selector", obj: selected("secrets", "prod", "a"), needed: "list /v1/secrets prod/", refused: plain("list")},
		{name: "new with a selector for all", obj: selected("secrets", "", "a"), needed: "list /v1/secrets /", refused: plain("list")},
		{
			name: "new for an unknown policy", obj: selected("nothing", "", "a"), needed: "list */*/* /",
			refused: unsure("get policy nothing", "list"),
		},
		{name: "new for a policy without params", obj: named("plain", "prod", "key"), needed: "get */*/* prod/key", refused: plain("get")},
		{
			name: "new for a policy with an unknown kind", obj: named("gadgets", "prod", "key"), needed: "get example.com/v1/* prod/key",
			refused: unsure("resolve paramKind &{example.com/v1 Gadget}", "get"),
		},
		{
			name: "new for a policy with what is no version", obj: named("broken", "prod", "key"), needed: "get */*/* prod/key",
			refused: unsure("parse paramKind &{a/b/c Secret}", "get"),
		},
		{name: "the same name", obj: named("secrets", "prod", "key"), old: named("secrets", "prod", "key"), needed: "get /v1/secrets prod/key", refused: plain("get")},
		{name: "the same selector", obj: selected("secrets", "prod", "a"), old: selected("secrets", "prod", "a"), needed: "list /v1/secrets prod/", refused: plain("list")},
		{name: "params taken away", obj: of("secrets", nil), old: named("secrets", "prod", "key")},
		{name: "params for the first time", obj: named("secrets", "prod", "key"), old: of("secrets", nil), needed: "get /v1/secrets prod/key", refused: plain("get")},
		{name: "another name", obj: named("secrets", "prod", "key"), old: named("secrets", "prod", "lock"), needed: "get /v1/secrets prod/key", refused: plain("get")},
		{name: "another namespace", obj: named("secrets", "prod", "key"), old: named("secrets", "test", "key"), needed: "get /v1/secrets prod/key", refused: plain("get")},
		{name: "another selector", obj: selected("secrets", "prod", "a"), old: selected("secrets", "prod", "b"), needed: "list /v1/secrets prod/", refused: plain("list")},
		{name: "another policy", obj: named("secrets", "prod", "key"), old: named("plain", "prod", "key"), needed: "get /v1/secrets prod/key", refused: plain("get")},
		{name: "another parameterNotFoundAction", obj: lenient, old: named("secrets", "prod", "key"), needed: "get /v1/secrets prod/key", refused: plain("get")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkWrite(t, test.needed, test.refused, "spec.paramRef", func(ctx context.Context, writes *rights.Writes) field.ErrorList {
				return writes.Binding(ctx, test.obj, test.old)
			})
		})
	}
}

// checkWrite checks that jane needs the one right for a write, that an answer with
// an error is no right, and that system:masters is not asked for any.
func checkWrite(t *testing.T, needed, refused, path string, write func(context.Context, *rights.Writes) field.ErrorList) {
	t.Helper()
	asks := 0
	if needed != "" {
		asks = 1
	}
	asJane := genericapirequest.WithUser(t.Context(), jane)
	for allowed, want := range map[string]string{needed: "", "another right": refused} {
		w := &world{allowed: allowed}
		wantRefusal(t, write(asJane, w.writes()), path, want)
		if want := slices.Repeat([]string{needed}, asks); !slices.Equal(w.asked, want) {
			t.Errorf("asked for %q, want %q", w.asked, want)
		}
	}
	broken := &world{allowed: needed, err: errors.New("roles cannot be read")}
	if errs := write(asJane, broken.writes()); len(errs) != asks {
		t.Errorf("an authorizer that errs: %v", errs)
	}
	for name, denied := range map[string]field.ErrorList{
		"nobody":        write(t.Context(), (&world{allowed: needed}).writes()),
		"no authorizer": write(asJane, rights.NewWrites(nil, (&world{}).mapper, (&world{}).policy)),
	} {
		if len(denied) != asks {
			t.Errorf("%s: %v", name, denied)
		}
	}
	w := &world{}
	root := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}})
	wantRefusal(t, write(root, w.writes()), path, "")
	if len(w.asked) > 0 {
		t.Errorf("asked %q of system:masters", w.asked)
	}
}

// TestWritesSayWhyNobodyKnows: who writes and what they may do must be known.
func TestWritesSayWhyNobodyKnows(t *testing.T) {
	policy := withParams(&admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"})
	binding := &policyapi.ValidatingAdmissionPolicyBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "secrets", ParamRef: &admissionregistrationv1.ParamRef{Name: "key"},
	}}
	asJane := genericapirequest.WithUser(t.Context(), jane)
	broken := (&world{err: errors.New("roles cannot be read")}).writes()
	wantRefusal(t, broken.Policy(asJane, policy, nil), "spec.paramKind", "roles cannot be read")
	wantRefusal(t, broken.Binding(asJane, binding, nil), "spec.paramRef", "failed to authorize request: roles cannot be read")
	wantRefusal(t, broken.Policy(t.Context(), policy, nil), "spec.paramKind", "cannot identify user to authorize read access to paramKind resources")
	wantRefusal(t, broken.Binding(t.Context(), binding, nil), "spec.paramRef", "cannot identify user to authorize read access to paramRef object")
}
