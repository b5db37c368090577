// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// TestUnread: before anything has been read nothing looks as if there were none.
func TestUnread(t *testing.T) {
	s := newAPIServer(t)
	c := newCluster(t, s)
	view := c.View()
	if _, err := view.Namespace(t.Context(), "default"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("Namespace: got %v, want another error", err)
	}
	if _, err := view.Objects(t.Context(), everyOf(configMap)); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("Objects: got %v, want another error", err)
	}
	if _, err := view.Mapper().RESTMapping(configMap.GroupKind(), "v1"); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("RESTMapping: got %v, want another error", err)
	}
	if _, err := view.Mapper().KindsFor(schema.GroupVersionResource{Resource: "pods"}); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("KindsFor: got %v, want another error", err)
	}
	if _, err := view.Schema(configMap); err == nil || errors.Is(err, resolver.ErrSchemaNotFound) {
		t.Errorf("Schema: got %v, want another error", err)
	}
	if _, err := view.Convert(widgetNamed("a"), schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"}); err == nil {
		t.Error("Convert: got no error")
	}
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "namespaces") || !strings.Contains(err.Error(), "resources") {
		t.Errorf("Ready: got %v, want namespaces and resources", err)
	}
	if len(s.asked) > 0 {
		t.Errorf("the API server was asked: %v", s.asked)
	}
	// What was a view before is one now.
	run(t, c)
	if got := names(t, view, everyOf(configMap)); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

// TestForbiddenBasics: without the rights that the server cannot do without, it is not
// ready and says which.
func TestForbiddenBasics(t *testing.T) {
	for _, resource := range []string{"namespaces", "apiextensions.k8s.io/customresourcedefinitions"} {
		t.Run(resource, func(t *testing.T) {
			s := newAPIServer(t)
			s.refuse["list "+resource] = forbidden(resource)
			c := newCluster(t, s)
			done := make(chan struct{})
			go func() { defer close(done); c.Run(t.Context()) }()
			t.Cleanup(func() { <-done })
			want := "grant this server get, list and watch on " + resource[strings.LastIndex(resource, "/")+1:]
			eventually(t, "advice", func() string { return fmt.Sprint(strings.Contains(fmt.Sprint(c.Ready()), want)) }, "true")
			s.change(func() { delete(s.refuse, "list "+resource) })
			eventually(t, "ready", func() string { return fmt.Sprint(c.Ready()) }, "<nil>")
		})
	}
}

func TestNamespaces(t *testing.T) {
	s := newAPIServer(t)
	c := newCluster(t, s)
	run(t, c)
	got, err := c.View().Namespace(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	if got.Labels["kubernetes.io/metadata.name"] != "default" || got.Kind != "" || got.APIVersion != "" || got.ManagedFields != nil {
		t.Errorf("got %+v, want labels, no kind and no managedFields", got)
	}
	// One that is not there is asked for each time: it may have been made since.
	for range 5 {
		if _, err := c.View().Namespace(t.Context(), "none"); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want not found", err)
		}
	}
	if got := s.count("get namespaces"); got != 5 {
		t.Errorf("the API server was asked %d times, want 5", got)
	}
	// One of which the API server has not told yet is found: no watch tells of it.
	s.change(func() { s.refuse["watch namespaces"] = forbidden("namespaces") })
	eventually(t, "watches", func() string { return fmt.Sprint(s.watching("namespaces")) }, "0")
	s.change(func() { s.refuse["list namespaces"] = apierrors.NewServiceUnavailable("later") })
	s.put("namespaces", object("v1", "Namespace", "", "new", nil))
	found, err := c.View().Namespace(t.Context(), "new")
	if err != nil || found.Name != "new" || found.ManagedFields != nil || found.Kind != "" {
		t.Errorf("got %+v, %v, want the new one", found, err)
	}
	// That the API server does not answer is not "not found".
	s.change(func() { s.down = true })
	if _, err := c.View().Namespace(t.Context(), "other"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("got %v, want another error", err)
	}
	if _, err := c.View().Namespace(t.Context(), "default"); err != nil {
		t.Errorf("what was read last is lost: %v", err)
	}
}

