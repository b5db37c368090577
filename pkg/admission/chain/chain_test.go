// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

func toy(t *testing.T, name, forbid string) *policy.Unit {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"forbid": forbid}}
	object.SetName(name)
	unit, errs := dialecttest.Toy{}.Compile(t.Context(), object)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return unit
}

func pod(name, namespace string) *request.Request {
	return request.New(request.Fields{
		UID: "u", Name: name, Namespace: namespace, Operation: admission.Create,
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
		}},
	})
}

func object(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func view(t *testing.T, objects ...*unstructured.Unstructured) cluster.View {
	t.Helper()
	v, err := offline.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func messages(v verdict.Verdict) string {
	list := make([]string, len(v.Denials))
	for i, denial := range v.Denials {
		list[i] = denial.Message
	}
	return strings.Join(list, "\n")
}

func TestRunOrderAndContainment(t *testing.T) {
	ignored := toy(t, "a-ignored", "panic")
	ignored.Policy.OnError = verdict.Ignore
	tests := []struct {
		name  string
		units []*policy.Unit
		want  string
	}{
		{name: "nothing installed"},
		{name: "nothing objects", units: []*policy.Unit{toy(t, "a", "zebra")}},
		{
			name:  "denials in the order of names",
			units: []*policy.Unit{toy(t, "b", "ngi"), toy(t, "a", "nginx"), toy(t, "c", "zebra")},
			want:  "Toy 'a' denied request: the name contains \"nginx\"\nToy 'b' denied request: the name contains \"ngi\"",
		},
		{
			name:  "a panic is an error of its policy alone",
			units: []*policy.Unit{toy(t, "a", "panic"), toy(t, "b", "ngi")},
			want:  "Toy 'a' denied request: the policy panicked\nToy 'b' denied request: the name contains \"ngi\"",
		},
		{name: "a panic under Ignore", units: []*policy.Unit{ignored}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := (&policy.Set{}).Edit(nil, test.units)
			got := run(t, set, pod("nginx", "default"), view(t))
			if messages(got) != test.want || got.Allowed != (test.want == "") {
				t.Errorf("allowed %v, denials:\n%s\nwant:\n%s", got.Allowed, messages(got), test.want)
			}
		})
	}
}

func TestNotReadyIsAnError(t *testing.T) {
	c := chain.New(func() *policy.Set { return nil }, clock.RealClock{})
	if v, err := c.Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: view(t)}); !errors.Is(err, chain.ErrNotReady) || v.Allowed {
		t.Errorf("got %+v and error %v, want a denial and ErrNotReady", v, err)
	}
	review := request.New(request.Fields{
		Operation: admission.Create,
		Kind:      schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"},
		Resource:  schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"},
	})
	if v, err := c.Run(t.Context(), chain.Trial{Request: review, View: view(t)}); err != nil || !v.Allowed {
		t.Errorf("an exempt request: got %+v and error %v, want an admission", v, err)
	}
	if v, err := c.Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: view(t)}); !errors.Is(err, chain.ErrNotReady) || v.Allowed {
		t.Errorf("got %+v and error %v, want a denial and ErrNotReady", v, err)
	}
	if v, err := c.Run(t.Context(), chain.Trial{Alone: true, Request: pod("nginx", "default"), View: view(t)}); err != nil || !v.Allowed {
		t.Errorf("got %+v and error %v, want an admission: no stored policy takes part", v, err)
	}
}

