// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// word returns a policy that forbids a word in names.
func word(t *testing.T, name, forbid string) *policy.Unit {
	t.Helper()
	return compiled(t, dialecttest.Toy{}, name, map[string]any{"forbid": forbid})
}

// stamp returns a policy of a kind that sets a label, or appends to it.
func stamp(t *testing.T, kind, name, label, value string, more bool) *policy.Unit {
	t.Helper()
	return compiled(t, dialecttest.Stamp{Kind: kind}, name, map[string]any{"label": label, "value": value, "more": more})
}

func compiled(t *testing.T, dialect policy.Dialect, name string, fields map[string]any) *policy.Unit {
	t.Helper()
	stored := &unstructured.Unstructured{Object: fields}
	stored.SetName(name)
	unit, errs := dialect.Compile(t.Context(), stored)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return unit
}

func configMap(labels map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": "prices", "namespace": "shop"}
	if labels != nil {
		metadata["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}
}

func create(object *unstructured.Unstructured) *request.Request {
	return request.New(request.Fields{
		UID: "u", Name: "prices", Namespace: "shop", Operation: admission.Create, Object: object,
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	})
}

func registered(t *testing.T, units ...*policy.Unit) *Registered {
	t.Helper()
	set := (&policy.Set{}).Edit(nil, units)
	r, err := NewRegistered([]policy.Dialect{dialecttest.Stamp{Kind: "Early"}, dialecttest.Stamp{Kind: "Late"}, dialecttest.Toy{}},
		chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func empty(t *testing.T) cluster.View {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// TestMutatePhase: the mutating door gives the object, and asks nobody who judges; the
// validating one changes nothing.
func TestMutatePhase(t *testing.T) {
	r := registered(t, stamp(t, "Early", "a", "x", "1", false), word(t, "b", "prices"))
	changed, err := r.Mutate(t.Context(), create(configMap(nil)), empty(t))
	if err != nil || !changed.Allowed || changed.Object == nil || changed.Object.GetLabels()["x"] != "1" {
		t.Errorf("got %+v and error %v, want the label", changed, err)
	}
	same, err := r.Mutate(t.Context(), create(configMap(map[string]any{"x": "1"})), empty(t))
	if err != nil || !same.Allowed || same.Object != nil {
		t.Errorf("got %+v and error %v, want nothing to be changed", same, err)
	}
	judged, err := r.Run(t.Context(), create(configMap(nil)), empty(t))
	if err != nil || judged.Allowed || judged.Object != nil {
		t.Errorf("got %+v and error %v, want a denial", judged, err)
	}
}

// TestTryBothPhases: a trial judges what has become of the object, unless mutating it
// fails, and names who would change it again.
func TestTryBothPhases(t *testing.T) {
	late := stamp(t, "Late", "late", "x", "2", true)
	tests := []struct {
		name      string
		units     []*policy.Unit
		allowed   bool
		label     string
		kinds     string
		diverging string
	}{
		{name: "both", units: []*policy.Unit{stamp(t, "Early", "a", "x", "1", false), word(t, "b", "zebra")}, allowed: true, label: "1", kinds: "Early Toy"},
		{name: "a denial of the second", units: []*policy.Unit{stamp(t, "Early", "a", "x", "1", false), word(t, "b", "prices")}, label: "1", kinds: "Early Toy"},
		{name: "a denial of the first ends it", units: []*policy.Unit{stamp(t, "Early", "a", "x", "error", false), word(t, "b", "prices")}, kinds: "Early"},
		{name: "nothing converges", units: []*policy.Unit{late}, allowed: true, label: "2", kinds: "Late", diverging: "late"},
		{
			name: "two that undo each other's work leave what was there", allowed: true, label: "2", kinds: "Early Late Early Late",
			units: []*policy.Unit{stamp(t, "Early", "a", "x", "1", false), stamp(t, "Late", "b", "x", "2", false)},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := registered(t, test.units...).Try(t.Context(), chain.Trial{Request: create(configMap(nil)), View: empty(t), Explain: &policy.Explain{}})
			if err != nil {
				t.Fatal(err)
			}
			var label, diverging string
			if got.Object != nil {
				label = got.Object.GetLabels()["x"]
			}
			for _, found := range got.Diverging {
				diverging += found.Policy.Name
			}
			var kinds []string
			for i := range got.Evaluations {
				kinds = append(kinds, got.Evaluations[i].Policy.Kind)
			}
			if got.Allowed != test.allowed || label != test.label || diverging != test.diverging || strings.Join(kinds, " ") != test.kinds {
				t.Errorf("got allowed: %v, label %q, diverging %q, evaluations of %v", got.Allowed, label, diverging, kinds)
			}
		})
	}
}

// TestForeignServer: plugged into another API server, a plugin changes the object of the
// request, in its own type, or denies.
func TestForeignServer(t *testing.T) {
	view := empty(t)
	admit := func(object runtime.Object, units ...*policy.Unit) error {
		set := (&policy.Set{}).Edit(nil, units)
		p := &Plugin{kinds: []string{"Early"}, chain: chain.New(func() *policy.Set { return set }, clock.RealClock{}), view: func() cluster.View { return view }}
		a := admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "shop", "prices",
			corev1.SchemeGroupVersion.WithResource("configmaps"), "", admission.Create, nil, false, nil)
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		return p.Admit(t.Context(), a, admission.NewObjectInterfacesFromScheme(scheme))
	}
	object := configMap(nil)
	if err := admit(object, stamp(t, "Early", "a", "x", "1", false)); err != nil || object.GetLabels()["x"] != "1" {
		t.Errorf("got %v and error %v, want the label", object, err)
	}
	typed := &corev1.ConfigMap{}
	typed.Name = "prices"
	if err := admit(typed, stamp(t, "Early", "a", "x", "1", false)); err != nil || typed.Labels["x"] != "1" {
		t.Errorf("got %v and error %v, want the label", typed, err)
	}
	object = configMap(nil)
	if err := admit(object, stamp(t, "Early", "a", "x", "error", false)); err == nil || object.GetLabels() != nil {
		t.Errorf("got %v and error %v, want a denial", object, err)
	}
}

// TestConvergence: of a policy that changes its own result, whoever reports it hears,
// when the request has been answered, and no more than a few requests are looked at.
func TestConvergence(t *testing.T) {
	appends, sets := stamp(t, "Late", "late", "x", "2", true), stamp(t, "Early", "early", "y", "1", false)
	r := registered(t, appends, sets)
	told := make(chan string, 100)
	c := NewConvergence(r, func(unit *policy.Unit, text string) { told <- unit.ID.Name + ": " + text })
	for range 10 {
		if _, err := r.Mutate(t.Context(), create(configMap(nil)), empty(t)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.waiting) != maxLooks {
		t.Errorf("%d requests are to be looked at, want %d", len(c.waiting), maxLooks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	for range maxLooks {
		if got, want := <-told, `late: rule "stamp" changes an object again that all rules have been applied to: replace /metadata/labels/x`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	cancel()
	<-done
	if len(told) > 0 {
		t.Errorf("and %q", <-told)
	}
}