// TestTogether: those who ask for the same at the same time share the answer.
func TestTogether(t *testing.T) {
	s := newAPIServer(t)
	s.put("configmaps", object("v1", "ConfigMap", "default", "one", nil))
	c := newCluster(t, s)
	run(t, c)
	hold := make(chan struct{})
	s.change(func() { s.stall["get configmaps"] = hold })
	var asking sync.WaitGroup
	results := make(chan string, 20)
	for range cap(results) {
		asking.Go(func() { results <- names(t, c.View(), named(configMap, "one")) })
	}
	eventually(t, "asked", func() string { return fmt.Sprint(s.count("get configmaps")) }, "1")
	close(hold)
	asking.Wait()
	close(results)
	for got := range results {
		if got != "default/one" {
			t.Errorf("got %q", got)
		}
	}
	if got := s.count("get configmaps"); got == cap(results) {
		t.Errorf("the API server was asked %d times, want fewer", got)
	}
}

func TestUse(t *testing.T) {
	s := newAPIServer(t)
	s.put("configmaps", object("v1", "ConfigMap", "default", "b", nil))
	s.put("configmaps", object("v1", "ConfigMap", "default", "a", map[string]string{"x": "y"}))
	s.put("configmaps", object("v1", "ConfigMap", "apps", "z", nil))
	c := newCluster(t, s)
	c.Use([]schema.GroupVersionKind{configMap, configMap})
	run(t, c)
	lists := s.count("list configmaps")
	tests := []struct {
		name      string
		selection cluster.Selection
		want      string
	}{
		{"by name", named(configMap, "a"), "default/a"},
		{"absent", named(configMap, "c"), ""},
		{"all of a namespace", everyOf(configMap), "default/a default/b"},
		{"all", cluster.Selection{Kind: configMap, Selector: labels.Everything()}, "apps/z default/a default/b"},
		{"some", cluster.Selection{Kind: configMap, Selector: labels.SelectorFromSet(labels.Set{"x": "y"})}, "default/a"},
		{"none", cluster.Selection{Kind: configMap, Selector: labels.Nothing()}, ""},
		{"no selector", cluster.Selection{Kind: configMap}, ""},
		{"name without namespace", cluster.Selection{Kind: configMap, Name: "a"}, `error: selecting ConfigMap "a" needs a namespace`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := names(t, c.View(), test.selection); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := s.count("list configmaps"); got != lists {
		t.Errorf("%d lists were read for what is followed", got-lists)
	}
	objects, err := c.View().Objects(t.Context(), named(configMap, "a"))
	if err != nil || len(objects) != 1 || objects[0].GetManagedFields() != nil || objects[0].GetKind() != "ConfigMap" {
		t.Errorf("got %v, %v, want a ConfigMap without managedFields", objects, err)
	}
	// Changes are followed.
	s.put("configmaps", object("v1", "ConfigMap", "default", "c", nil))
	s.remove("configmaps", "default", "a")
	eventually(t, "changes", func() string { return names(t, c.View(), everyOf(configMap)) }, "default/b default/c")
	// One that is no longer used is not followed.
	c.Use([]schema.GroupVersionKind{secret})
	eventually(t, "watches", func() string { return fmt.Sprint(s.watching("configmaps"), s.watching("secrets")) }, "0 1")
	c.Use(nil)
	eventually(t, "watches", func() string { return fmt.Sprint(s.watching("secrets")) }, "0")
	if got := names(t, c.View(), everyOf(configMap)); got != "default/b default/c" {
		t.Errorf("got %q of a kind that is not followed", got)
	}
}

// TestUnsynced: objects that have not been read, or may not be, are an error.
func TestUnsynced(t *testing.T) {
	const text = "error: paramKind kind `&ParamKind{APIVersion:v1,Kind:Secret,}` not yet synced to use for admission"
	s := newAPIServer(t)
	s.put("secrets", object("v1", "Secret", "default", "a", nil))
	s.refuse["list secrets"] = forbidden("secrets")
	c := newCluster(t, s)
	c.Use([]schema.GroupVersionKind{secret})
	run(t, c) // ready although the secrets cannot be read
	for _, selection := range []cluster.Selection{everyOf(secret), named(secret, "a"), named(secret, "none")} {
		got := names(t, c.View(), selection)
		if !strings.HasPrefix(got, text+": ") || !strings.HasSuffix(got, "grant this server get, list and watch on secrets") {
			t.Errorf("got %q", got)
		}
	}
	hold := make(chan struct{})
	s.change(func() {
		delete(s.refuse, "list secrets")
		s.stall["list secrets"] = hold
	})
	c.Use(nil)
	c.Use([]schema.GroupVersionKind{secret})
	if got := names(t, c.View(), everyOf(secret)); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "Kind=Secret") {
		t.Errorf("got %v, want that secrets have not been read", err)
	}
	close(hold)
	eventually(t, "secrets", func() string { return names(t, c.View(), everyOf(secret)) }, "default/a")
}

// TestDefinitionComesAndGoes: a kind that is defined at run time is known at once, is
// an error when it has gone, and another one when it is defined anew.
func TestDefinitionComesAndGoes(t *testing.T) {
	s := newAPIServer(t)
	c := newCluster(t, s)
	c.Use([]schema.GroupVersionKind{widget})
	run(t, c)
	view := c.View()
	if _, err := view.Objects(t.Context(), everyOf(widget)); !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want no match", err)
	}
	for _, name := range []string{"first", "second"} {
		define(s, true)
		s.put("example.com/widgets", widgetNamed(name))
		eventually(t, "defined", func() string { return names(t, view, everyOf(widget)) }, "default/"+name)
		eventually(t, "watches", func() string { return fmt.Sprint(s.watching("example.com/widgets")) }, "1")
		s.remove("example.com/widgets", "default", name)
		undefine(s)
		s.change(func() {
			s.refuse["watch example.com/widgets"] = apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{}, "", "", 0, true)
		})
		eventually(t, "gone", func() string {
			_, err := c.View().Objects(t.Context(), everyOf(widget))
			return fmt.Sprint(meta.IsNoMatchError(err))
		}, "true")
		eventually(t, "watches", func() string { return fmt.Sprint(s.watching("example.com/widgets")) }, "0")
		s.change(func() { delete(s.refuse, "watch example.com/widgets") })
		view = c.View()
	}
}