func TestCandidatesShadow(t *testing.T) {
	stored := (&policy.Set{}).Edit(nil, []*policy.Unit{toy(t, "a", "nginx"), toy(t, "b", "ngi")})
	c := chain.New(func() *policy.Set { return stored }, clock.RealClock{})
	candidates := []*policy.Unit{toy(t, "a", "zebra")}
	for _, test := range []struct {
		name   string
		stored bool
		want   string
	}{
		{name: "with stored policies", stored: true, want: "Toy 'b' denied request: the name contains \"ngi\""},
		{name: "alone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := c.Run(t.Context(), chain.Trial{Candidates: candidates, Alone: !test.stored, Request: pod("nginx", "default"), View: view(t)})
			if err != nil || messages(got) != test.want {
				t.Errorf("got %q and error %v, want %q", messages(got), err, test.want)
			}
		})
	}
	if after, _ := c.Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: view(t)}); len(after.Denials) != 2 {
		t.Errorf("the preview changed what is stored: %q", messages(after))
	}
}

// TestNoTimeLeft: a request whose time has ended is not admitted, even if every
// policy ignores its failures.
func TestNoTimeLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ignoring := toy(t, "a", "zebra")
	ignoring.Policy.OnError = verdict.Ignore
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{ignoring})
	got, err := judging(set).Run(ctx, chain.Trial{Request: pod("nginx", "default"), View: view(t)})
	if !errors.Is(err, chain.ErrNoTimeLeft) || got.Allowed {
		t.Errorf("got %+v and error %v, want a denial and ErrNoTimeLeft", got, err)
	}
}

// TestTimeEndsInTheLastPolicy: it was cut short, and its failure policy must not
// make an admission of that.
func TestTimeEndsInTheLastPolicy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	last := toy(t, "a", "zebra")
	last.Policy.OnError = verdict.Ignore
	last.Policy.Program = programFunc(func(context.Context, policy.Input) []verdict.Finding {
		cancel()
		return []verdict.Finding{{Kind: verdict.Error, Message: "interrupted"}}
	})
	got, err := judging((&policy.Set{}).Edit(nil, []*policy.Unit{last})).Run(ctx, chain.Trial{Request: pod("nginx", "default"), View: view(t)})
	if !errors.Is(err, chain.ErrNoTimeLeft) || got.Allowed {
		t.Errorf("got %+v and error %v, want a denial and ErrNoTimeLeft", got, err)
	}
}

// TestTextsAreBounded: long messages count, not only their number.
func TestTextsAreBounded(t *testing.T) {
	const findings = 40
	wordy := toy(t, "a", "zebra")
	wordy.Policy.OnError = verdict.Ignore
	wordy.Policy.Program = programFunc(func(context.Context, policy.Input) []verdict.Finding {
		return slices.Repeat([]verdict.Finding{{Kind: verdict.Pass, Message: strings.Repeat("x", 1<<20)}}, findings)
	})
	got, err := judging((&policy.Set{}).Edit(nil, []*policy.Unit{wordy})).Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: view(t)})
	if !errors.Is(err, verdict.ErrTooManyEvaluations) || got.Allowed {
		t.Errorf("got allowed %v and error %v, want a denial and ErrTooManyEvaluations", got.Allowed, err)
	}
}

// TestTooManyEvaluations: what a request may cost in memory is bounded, and a
// request beyond that is not admitted.
func TestTooManyEvaluations(t *testing.T) {
	const bindings, params = 60, 1000
	objects := make([]*unstructured.Unstructured, params)
	for i := range objects {
		objects[i] = object("v1", "ConfigMap", "default", fmt.Sprintf("c%d", i), nil)
	}
	p := toy(t, "p", "zebra")
	p.Policy.NeedsBinding, p.Policy.OnError = true, verdict.Ignore
	p.Policy.ParamKind = &schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	units := []*policy.Unit{p}
	for i := range bindings {
		units = append(units, &policy.Unit{
			ID:      policy.ID{Kind: "ToyBinding", Name: fmt.Sprintf("b%d", i)},
			Binding: &policy.Binding{Policy: p.ID, Criteria: match.Compile(nil), Params: &policy.Params{Selector: labels.Everything()}},
		})
	}
	got, err := judging((&policy.Set{}).Edit(nil, units)).Run(t.Context(), chain.Trial{Request: pod("nginx", "default"), View: view(t, objects...)})
	if !errors.Is(err, verdict.ErrTooManyEvaluations) || got.Allowed {
		t.Errorf("got allowed %v and error %v, want a denial and ErrTooManyEvaluations", got.Allowed, err)
	}
}

