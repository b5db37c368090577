// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/live"
)

var (
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secret    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	widget    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func newCluster(t *testing.T, s *apiServer) *live.Cluster {
	t.Helper()
	config := s.config()
	dynamics, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return live.New(live.Options{Dynamic: dynamics, Kubernetes: client, Discovery: discoverer, Clock: clock.RealClock{}})
}

// run runs a cluster until the test ends, and waits until it is ready.
func run(t *testing.T, c *live.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("Run does not return")
		}
	})
	eventually(t, "ready", func() string { return fmt.Sprint(c.Ready()) }, "<nil>")
}

// eventually waits until a text is the wanted one.
func eventually(t *testing.T, what string, get func() string, want string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		got := get()
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}

// names are the objects of a selection in default, or the error.
func names(t *testing.T, view cluster.View, selection cluster.Selection) string {
	t.Helper()
	found, err := view.Objects(t.Context(), selection)
	if err != nil {
		return "error: " + err.Error()
	}
	var all []string
	for _, one := range found {
		all = append(all, strings.TrimPrefix(one.GetNamespace()+"/"+one.GetName(), "/"))
	}
	return strings.Join(all, " ")
}

func everyOf(kind schema.GroupVersionKind) cluster.Selection {
	return cluster.Selection{Kind: kind, Namespace: "default", Selector: labels.Everything()}
}

func named(kind schema.GroupVersionKind, name string) cluster.Selection {
	return cluster.Selection{Kind: kind, Namespace: "default", Name: name}
}

func forbidden(resource string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", fmt.Errorf("no right"))
}

// define adds the CustomResourceDefinition of Widgets and, unless it is not served yet,
// the resources.
func define(s *apiServer, served bool) {
	status := "False"
	if served {
		status = "True"
	}
	version := func(name string, served, storage bool) any {
		return map[string]any{
			"name": name, "served": served, "storage": storage, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"size": map[string]any{"type": "integer", "default": int64(3)},
			}}},
		}
	}
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com", nil)
	crd.Object["spec"] = map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget"},
		"conversion": map[string]any{"strategy": "None"},
		"versions":   []any{version("v1beta1", true, false), version("v1", true, true), version("v1alpha1", false, false)},
	}
	crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": status}}}
	if served {
		s.serve("example.com", "v1", true, "Widget")
		s.serve("example.com", "v1beta1", true, "Widget")
	}
	s.put("apiextensions.k8s.io/customresourcedefinitions", crd)
}

func undefine(s *apiServer) {
	s.unserve("example.com")
	s.remove("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.example.com")
}

func widgetNamed(name string) *unstructured.Unstructured {
	return object("example.com/v1", "Widget", "default", name, nil)
}