func TestEquivalents(t *testing.T) {
	s := newAPIServer(t)
	define(s, true)
	c := newCluster(t, s)
	run(t, c)
	tests := []struct {
		resource    schema.GroupVersionResource
		subresource string
		want        string
	}{
		{widget.GroupVersion().WithResource("widgets"), "", "example.com/v1beta1 example.com/v1alpha1"},
		{schema.GroupVersionResource{Group: "example.com", Version: "v1alpha1", Resource: "widgets"}, "status", "example.com/v1beta1 example.com/v1"},
		{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "scale", ""},
		{schema.GroupVersionResource{Version: "v1", Resource: "events"}, "", "events.k8s.io/v1"},
		{schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}, "", "v1"},
		{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", ""},
		{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, "", ""},
	}
	for _, test := range tests {
		var got []string
		for _, one := range c.View().Equivalents(test.resource, test.subresource) {
			got = append(got, one.Resource.GroupVersion().String())
			if one.Kind.GroupVersion() != one.Resource.GroupVersion() {
				t.Errorf("%v: got kind %v", one.Resource, one.Kind)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v %s: got %v, want %s", test.resource, test.subresource, got, test.want)
		}
	}
	if _, err := c.View().Mapper().RESTMapping(widget.GroupKind(), "v1alpha1"); !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want that a version is not served", err)
	}
}

// TestEquivalentsOfNewKind: requests for a resource come as soon as it is defined, and may
// come before anybody has told of it.
func TestEquivalentsOfNewKind(t *testing.T) {
	s := newAPIServer(t)
	c := newCluster(t, s)
	run(t, c)
	before := c.View()
	define(s, true)
	for name, view := range map[string]cluster.View{"a new view": c.View(), "a view of before": before} {
		if got := view.Equivalents(widget.GroupVersion().WithResource("widgets"), ""); len(got) != 2 {
			t.Errorf("%s: got %v, want two others", name, got)
		}
	}
}