// TestPanicThroughOneBinding: the other bindings of the policy still judge.
func TestPanicThroughOneBinding(t *testing.T) {
	p := toy(t, "p", "ngi")
	p.Policy.NeedsBinding, p.Policy.OnError = true, verdict.Ignore
	p.Policy.Program = panicsFirst(t, p.Policy.Program)
	units := []*policy.Unit{p}
	for _, name := range []string{"a", "b"} {
		units = append(units, &policy.Unit{
			ID:      policy.ID{Kind: "ToyBinding", Name: name},
			Binding: &policy.Binding{Policy: p.ID, Criteria: match.Compile(nil)},
		})
	}
	got := run(t, (&policy.Set{}).Edit(nil, units), pod("nginx", "default"), view(t))
	if want := "Toy 'p' with binding 'b' denied request: the name contains \"ngi\""; messages(got) != want {
		t.Errorf("got %q, want %q", messages(got), want)
	}
}

type programFunc func(context.Context, policy.Input) []verdict.Finding

func (f programFunc) Evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	return f(ctx, in)
}

func panicsFirst(t *testing.T, then policy.Program) policy.Program {
	t.Helper()
	first := true
	return programFunc(func(ctx context.Context, in policy.Input) []verdict.Finding {
		if first {
			first = false
			panic("once")
		}
		return then.Evaluate(ctx, in)
	})
}

// judging returns a chain whose stored policies are those of set.
func judging(set *policy.Set) *chain.Chain {
	return chain.New(func() *policy.Set { return set }, clock.RealClock{})
}

func run(t *testing.T, set *policy.Set, req *request.Request, v cluster.View) verdict.Verdict {
	t.Helper()
	got, err := judging(set).Run(t.Context(), chain.Trial{Request: req, View: v})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestExemptRequestsAreNotJudged(t *testing.T) {
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{toy(t, "a", "nginx")})
	req := request.New(request.Fields{
		Name: "nginx", Operation: admission.Create,
		Kind:     schema.GroupVersionKind{Group: "policy.portcullis.dev", Version: "v1alpha1", Kind: "ValidatingAdmissionPolicy"},
		Resource: schema.GroupVersionResource{Group: "policy.portcullis.dev", Version: "v1alpha1", Resource: "validatingadmissionpolicies"},
	})
	if got := run(t, set, req, view(t)); !got.Allowed {
		t.Errorf("our own group is judged: %s", messages(got))
	}
}

