// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	listersv1 "k8s.io/client-go/listers/core/v1"
)

// oracle answers every question about rights, and the same each time. Some verbs
// have an answer of their own, so that expressions can count on it.
type oracle struct{}

var _ authorizer.UnconditionalAuthorizer = oracle{}

func (oracle) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	switch a.GetVerb() {
	case "get":
		return authorizer.DecisionAllow, "all may read", nil
	case "delete":
		return authorizer.DecisionDeny, "", nil
	case "patch":
		return authorizer.DecisionNoOpinion, "", errors.New("the oracle is silent")
	}
	fields, fieldErr := a.GetFieldSelector()
	labels, labelErr := a.GetLabelSelector()
	question := fmt.Sprintf("%s %v %v %v %s %s %s %s %s %s %s %v %v %v %v", a.GetUser().GetName(), a.GetUser().GetGroups(),
		a.GetUser().GetExtra(), a.IsResourceRequest(), a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(),
		a.GetNamespace(), a.GetName(), a.GetPath(), fields, fieldErr, labels, labelErr)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(question))
	switch n := hash.Sum32() % 8; n {
	case 0, 1, 2, 3:
		return authorizer.DecisionAllow, fmt.Sprint("role ", n), nil
	case 4, 5:
		return authorizer.DecisionNoOpinion, fmt.Sprint("no role ", n), nil
	case 6:
		return authorizer.DecisionDeny, "denied: " + question, nil
	default:
		return authorizer.DecisionNoOpinion, "unsure", errors.New("cannot tell: " + question)
	}
}

// newRegistry registers resources as kube-apiserver and apiextensions-apiserver
// do. Built-in kinds that have equivalents (HorizontalPodAutoscaler, Event) are
// left out: the view does not convert them, which KNOWN_ISSUES.md says.
func newRegistry() runtime.EquivalentResourceRegistry {
	registry := runtime.NewEquivalentResourceRegistry()
	for _, known := range []struct{ group, version, resource, subresource, kind string }{
		{"", "v1", "pods", "", "Pod"},
		{"", "v1", "pods", "status", "Pod"},
		{"", "v1", "pods", "exec", "PodExecOptions"},
		{"", "v1", "configmaps", "", "ConfigMap"},
		{"", "v1", "nodes", "", "Node"},
		{"", "v1", "namespaces", "", "Namespace"},
		{"", "v1", "namespaces", "status", "Namespace"},
		{"apps", "v1", "deployments", "", "Deployment"},
		{"apps", "v1", "deployments", "status", "Deployment"},
		{"example.com", "v2", "gadgets", "", "Gadget"},
		{"example.com", "v2", "gadgets", "status", "Gadget"},
		{"example.com", "v1", "gadgets", "", "Gadget"},
		{"example.com", "v1", "gadgets", "status", "Gadget"},
		{"example.com", "v1beta1", "gadgets", "", "Gadget"},
		{"example.com", "v1beta1", "gadgets", "status", "Gadget"},
		{"example.com", "v1", "realms", "", "Realm"},
		{"example.com", "v2", "realms", "", "Realm"},
		{"example.com", "v1", "settings", "", "Setting"},
		{"example.com", "v2", "settings", "", "Setting"},
	} {
		version := schema.GroupVersion{Group: known.group, Version: known.version}
		registry.RegisterKindFor(version.WithResource(known.resource), known.subresource, version.WithKind(known.kind))
	}
	scale := schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	registry.RegisterKindFor(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "scale", scale)
	registry.RegisterKindFor(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "gadgets"}, "scale", scale)
	return registry
}

// objectInterfaces are those of an API server that converts custom resources as
// the strategy None does, and nothing else.
func (w *world) objectInterfaces() admission.ObjectInterfaces {
	return &admission.RuntimeObjectInterfaces{
		ObjectCreater: creater{}, ObjectConvertor: convertor{}, EquivalentResourceMapper: w.registry,
	}
}

type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}

type convertor struct{ runtime.ObjectConvertor }

func (convertor) Convert(in, out, _ any) error {
	if options, ok := in.(options); ok {
		in = options.object
	}
	from, ok := in.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("not a custom resource: %T", in)
	}
	to, ok := out.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("not a custom resource: %T", out)
	}
	kind := to.GroupVersionKind()
	to.Object = from.DeepCopy().Object
	to.SetGroupVersionKind(kind)
	return nil
}

// lister gives upstream's matcher the Namespaces.
type lister struct {
	listersv1.NamespaceLister
	world *world
}

func (l lister) Get(name string) (*corev1.Namespace, error) { return l.world.namespace(name) }