// TestPartialDiscovery: a group that cannot be told of keeps its last known resources;
// one that never was known is an error, and not "no match".
func TestPartialDiscovery(t *testing.T) {
	s := newAPIServer(t)
	s.serve("metrics.k8s.io", "v1beta1", true, "PodMetric")
	s.serve("late.example.org", "v1", true, "Late")
	s.stale("late.example.org", true)
	c := newCluster(t, s)
	run(t, c)
	late := schema.GroupVersionKind{Group: "late.example.org", Version: "v1", Kind: "Late"}
	for _, versions := range [][]string{{"v1"}, nil, {""}} {
		if _, err := c.View().Mapper().RESTMapping(late.GroupKind(), versions...); err == nil || meta.IsNoMatchError(err) {
			t.Errorf("%v: got %v, want another error", versions, err)
		}
	}
	if _, err := c.View().Mapper().RESTMapping(late.GroupKind(), "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want that there is no v2", err)
	}
	if _, err := c.View().Schema(late); err == nil || errors.Is(err, resolver.ErrSchemaNotFound) {
		t.Errorf("got %v, want another error", err)
	}
	s.stale("late.example.org", false)
	s.stale("metrics.k8s.io", true)
	s.put("apiregistration.k8s.io/apiservices", object("apiregistration.k8s.io/v1", "APIService", "", "v1.late.example.org", nil))
	eventually(t, "late", func() string {
		_, err := c.View().Mapper().RESTMapping(late.GroupKind(), "v1")
		return fmt.Sprint(err)
	}, "<nil>")
	if _, err := c.View().Mapper().RESTMapping(schema.GroupKind{Group: "metrics.k8s.io", Kind: "PodMetric"}, "v1beta1"); err != nil {
		t.Errorf("the last known resources are lost: %v", err)
	}
	if got := c.Status().Discovery.Unread; len(got) != 1 || got[0].Group != "metrics.k8s.io" {
		t.Errorf("got unread %v, want metrics.k8s.io", got)
	}
}

// TestDiscoveryLags: an API server that starts tells of custom resources last. What is
// still defined stays known.
func TestDiscoveryLags(t *testing.T) {
	s := newAPIServer(t)
	define(s, true)
	c := newCluster(t, s)
	run(t, c)
	s.unserve("example.com")
	rounds := s.count("discovery /apis")
	s.put("apiregistration.k8s.io/apiservices", object("apiregistration.k8s.io/v1", "APIService", "", "v1.other.org", nil))
	eventually(t, "rounds", func() string { return fmt.Sprint(s.count("discovery /apis") > rounds+1) }, "true")
	if _, err := c.View().Mapper().RESTMapping(widget.GroupKind(), "v1"); err != nil {
		t.Error(err)
	}
	undefine(s)
	eventually(t, "gone", func() string {
		_, err := c.View().Mapper().RESTMapping(widget.GroupKind(), "v1")
		return fmt.Sprint(meta.IsNoMatchError(err))
	}, "true")
}

// TestMapperStays: mappers have the same types as long as these do not change, and
// who watches hears of the groups that change.
func TestMapperStays(t *testing.T) {
	s := newAPIServer(t)
	s.documents["api/v1"] = document("v1", "ConfigMap", "data")
	c := newCluster(t, s)
	heard := make(chan []string, 10)
	c.WatchDefinitions(func(groups []string) { heard <- groups })
	run(t, c)
	if got := <-heard; !slices.Contains(got, "") || !slices.Contains(got, "events.k8s.io") {
		t.Errorf("heard of %v first, want all groups", got)
	}
	types := func() any {
		own, ok := c.View().Mapper().(interface{ Types() any })
		if !ok {
			t.Fatal("the mapper does not tell its types")
		}
		return own.Types()
	}
	first := types()
	rounds := s.count("discovery /apis")
	s.put("apiregistration.k8s.io/apiservices", object("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com", nil))
	eventually(t, "rounds", func() string { return fmt.Sprint(s.count("discovery /apis") > rounds+1) }, "true")
	if types() != first {
		t.Error("there are other types, although nothing has changed")
	}
	define(s, true)
	eventually(t, "defined", func() string {
		return fmt.Sprint(len(c.View().Equivalents(widget.GroupVersion().WithResource("widgets"), "")))
	}, "2")
	if types() == first {
		t.Error("there are the same types, although a kind was defined")
	}
	second := types()
	s.change(func() { s.documents["api/v1"] = document("v1", "ConfigMap", "data2") })
	s.put("apiregistration.k8s.io/apiservices", object("apiregistration.k8s.io/v1", "APIService", "", "v2.example.com", nil))
	// In how many steps the API server told of Widgets is open; the last may be that of
	// the core group, whose schemas have changed.
	for core := false; !core; {
		got := <-heard
		core = slices.Contains(got, "")
		if slices.ContainsFunc(got, func(group string) bool { return group != "" && group != "example.com" }) {
			t.Errorf("heard of %q, want example.com and then the core group", got)
		}
	}
	if types() == second {
		t.Error("there are the same types, although a schema has changed")
	}
}

