// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// told is an informer that a test speaks for.
type told struct{ handler cache.ResourceEventHandler }

func (t *told) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	t.handler = handler
	return complete{}, nil
}

func (t *told) reached(version string) {
	if handler, ok := t.handler.(interface{ Reached(resourceVersion string) }); ok {
		handler.Reached(version)
	}
}

// complete is the registration of a handler that is told of everything.
type complete struct {
	cache.ResourceEventHandlerRegistration
}

func (complete) HasSynced() bool { return true }

func at(version string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { obj.SetResourceVersion(version) }
}

func saying(said string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		obj.Object["spec"] = map[string]any{"says": said}
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

// TestSince: of each policy it is known since which write it says what it says, and
// since which write its bindings are what they are.
func TestSince(t *testing.T) {
	deletes := func(kind, name, version string) catalog.Change {
		return catalog.Change{ID: policy.ID{Kind: kind, Name: name}, Deleted: version}
	}
	reported := func(obj *unstructured.Unstructured) {
		obj.Object["status"] = map[string]any{"observed": obj.GetResourceVersion()}
	}
	steps := []struct {
		name  string
		all   []catalog.Change
		since string
		bound string
	}{
		{"a policy", []catalog.Change{write(stored("Rule", "a", "no", at("5")))}, "5", ""},
		{"its status", []catalog.Change{write(stored("Rule", "a", "no", at("6"), reported))}, "5", ""},
		{"its spec", []catalog.Change{write(stored("Rule", "a", "no", at("7"), saying("yes")))}, "7", ""},
		{"a binding", []catalog.Change{write(stored("RuleBinding", "x", "a", at("8")))}, "7", "8"},
		{"the metadata that the server keeps for itself", []catalog.Change{write(stored("RuleBinding", "x", "a", at("9")))}, "7", "8"},
		{"a binding of another", []catalog.Change{write(stored("RuleBinding", "y", "b", at("10")))}, "7", "8"},
		{"several at once", []catalog.Change{
			write(stored("RuleBinding", "v", "a", at("11"))), write(stored("RuleBinding", "y", "a", at("13"))), write(stored("RuleBinding", "w", "a", at("12"))),
		}, "7", "13"},
		{"one names another now", []catalog.Change{write(stored("RuleBinding", "y", "b", at("14"), saying("b")))}, "7", "14"},
		{"a deletion", []catalog.Change{deletes("RuleBinding", "v", "15")}, "7", "15"},
		{"a deletion of which no version is known", []catalog.Change{deletes("RuleBinding", "w", "")}, "7", "15"},
		{"the last one", []catalog.Change{deletes("RuleBinding", "x", "100")}, "7", "100"},
		{"the policy anew", []catalog.Change{deletes("Rule", "a", "101"), deletes("RuleBinding", "unknown", "102")}, "", ""},
		{"without its past", []catalog.Change{write(stored("Rule", "a", "no", at("103")))}, "103", ""},
	}
	c, _ := known(t)
	for _, step := range steps {
		apply(t, c, step.all...)
		report, _ := c.Report(policy.ID{Kind: "Rule", Name: "a"})
		if report.Since != step.since || report.BoundSince.ResourceVersion != step.bound {
			t.Errorf("%s: since %q, bound since %q; want %q and %q", step.name, report.Since, report.BoundSince.ResourceVersion, step.since, step.bound)
		}
		if step.bound != "" && report.BoundSince.Kind != "RuleBinding" {
			t.Errorf("%s: bound since a write of a %s", step.name, report.BoundSince.Kind)
		}
	}
}

// TestEnforced: what is said to be in force is in force, and is said as soon as it is.
func TestEnforced(t *testing.T) {
	c := catalog.New([]policy.Dialect{&rules{}})
	news := make(chan map[string]string, 100)
	c.WatchEnforced(func() { news <- c.Enforced() })
	stop := c.WatchEnforced(func() { t.Error("told after the end") })
	stop()
	var policies, bindings told
	sources := []catalog.Source{{Kind: "Rule", Informer: &policies}, {Kind: "RuleBinding", Informer: &bindings}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, sources, same) }()
	eventually(t, "nothing is in force", func() bool { return c.Current() != nil })

	policies.handler.OnAdd(stored("Rule", "a", "no", at("5")), true)
	policies.reached("7")
	if got := <-news; got != nil {
		t.Errorf("in force are %v, before all kinds were read", got)
	}
	bindings.reached("7")
	want := func(policies, bindings string) {
		t.Helper()
		if got, want := <-news, map[string]string{"Rule": policies, "RuleBinding": bindings}; !maps.Equal(got, want) {
			t.Errorf("in force are %v, want %v", got, want)
		}
	}
	since := func(policy, binding string) {
		t.Helper()
		report, _ := c.Report(id("Rule", "a"))
		if report.Since != policy || report.BoundSince.ResourceVersion != binding {
			t.Errorf("since %s, bound since %s; want %s and %s", report.Since, report.BoundSince.ResourceVersion, policy, binding)
		}
	}
	want("7", "7")
	bindings.handler.OnAdd(stored("RuleBinding", "x", "a", at("9")), false)
	bindings.reached("9")
	want("7", "9")
	if got := judged(t, c); got != "a/x: no" {
		t.Errorf("judged by %q", got)
	}
	since("5", "9")
	bindings.reached("9") // is no news
	policies.handler.OnDelete(stored("Rule", "a", "no", at("10")))
	policies.reached("10")
	want("10", "9")
	if got := judged(t, c); got != "" {
		t.Errorf("judged by %q", got)
	}
	policies.handler.OnAdd(stored("Rule", "a", "no", at("12")), false)
	policies.reached("20")
	want("20", "9")
	since("12", "9")

	// A backup was restored.
	policies.reached("6")
	want("6", "9")
	bindings.reached("6")
	want("6", "6")
	since("6", "6")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestNothingIsEnforcedWithoutASet: who cannot follow any more has nothing in force.
func TestNothingIsEnforcedWithoutASet(t *testing.T) {
	c := catalog.New([]policy.Dialect{&rules{}})
	var policies told
	ended := make(chan error, 1)
	news := make(chan struct{}, 1)
	c.WatchEnforced(func() { news <- struct{}{} })
	go func() { ended <- c.Run(t.Context(), []catalog.Source{{Kind: "Rule", Informer: &policies}}, same) }()
	eventually(t, "nothing is in force", func() bool { return c.Current() != nil })
	policies.reached("5")
	<-news
	if c.Enforced() == nil {
		t.Error("nothing is in force")
	}
	policies.handler.OnAdd("text", false)
	if err := <-ended; err == nil {
		t.Error("it follows what is no object")
	}
	if got := c.Enforced(); got != nil {
		t.Errorf("in force are %v", got)
	}
}

func id(kind, name string) policy.ID { return policy.ID{Kind: kind, Name: name} }
