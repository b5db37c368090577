// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// clusterPolicy returns the policy whose spec is text, as YAML.
func clusterPolicy(t testing.TB, text string) *policyapi.ClusterPolicy {
	t.Helper()
	stored := &policyapi.ClusterPolicy{}
	stored.Name = "p"
	if err := yaml.UnmarshalStrict([]byte(text), &stored.Spec); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return stored
}

func compiled(t testing.TB, text string) *policy.Unit {
	t.Helper()
	unit, errs := kyverno.New().Compile(t.Context(), clusterPolicy(t, text))
	if len(errs) > 0 {
		t.Fatalf("%v:\n%s", errs.ToAggregate(), text)
	}
	return unit
}

// object decodes YAML as an API server decodes JSON: whole numbers stay whole.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: value}
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  containers:
  - {name: nginx, image: "nginx:1.27"}
  - {name: side-car, image: "registry.example.com/tools/side:v2"}
`

// create is the request of jane for an object.
func create(obj *unstructured.Unstructured) *request.Request {
	kind := obj.GroupVersionKind()
	resource := map[string]string{"Pod": "pods", "ConfigMap": "configmaps", "Widget": "widgets", "Deployment": "deployments", "Secret": "secrets"}[kind.Kind]
	return request.New(request.Fields{
		UID: "u-1", Name: obj.GetName(), Namespace: obj.GetNamespace(), Operation: admission.Create,
		Kind: kind, Resource: kind.GroupVersion().WithResource(resource), Object: obj,
		User: &user.DefaultInfo{Name: "jane", Groups: []string{"dev"}},
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	})
}

func offlineView(t testing.TB, objects ...*unstructured.Unstructured) cluster.View {
	t.Helper()
	view, err := offline.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func input(req *request.Request, view cluster.View) policy.Input {
	return policy.Input{Request: req, View: view, Matched: cluster.Equivalent{Resource: req.Resource, Kind: req.Kind}}
}