func document(version, kind, field string) string {
	return fmt.Sprintf(`{"components":{"schemas":{
		"K":{"type":"object","properties":{"metadata":{"allOf":[{"$ref":"#/components/schemas/M"}]},%q:{"type":"string"}},
			"x-kubernetes-group-version-kind":[{"group":"","version":%q,"kind":%q}]},
		"M":{"type":"object","properties":{"name":{"type":"string"},"owner":{"$ref":"#/components/schemas/M"}}}}},"end":%q}`, field, version, kind, field)
}

func TestSchema(t *testing.T) {
	s := newAPIServer(t)
	s.documents["api/v1"] = document("v1", "ConfigMap", "data")
	c := newCluster(t, s)
	run(t, c)
	for range 3 {
		got, err := c.View().Schema(configMap)
		if err != nil {
			t.Fatal(err)
		}
		owner := got.Properties["metadata"].Properties["owner"]
		if got.Properties["data"].Type[0] != "string" || got.Properties["metadata"].Properties["name"].Type[0] != "string" || owner.Type[0] != "object" || len(owner.Properties) > 0 {
			t.Errorf("got %+v", got)
		}
	}
	if got := s.count("document"); got != 1 {
		t.Errorf("the document was read %d times, want 1", got)
	}
	for _, kind := range []schema.GroupVersionKind{secret, widget, {Group: "events.k8s.io", Version: "v1", Kind: "Event"}} {
		if _, err := c.View().Schema(kind); !errors.Is(err, resolver.ErrSchemaNotFound) {
			t.Errorf("%v: got %v, want that there is none", kind, err)
		}
	}
	s.change(func() { s.documents["api/v1"] = "no document at all" })
	s.put("apiregistration.k8s.io/apiservices", object("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com", nil))
	eventually(t, "broken", func() string {
		_, err := c.View().Schema(configMap)
		return fmt.Sprint(err != nil && !errors.Is(err, resolver.ErrSchemaNotFound))
	}, "true")
}

// TestPages: what is not followed is read in pages, and returned in the order of
// namespace and name.
func TestPages(t *testing.T) {
	s := newAPIServer(t)
	for _, namespace := range []string{"team", "team-a"} {
		s.put("configmaps", object("v1", "ConfigMap", namespace, "c", nil))
	}
	for i := range 1200 {
		s.put("secrets", object("v1", "Secret", "default", fmt.Sprintf("s%04d", i), nil))
	}
	c := newCluster(t, s)
	run(t, c)
	if got := names(t, c.View(), cluster.Selection{Kind: configMap, Selector: labels.Everything()}); got != "team/c team-a/c" {
		t.Errorf("got %q, want them by namespace", got)
	}
	found, err := c.View().Objects(t.Context(), everyOf(secret))
	if err != nil || len(found) != 1200 || s.count("list secrets") != 3 {
		t.Errorf("got %d in %d pages, %v, want 1200 in 3", len(found), s.count("list secrets"), err)
	}
	nothing := cluster.Selection{Kind: secret, Selector: labels.Nothing()}
	if got := names(t, c.View(), nothing); got != "" || s.count("list secrets") != 3 {
		t.Errorf("got %q for nothing, in %d pages", got, s.count("list secrets")-3)
	}
	s.change(func() { s.refuse["list secrets"] = forbidden("secrets") })
	if got := names(t, c.View(), everyOf(secret)); !strings.HasSuffix(got, "grant this server get, list and watch on secrets") {
		t.Errorf("got %q", got)
	}
}

