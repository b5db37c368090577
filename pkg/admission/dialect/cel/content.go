// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// requestSizes returns how large that is which expressions can find in a request that
// a policy has matched under a kind and a resource: what CreateAdmissionRequest of
// k8s.io/apiserver/pkg/admission/plugin/cel makes of it, as JSON. It is measured
// without being made, as most policies do not look at it.
func requestSizes(of admission.Attributes, kind schema.GroupVersionKind, resource schema.GroupVersionResource) bound.Sizes {
	fields := 11
	options := of.GetOperationOptions()
	if options != nil {
		fields++
	}
	var t bound.Tally
	t.Map(fields)
	// One for all kinds and resources, as long as any of them.
	requestKind, requestResource := of.GetKind(), of.GetResource()
	group := longest(kind.Group, resource.Group, requestKind.Group, requestResource.Group)
	version := longest(kind.Version, resource.Version, requestKind.Version, requestResource.Version)
	name := longest(kind.Kind, resource.Resource, requestKind.Kind, requestResource.Resource)
	for _, key := range [...]string{"kind", "resource", "requestKind", "requestResource"} {
		t.Key(key)
		t.Map(3)
		t.Text("group", group)
		t.Text("version", version)
		t.Text("resource", name)
	}
	t.Text("subResource", of.GetSubresource())
	t.Text("requestSubResource", of.GetSubresource())
	t.Text("name", of.GetName())
	t.Text("namespace", of.GetNamespace())
	t.Text("operation", string(of.GetOperation()))
	t.Field("dryRun", true)
	tallyUser(&t, of.GetUserInfo())
	switch options := options.(type) {
	case nil:
	case *unstructured.Unstructured:
		t.Field("options", options.Object)
	default:
		t.Field("options", options) // cannot be measured
	}
	return t.Sizes()
}

func tallyUser(t *bound.Tally, who user.Info) {
	if who == nil {
		who = &user.DefaultInfo{}
	}
	t.Key("userInfo")
	t.Map(4)
	t.Text("username", who.GetName())
	t.Text("uid", who.GetUID())
	t.Texts("groups", who.GetGroups())
	extra := who.GetExtra()
	t.Key("extra")
	t.Map(len(extra))
	for key, values := range extra {
		t.Texts(key, values)
	}
}

// namespaceContent returns what expressions can find in a Namespace as JSON has it, for
// nothing but to measure it, or what cannot be measured.
func namespaceContent(namespace *corev1.Namespace) any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(namespace)
	if err != nil {
		return err
	}
	return content
}

func longest(list ...string) string {
	return slices.MaxFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}
