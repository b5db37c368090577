// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// requestKey names what all policies share of the variable request: all but the roles,
// with the object that came in.
var requestKey = request.NewKey[map[string]any]("kyverno request")

// requestValue returns the variable request.
func (v *Variables) requestValue(ctx context.Context) (map[string]any, error) {
	if v.request != nil {
		return v.request, nil
	}
	value, err := request.Derive(v.in.Request, requestKey, admissionRequest)
	if err != nil {
		return nil, err
	}
	names, err := v.rolesValue(ctx)
	if err != nil {
		return nil, err
	}
	if v.object != v.in.Request.Object || names.any() {
		if err := v.run.Spend(ctx, len(value), len(value)*mapEntrySize); err != nil {
			return nil, err
		}
		value = maps.Clone(value)
		delete(value, "object")
		addContent(value, "object", v.object)
		names.addTo(value)
	}
	v.request = value
	return value, nil
}

// admissionRequest returns a request as the JSON of an AdmissionRequest has it, without
// what is optional and empty. An object that there is not is absent, too, so that to ask
// for a field of it is an error: the JSON has null, in which Kyverno finds null for any.
func admissionRequest(req *request.Request) (map[string]any, error) {
	value := map[string]any{
		"uid":             string(req.UID),
		"kind":            kindValue(req.Kind),
		"resource":        resourceValue(req.Resource),
		"requestKind":     kindValue(req.RequestKind),
		"requestResource": resourceValue(req.RequestResource),
		"operation":       string(req.Operation),
		"userInfo":        userValue(req.User),
		"dryRun":          req.DryRun,
	}
	addContent(value, "object", req.Object)
	addContent(value, "oldObject", req.OldObject)
	addContent(value, "options", req.Options)
	for key, text := range map[string]string{
		"subResource":        req.SubResource,
		"requestSubResource": req.RequestSubResource,
		"name":               req.Name,
		"namespace":          req.Namespace,
	} {
		if text != "" {
			value[key] = text
		}
	}
	return value, nil
}

func kindValue(kind schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

func resourceValue(resource schema.GroupVersionResource) map[string]any {
	return map[string]any{"group": resource.Group, "version": resource.Version, "resource": resource.Resource}
}

// userValue returns a user as the JSON of a UserInfo has it, without what is empty.
func userValue(info user.Info) map[string]any {
	value := map[string]any{}
	if name := info.GetName(); name != "" {
		value["username"] = name
	}
	if uid := info.GetUID(); uid != "" {
		value["uid"] = uid
	}
	if groups := info.GetGroups(); len(groups) > 0 {
		value["groups"] = list(groups)
	}
	if all := info.GetExtra(); len(all) > 0 {
		extra := make(map[string]any, len(all))
		for key, values := range all {
			extra[key] = list(values)
		}
		value["extra"] = extra
	}
	return value
}

// serviceAccount returns the namespace and the name of the service account that a user
// is; both are empty when it is none.
func serviceAccount(info user.Info) (namespace, name string) {
	account, found := strings.CutPrefix(info.GetName(), "system:serviceaccount:")
	if !found {
		return "", ""
	}
	namespace, name, found = strings.Cut(account, ":")
	if !found || namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", ""
	}
	return namespace, name
}

// addContent adds the fields of an object, if there is one.
func addContent(value map[string]any, key string, object *unstructured.Unstructured) {
	if object != nil && object.Object != nil {
		value[key] = object.Object
	}
}

func list(texts []string) []any {
	items := make([]any, len(texts))
	for i, text := range texts {
		items[i] = text
	}
	return items
}