// TestOutage: what was read last stays while the API server does not answer, and
// changes are followed again when it does.
func TestOutage(t *testing.T) {
	s := newAPIServer(t)
	s.put("configmaps", object("v1", "ConfigMap", "default", "a", nil))
	c := newCluster(t, s)
	c.Use([]schema.GroupVersionKind{configMap})
	run(t, c)
	s.change(func() { s.down = true })
	s.CloseClientConnections()
	eventually(t, "noticed", func() string {
		for _, one := range c.Status().Informers {
			if one.Kind == configMap {
				return fmt.Sprint(one.Synced, one.Err != nil)
			}
		}
		return ""
	}, "true true")
	if got := names(t, c.View(), everyOf(configMap)); got != "default/a" {
		t.Errorf("got %q, want what was read last", got)
	}
	if got := names(t, c.View(), named(configMap, "b")); !strings.HasPrefix(got, "error: ") {
		t.Errorf("got %q for what was never read, want an error", got)
	}
	if err := c.Ready(); err != nil {
		t.Errorf("it is not ready any more: %v", err)
	}
	silent := time.Now()
	s.put("configmaps", object("v1", "ConfigMap", "default", "b", nil))
	s.change(func() { s.down = false })
	eventually(t, "recovered", func() string { return names(t, c.View(), everyOf(configMap)) }, "default/a default/b")
	eventually(t, "heard of", func() string {
		for _, one := range c.Status().Informers {
			if one.Kind == configMap {
				return fmt.Sprint(one.HeardAt.After(silent), c.HeardAt().Before(one.HeardAt))
			}
		}
		return ""
	}, "true false")
}

func TestAuthorizer(t *testing.T) {
	s := newAPIServer(t)
	c := newCluster(t, s)
	ask := func(verb string) string {
		decision, _, err := c.View().Authorizer().Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "jane"}, Verb: verb, APIVersion: "v1", Resource: "pods", ResourceRequest: true,
		})
		return fmt.Sprint(decision == authorizer.DecisionAllow, err != nil)
	}
	s.change(func() { s.allow = true })
	if got := ask("get") + ask("get"); got != "true falsetrue false" || s.count("review") != 1 {
		t.Errorf("got %s after %d reviews, want yes twice after one", got, s.count("review"))
	}
	s.change(func() { s.allow = false })
	if got := ask("list"); got != "false false" {
		t.Errorf("got %s, want no", got)
	}
	s.change(func() { s.refuse["review"] = forbidden("subjectaccessreviews") })
	if got := ask("watch"); got != "false true" {
		t.Errorf("got %s, want an error", got)
	}
}

// TestStored: objects that are laid over the cluster look as if they were stored in it.
func TestStored(t *testing.T) {
	s := newAPIServer(t)
	define(s, true)
	c := newCluster(t, s)
	run(t, c)
	given := widgetNamed("given")
	given.Object["unknown"] = "x"
	above, err := overlay.New(c.View(), []*unstructured.Unstructured{given})
	if err != nil {
		t.Fatal(err)
	}
	found, err := above.Objects(t.Context(), named(widget, "given"))
	if err != nil || len(found) != 1 || found[0].Object["size"] != int64(3) || found[0].Object["unknown"] != nil {
		t.Errorf("got %v, %v, want it with defaults and pruned", found, err)
	}
	older := schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"}
	converted, err := c.View().Convert(widgetNamed("other"), older)
	if err != nil || converted.GetAPIVersion() != "example.com/v1beta1" || converted.Object["size"] != nil {
		t.Errorf("got %v, %v, want another version and no defaults", converted, err)
	}
	if _, err := c.View().Convert(widgetNamed("other"), configMap); err == nil {
		t.Error("a Widget was converted to a ConfigMap")
	}
	// What the API server returns is stored.
	s.put("example.com/widgets", widgetNamed("there"))
	found, err = c.View().Objects(t.Context(), named(widget, "there"))
	if err != nil || len(found) != 1 || found[0].Object["size"] != nil || found[0].GetManagedFields() == nil {
		t.Errorf("got %v, %v, want it as the API server has it", found, err)
	}
}
