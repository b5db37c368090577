// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
)

// inspect finds what would make the object look like another one, or like one
// without labels: the accessors of unstructured objects return nothing for a
// value of the wrong type.
func inspect(obj *unstructured.Unstructured) field.ErrorList {
	if obj == nil || obj.Object == nil {
		return field.ErrorList{field.Required(field.NewPath("kind"), "an object is needed")}
	}
	var errs field.ErrorList
	errs = append(errs, needString(obj.Object, "apiVersion", nil, "name the group and version, for example apps/v1")...)
	errs = append(errs, needString(obj.Object, "kind", nil, "name the kind, for example ConfigMap")...)
	if text, ok := obj.Object["apiVersion"].(string); ok {
		if _, err := schema.ParseGroupVersion(text); err != nil || text == "/" {
			errs = append(errs, field.Invalid(field.NewPath("apiVersion"), text, "write it as group/version, for example apps/v1"))
		}
	}
	at := field.NewPath("metadata")
	metadata, ok := obj.Object["metadata"].(map[string]any)
	if !ok && obj.Object["metadata"] != nil {
		return append(errs, field.TypeInvalid(at, obj.Object["metadata"], "must be a mapping"))
	}
	errs = append(errs, needString(metadata, "name", at, "give the object a name")...)
	if name, ok := metadata["name"].(string); ok {
		if faults := content.IsPathSegmentName(name); len(faults) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), name, strings.Join(faults, "; ")))
		}
	}
	if value := metadata["namespace"]; value != nil {
		if _, ok := value.(string); !ok {
			errs = append(errs, field.TypeInvalid(at.Child("namespace"), value, "must be a string"))
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		errs = append(errs, inspectStrings(metadata[name], at.Child(name))...)
	}
	return errs
}

func needString(fields map[string]any, name string, parent *field.Path, advice string) field.ErrorList {
	at := parent.Child(name)
	switch value := fields[name].(type) {
	case nil:
		return field.ErrorList{field.Required(at, advice)}
	case string:
		if value == "" {
			return field.ErrorList{field.Required(at, advice)}
		}
		return nil
	default:
		return field.ErrorList{field.TypeInvalid(at, value, "must be a string; put it in quotes")}
	}
}

func inspectStrings(value any, at *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return field.ErrorList{field.TypeInvalid(at, value, "must be a mapping of strings")}
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := entries[key].(string); !ok {
			errs = append(errs, field.TypeInvalid(at.Key(key), entries[key], "must be a string; put it in quotes"))
		}
	}
	return errs
}

// complete returns the object with what the API server would add. The given one
// is not modified.
func complete(obj *unstructured.Unstructured, mapping *meta.RESTMapping) *unstructured.Unstructured {
	namespace := obj.GetNamespace()
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		// As EnsureObjectNamespaceMatchesRequestNamespace in
		// k8s.io/apiserver/pkg/registry/rest.
		namespace = ""
	case namespace == "":
		namespace = metav1.NamespaceDefault
	}
	if namespace != obj.GetNamespace() {
		obj = editable(obj)
		obj.SetNamespace(namespace)
	}
	obj = completeIdentity(obj)
	if !builtin.Table().HasKind(mapping.GroupVersionKind.GroupKind()) && obj.GetGeneration() == 0 {
		// As PrepareForCreate of the customResourceStrategy in
		// k8s.io/apiextensions-apiserver/pkg/registry/customresource. A status is
		// kept, whatever that does.
		obj = editable(obj)
		obj.SetGeneration(1)
	}
	switch mapping.GroupVersionKind {
	case namespaceKind:
		return completeNamespace(obj)
	case secretKind:
		return completeSecret(obj)
	default:
		return obj
	}
}

// completeIdentity adds the uid and the creationTimestamp that every object of
// an API server has. Both are the same each time: the uid follows from kind,
// namespace and name, and when an object was created nobody knows here, so it is
// the beginning of time.
func completeIdentity(obj *unstructured.Unstructured) *unstructured.Unstructured {
	uid, created := obj.GetUID(), obj.GetCreationTimestamp()
	if uid != "" && !created.IsZero() {
		return obj
	}
	obj = editable(obj)
	if uid == "" {
		k := keyOf(obj)
		name := k.kind.String() + "\x00" + k.namespace + "\x00" + k.name
		obj.SetUID(types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String()))
	}
	if created.IsZero() {
		obj.SetCreationTimestamp(metav1.Unix(0, 0))
	}
	return obj
}

// completeNamespace adds what SetDefaults_Namespace and the strategy of
// namespaces in k8s.io/kubernetes add. A phase that is given is kept: a
// namespace may be told to be terminating.
func completeNamespace(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = editable(obj)
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = obj.GetName()
	obj.SetLabels(labels)
	setAbsent(obj, "spec", "finalizers", []any{string(corev1.FinalizerKubernetes)})
	setAbsent(obj, "status", "phase", string(corev1.NamespaceActive))
	return obj
}

// completeSecret moves stringData to data, as the conversion of Secrets in
// k8s.io/kubernetes/pkg/apis/core/v1 does, and sets the default type.
func completeSecret(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = editable(obj)
	if obj.Object["type"] == nil {
		obj.Object["type"] = string(corev1.SecretTypeOpaque)
	}
	texts, ok := obj.Object["stringData"].(map[string]any)
	if !ok {
		return obj
	}
	data, ok := obj.Object["data"].(map[string]any)
	if !ok && obj.Object["data"] != nil {
		return obj // of the wrong type, as it was given
	}
	data = maps.Clone(data)
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return obj
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	obj.Object["data"] = data
	delete(obj.Object, "stringData")
	return obj
}

func setAbsent(obj *unstructured.Unstructured, parent, name string, value any) {
	fields, ok := obj.Object[parent].(map[string]any)
	if !ok && obj.Object[parent] != nil {
		return // of the wrong type; toNamespace says so
	}
	if fields[name] != nil {
		return
	}
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[name] = value
	obj.Object[parent] = fields
}

// editable returns a copy whose fields and metadata may be set. It shares all
// else with obj.
func editable(obj *unstructured.Unstructured) *unstructured.Unstructured {
	fields := maps.Clone(obj.Object)
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		fields["metadata"] = maps.Clone(metadata)
	}
	return &unstructured.Unstructured{Object: fields}
}

// toNamespace returns the Namespace as kube-apiserver's informers hold it, and so as
// policies see it: without apiVersion, kind and managedFields.
func toNamespace(obj *unstructured.Unstructured) (*corev1.Namespace, *field.Error) {
	namespace := &corev1.Namespace{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, namespace); err != nil {
		return nil, field.Invalid(field.NewPath("kind"), obj.GetKind(), "the object cannot be read as a Namespace: "+err.Error())
	}
	namespace.TypeMeta, namespace.ManagedFields = metav1.TypeMeta{}, nil
	return namespace, nil
}