// TestBindings runs one policy through bindings with params.
func TestBindings(t *testing.T) {
	configMaps := &schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	namespaces := &schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	unknown := &schema.GroupVersionKind{Group: "x.dev", Version: "v1", Kind: "X"}
	everything := labels.Everything()
	const prefix = "Toy 'p' with binding 'b' denied request: "
	const denied = prefix + `the name contains "ngi"`
	tests := []struct {
		name      string
		kind      *schema.GroupVersionKind
		params    *policy.Params
		namespace string
		want      []string
	}{
		{name: "no params", namespace: "default", want: []string{denied}},
		{name: "kind without reference", kind: configMaps, namespace: "default", want: []string{denied}},
		{name: "reference without kind", params: &policy.Params{Name: "absent"}, namespace: "default", want: []string{denied}},
		{name: "one by name, in the namespace of the request", kind: configMaps, params: &policy.Params{Name: "one"}, namespace: "default", want: []string{denied}},
		{
			name: "one by name, elsewhere", kind: configMaps, params: &policy.Params{Name: "one"}, namespace: "kube-system",
			want: []string{prefix + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		},
		{name: "absent and allowed", kind: configMaps, params: &policy.Params{Name: "one", AllowAbsent: true}, namespace: "kube-system"},
		{name: "namespace of the reference", kind: configMaps, params: &policy.Params{Name: "one", Namespace: "default"}, namespace: "kube-system", want: []string{denied}},
		{name: "several by selector", kind: configMaps, params: &policy.Params{Selector: everything}, namespace: "default", want: []string{denied, denied}},
		{
			name: "cluster-scoped request", kind: configMaps, params: &policy.Params{Name: "one"},
			want: []string{prefix + "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"},
		},
		{
			name: "namespace for a cluster-scoped kind", kind: namespaces, params: &policy.Params{Name: "default", Namespace: "default"}, namespace: "default",
			want: []string{prefix + "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"},
		},
		{
			name: "a kind without a list", kind: &schema.GroupVersionKind{Version: "v1", Kind: "Binding"}, params: &policy.Params{Name: "one", AllowAbsent: true}, namespace: "default",
			want: []string{prefix + "failed to configure binding: paramKind kind `&ParamKind{APIVersion:v1,Kind:Binding,}` not yet synced to use for admission"},
		},
		{
			name: "a cluster-scoped one", kind: &schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}, params: &policy.Params{Name: "one", Namespace: "default", AllowAbsent: true}, namespace: "default",
			want: []string{prefix + "failed to configure binding: paramKind kind `&ParamKind{APIVersion:authentication.k8s.io/v1,Kind:TokenReview,}` not yet synced to use for admission"},
		},
		{
			name: "unusable selector", kind: configMaps, params: &policy.Params{Err: errors.New("bad selector")}, namespace: "default",
			want: []string{prefix + "failed to configure binding: bad selector"},
		},
		{
			name: "unknown kind", kind: unknown, params: &policy.Params{Name: "one"}, namespace: "default",
			want: []string{"Toy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'x.dev/v1, Kind=X'"},
		},
	}
	v := view(t,
		object("v1", "ConfigMap", "default", "one", nil),
		object("v1", "ConfigMap", "default", "two", nil))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := toy(t, "p", "ngi")
			p.Policy.NeedsBinding, p.Policy.ParamKind = true, test.kind
			b := &policy.Unit{
				ID:      policy.ID{Kind: "ToyBinding", Name: "b"},
				Binding: &policy.Binding{Policy: p.ID, Criteria: match.Compile(nil), Params: test.params},
			}
			set := (&policy.Set{}).Edit(nil, []*policy.Unit{p, b})
			got := run(t, set, pod("nginx", test.namespace), v)
			if want := strings.Join(test.want, "\n"); messages(got) != want {
				t.Errorf("got:\n%s\nwant:\n%s", messages(got), want)
			}
		})
	}
}

func TestBindingMatches(t *testing.T) {
	p := toy(t, "p", "ngi")
	p.Policy.NeedsBinding = true
	b := &policy.Unit{
		ID: policy.ID{Kind: "ToyBinding", Name: "b"},
		Binding: &policy.Binding{Policy: p.ID, Criteria: match.Compile(&admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{"nginx-1"},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"*"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
				},
			}},
		})},
	}
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{p})
	if got := run(t, set, pod("nginx-1", "default"), view(t)); !got.Allowed {
		t.Error("a policy that needs a binding judges without one")
	}
	set = set.Edit(nil, []*policy.Unit{b})
	for name, allowed := range map[string]bool{"nginx-1": false, "nginx-2": true} {
		if got := run(t, set, pod(name, "default"), view(t)); got.Allowed != allowed {
			t.Errorf("%s: allowed %v, want %v: %s", name, got.Allowed, allowed, messages(got))
		}
	}
	set = set.Edit([]policy.ID{b.ID}, nil)
	if got := run(t, set, pod("nginx-1", "default"), view(t)); !got.Allowed {
		t.Error("a binding that was removed is in force")
	}
}
