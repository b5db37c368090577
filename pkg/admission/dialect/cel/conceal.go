// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// secrets are the variables of one evaluation that hold a Secret that the asker
// may not read, by the mark that stands for what depends on its data.
type secrets map[string]json.RawMessage

// secretsOf asks only when there are Secrets.
func secretsOf(ctx context.Context, in policy.Input) secrets {
	found := secrets{}
	if req := in.Request; aboutSecrets(in) {
		found.conceal(ctx, in, plugincel.ObjectVarName, req.Object, req.Namespace, req.Name)
		found.conceal(ctx, in, plugincel.OldObjectVarName, req.OldObject, req.Namespace, req.Name)
	}
	if in.Param != nil && isSecret(in.Param.GroupVersionKind()) {
		found.conceal(ctx, in, plugincel.ParamsVarName, in.Param, "", "")
	}
	return found
}

// conceal adds variable, whose value is obj, unless the asker may read the Secret
// under the name that obj has, and under the one that the request has.
func (s secrets) conceal(ctx context.Context, in policy.Input, variable string, obj *unstructured.Unstructured, namespace, name string) {
	if obj == nil {
		return
	}
	refs := []verdict.ParamRef{secretRef(obj.GetNamespace(), obj.GetName())}
	if refs[0].Namespace == "" {
		refs[0].Namespace = namespace
	}
	if refs[0].Name == "" {
		refs[0].Name = name
	}
	if asked := secretRef(namespace, name); name != "" && asked != refs[0] {
		refs = append(refs, asked)
	}
	for _, ref := range refs {
		if in.Explain.MayRead == nil || !in.Explain.MayRead(ctx, ref) {
			s[variable] = mark("concealed", fmt.Sprintf("data of Secret %s/%s: you may not get it", ref.Namespace, ref.Name), maxValueBytes)
			return
		}
	}
}

func secretRef(namespace, name string) verdict.ParamRef {
	return verdict.ParamRef{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
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

// over returns the mark to show instead of what reads yields, or nil when it may
// be shown. A variable of the policy may be shown when everything may that it is
// computed from; variables returns what that is.
func (s secrets) over(reads []path, variables func(name string) ([]path, bool)) json.RawMessage {
	if len(s) == 0 {
		return nil
	}
	return s.overVariables(reads, variables, map[string]bool{})
}

func (s secrets) overVariables(reads []path, variables func(name string) ([]path, bool), visited map[string]bool) json.RawMessage {
	for _, read := range reads {
		if read.root != plugincel.VariableVarName {
			if concealed, ok := s[read.root]; ok && !harmless(read.steps) {
				return concealed
			}
			continue
		}
		if len(read.steps) == 0 {
			return s.any()
		}
		name := read.steps[0]
		if visited[name] {
			continue
		}
		visited[name] = true
		behind, ok := variables(name)
		if !ok {
			return s.any()
		}
		if concealed := s.overVariables(behind, variables, visited); concealed != nil {
			return concealed
		}
	}
	return nil
}

func (s secrets) any() json.RawMessage {
	for _, variable := range []string{plugincel.ObjectVarName, plugincel.OldObjectVarName, plugincel.ParamsVarName} {
		if concealed, ok := s[variable]; ok {
			return concealed
		}
	}
	return nil
}

// harmless says whether nothing that lies at or below a field of a Secret can come
// from its data. Annotations can: kubectl apply keeps the last configuration in
// one. The managed fields name the keys.
func harmless(steps []string) bool {
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
