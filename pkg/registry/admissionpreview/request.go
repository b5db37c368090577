// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// translateRequest completes what a preview leaves out from the object, the
// caller and the cluster view, and returns the request with all its faults.
// Without a view it only looks for those that need none.
func translateRequest(ctx context.Context, in *policyapi.PreviewRequest, view cluster.View, path *field.Path) (*request.Request, field.ErrorList) {
	t := translation{in: in, view: view, path: path}
	t.fields = request.Fields{
		UID:         in.UID,
		SubResource: in.SubResource,
		Name:        in.Name,
		Namespace:   in.Namespace,
		DryRun:      in.DryRun != nil && *in.DryRun,
		Object:      t.decode(in.Object, path.Child("object")),
		OldObject:   t.decode(in.OldObject, path.Child("oldObject")),
		Options:     t.decode(in.Options, path.Child("options")),
	}
	if len(t.errs) > 0 {
		return nil, t.errs
	}
	t.operation()
	t.user(ctx)
	t.kinds()
	if len(t.errs) > 0 || view == nil {
		return nil, t.errs
	}
	t.names()
	return request.New(t.fields), nil
}

type translation struct {
	in     *policyapi.PreviewRequest
	view   cluster.View
	path   *field.Path
	fields request.Fields
	errs   field.ErrorList
}

func (t *translation) refuse(err *field.Error) { t.errs = append(t.errs, err) }

func (t *translation) decode(raw *runtime.RawExtension, path *field.Path) *unstructured.Unstructured {
	object, err := request.Object(raw)
	if err != nil {
		t.refuse(field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	return object
}

// operation derives the operation and checks that its objects are there.
func (t *translation) operation() {
	object, oldObject := t.fields.Object != nil, t.fields.OldObject != nil
	t.fields.Operation = admission.Operation(t.in.Operation)
	if t.in.Operation == "" {
		switch {
		case object && oldObject:
			t.fields.Operation = admission.Update
		case oldObject:
			t.fields.Operation = admission.Delete
		default:
			t.fields.Operation = admission.Create
		}
	}
	if err := request.CheckOperation(t.fields.Operation); err != nil {
		t.refuse(field.NotSupported(t.path.Child("operation"), t.in.Operation,
			[]admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect}))
		return
	}
	if !object && (t.fields.Operation == admission.Create || t.fields.Operation == admission.Update) {
		t.refuse(field.Required(t.path.Child("object"), "needed for "+string(t.fields.Operation)))
	}
	if !oldObject && (t.fields.Operation == admission.Delete || t.fields.Operation == admission.Update) {
		t.refuse(field.Required(t.path.Child("oldObject"), "needed for "+string(t.fields.Operation)))
	}
}

func (t *translation) user(ctx context.Context) {
	if t.in.UserInfo != nil {
		t.fields.User = request.User(t.in.UserInfo)
		return
	}
	if caller, ok := genericapirequest.UserFrom(ctx); ok {
		t.fields.User = caller
	}
}

// kinds derives kind and resource from each other and from the object.
func (t *translation) kinds() {
	if kind := t.in.Kind; kind != nil {
		t.fields.Kind = schema.GroupVersionKind(*kind)
	} else if judged := t.judged(); judged != nil {
		t.fields.Kind = judged.GroupVersionKind()
	}
	if t.fields.Kind.Kind == "" || t.fields.Kind.Version == "" {
		t.refuse(field.Required(t.path.Child("kind"), "needed with version and kind where the object has no apiVersion and kind"))
		return
	}
	if resource := t.in.Resource; resource != nil {
		t.fields.Resource = schema.GroupVersionResource(*resource)
	} else {
		t.fields.Resource = t.resourceOf(t.fields.Kind)
	}
	if t.in.RequestKind != nil && t.in.RequestResource != nil {
		t.fields.RequestKind = schema.GroupVersionKind(*t.in.RequestKind)
		t.fields.RequestResource = schema.GroupVersionResource(*t.in.RequestResource)
		t.fields.RequestSubResource = t.in.RequestSubResource
	}
}

func (t *translation) resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	if t.view == nil {
		return schema.GroupVersionResource{}
	}
	mapping, err := t.view.Mapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.refuse(field.Required(t.path.Child("resource"),
			"the cluster has no kind "+kind.String()+": name the resource, or lay its CustomResourceDefinition over the cluster in spec.cluster"))
		return schema.GroupVersionResource{}
	}
	return mapping.Resource
}

// judged is the object that says what the request is about.
func (t *translation) judged() *unstructured.Unstructured {
	if t.fields.Object != nil {
		return t.fields.Object
	}
	return t.fields.OldObject
}

// names derives name and namespace as the API server would: an object of a
// namespaced kind that names no namespace is in that of the request or in the
// default one, and a Namespace is in itself.
func (t *translation) names() {
	judged := t.judged()
	if judged == nil {
		return
	}
	if t.fields.Name == "" {
		t.fields.Name = judged.GetName()
	}
	if t.fields.Namespace == "" {
		t.fields.Namespace = judged.GetNamespace()
	}
	if t.fields.Kind == (schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) {
		t.fields.Namespace = t.fields.Name
		return
	}
	if !t.namespaced() {
		return
	}
	if t.fields.Namespace == "" && t.in.Resource == nil {
		t.fields.Namespace = metav1.NamespaceDefault
	}
	t.setNamespace(t.fields.Object)
	t.setNamespace(t.fields.OldObject)
}

func (t *translation) namespaced() bool {
	mapping, err := t.view.Mapper().RESTMapping(t.fields.Kind.GroupKind(), t.fields.Kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

func (t *translation) setNamespace(object *unstructured.Unstructured) {
	if object != nil && object.GetNamespace() == "" && t.fields.Namespace != "" {
		object.SetNamespace(t.fields.Namespace)
	}
}
