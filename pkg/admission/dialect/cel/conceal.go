// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// veil lies over a variable of an evaluation that the asker may not read: the
// param or the Namespace that they may not get, or an object of the request, which
// is their own, when it is a Secret.
type veil struct {
	variable string
	text     string // says what may not be read
	// bare says whether what lies at or below a field may be shown all the same.
	bare func(steps []string) bool
}

// veils are those of one evaluation.
type veils []veil

// veilsOf asks what the asker may read.
func veilsOf(ctx context.Context, g *given) veils {
	var v veils
	in := g.in
	if req := in.Request; aboutSecrets(in) {
		v.cover(ctx, in, plugincel.ObjectVarName, besidesSecretData, secretRefs(req, req.Object)...)
		v.cover(ctx, in, plugincel.OldObjectVarName, besidesSecretData, secretRefs(req, req.OldObject)...)
	}
	if param := in.Param; param != nil {
		v.cover(ctx, in, plugincel.ParamsVarName, nameOfParam, verdict.ParamRef{
			APIVersion: param.GetAPIVersion(), Kind: param.GetKind(),
			Namespace: param.GetNamespace(), Name: param.GetName(),
		})
	}
	if g.namespace != nil {
		v.cover(ctx, in, plugincel.NamespaceVarName, nameOfNamespace,
			verdict.ParamRef{APIVersion: "v1", Kind: "Namespace", Name: g.namespace.Name})
	}
	return v
}

// cover conceals a variable unless the asker may read all of refs.
func (v *veils) cover(ctx context.Context, in policy.Input, variable string, bare func([]string) bool, refs ...verdict.ParamRef) {
	for _, ref := range refs {
		if in.Explain.MayRead != nil && in.Explain.MayRead(ctx, ref) {
			continue
		}
		name := ref.Name
		if ref.Namespace != "" {
			name = ref.Namespace + "/" + name
		}
		text := fmt.Sprintf("%s %s: you may not get it", ref.Kind, name)
		if ref.Kind == "Secret" {
			text = "data of " + text
		}
		*v = append(*v, veil{variable: variable, text: text, bare: bare})
		return
	}
}

// secretRefs returns the names of an object that is a Secret: the one that it has,
// and the one that the request has.
func secretRefs(req *request.Request, obj *unstructured.Unstructured) []verdict.ParamRef {
	if obj == nil {
		return nil
	}
	asked := verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: req.Namespace, Name: req.Name}
	own := asked
	own.Namespace = cmp.Or(obj.GetNamespace(), asked.Namespace)
	own.Name = cmp.Or(obj.GetName(), asked.Name)
	if asked.Name == "" || asked == own {
		return []verdict.ParamRef{own}
	}
	return []verdict.ParamRef{own, asked}
}

// aboutSecrets says whether the objects of the request are Secrets by any of the
// names that it has for them.
func aboutSecrets(in policy.Input) bool {
	req := in.Request
	kinds := []schema.GroupVersionKind{req.Kind, req.RequestKind, in.Matched.Kind}
	for _, obj := range []*unstructured.Unstructured{req.Object, req.OldObject} {
		if obj != nil {
			kinds = append(kinds, obj.GroupVersionKind())
		}
	}
	resources := []schema.GroupVersionResource{req.Resource, req.RequestResource, in.Matched.Resource}
	return slices.ContainsFunc(kinds, isSecret) || slices.ContainsFunc(resources, func(r schema.GroupVersionResource) bool {
		return r.Group == "" && r.Resource == "secrets"
	})
}

func isSecret(kind schema.GroupVersionKind) bool { return kind.Group == "" && kind.Kind == "Secret" }

// besidesSecretData holds where nothing can come from the data of a Secret.
// Annotations can: kubectl apply keeps the last configuration in one. The managed
// fields name the keys.
func besidesSecretData(steps []string) bool {
	switch {
	case len(steps) == 0:
		return false
	case steps[0] != "metadata":
		return slices.Contains([]string{"apiVersion", "kind", "type", "immutable"}, steps[0])
	case len(steps) == 1:
		return false
	}
	return slices.Contains([]string{
		"name", "generateName", "namespace", "uid", "labels", "resourceVersion", "generation", "finalizers",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences",
	}, steps[1])
}

// nameOfParam holds for what an evaluation says of a param anyway.
func nameOfParam(steps []string) bool {
	switch {
	case len(steps) == 1:
		return steps[0] == "apiVersion" || steps[0] == "kind"
	case len(steps) == 2:
		return steps[0] == "metadata" && (steps[1] == "name" || steps[1] == "namespace")
	}
	return false
}

func nameOfNamespace(steps []string) bool { return slices.Equal(steps, []string{"metadata", "name"}) }

// first returns what the first veil conceals, if there is one.
func (v veils) first() string {
	if len(v) == 0 {
		return ""
	}
	return v[0].text
}
