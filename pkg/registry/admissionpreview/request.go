// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"
	"strings"

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
	if in.Time != nil {
		t.fields.Time = in.Time.Time
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
	if len(t.errs) > 0 {
		return nil, t.errs
	}
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
	if !object && request.NeedsObject(t.fields.Operation) {
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
	if err := t.fields.SetOriginal((*schema.GroupVersionKind)(t.in.RequestKind),
		(*schema.GroupVersionResource)(t.in.RequestResource), t.in.RequestSubResource); err != nil {
		t.refuse(field.Invalid(t.path, field.OmitValueType{}, err.Error()))
	}
}

func (t *translation) resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	if t.view == nil {
		return schema.GroupVersionResource{}
	}
	mapping, err := t.view.Mapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil && custom(kind.Group) {
		guessed, _ := meta.UnsafeGuessKindToResource(kind)
		return guessed
	}
	if err != nil {
		t.refuse(field.Required(t.path.Child("resource"),
			"the cluster has no kind "+kind.String()+": name the resource, or lay its CustomResourceDefinition over the cluster in spec.cluster"))
		return schema.GroupVersionResource{}
	}
	return mapping.Resource
}

// custom says that a group is one of CustomResourceDefinitions. Previews may be about
// kinds of them that the cluster does not have: their resource is called as most are.
// In the groups of Kubernetes such a kind is a mistake.
func custom(group string) bool {
	return strings.Contains(group, ".") && group != "k8s.io" && !strings.HasSuffix(group, ".k8s.io")
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
// default one, one of a cluster-scoped kind is in none, and a Namespace is in
// itself. What contradicts the object is refused, as the API server does.
func (t *translation) names() {
	judged := t.judged()
	if judged == nil {
		return
	}
	name := t.agreed("name", t.fields.Name, judged.GetName())
	// A request that an API server has made, which alone names the original resource,
	// has no name where it deletes an object of a collection.
	if t.fields.Operation != admission.Delete || t.in.RequestResource == nil {
		t.fields.Name = name
	}
	if old := t.fields.OldObject; old != nil && old != judged {
		t.agreed("name", name, old.GetName())
	}
	if t.fields.Kind == (schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) {
		t.fields.Namespace = name
		return
	}
	scope, known := t.scope()
	if known && scope == meta.RESTScopeNameRoot {
		t.fields.Namespace = ""
		t.setNamespaces("")
		return
	}
	t.fields.Namespace = t.agreed("namespace", t.fields.Namespace, judged.GetNamespace())
	if !known {
		return
	}
	if t.fields.Namespace == "" {
		t.fields.Namespace = metav1.NamespaceDefault
	}
	if t.fields.SubResource == "" {
		t.setNamespaces(t.fields.Namespace)
	}
}

// agreed returns what the request and the object say, which must be the same
// where both say something. The object of a subresource may be another one.
func (t *translation) agreed(name, ofRequest, ofObject string) string {
	if ofRequest == "" {
		return ofObject
	}
	if ofObject != "" && ofObject != ofRequest && t.fields.SubResource == "" && t.fields.Operation != admission.Connect {
		t.refuse(field.Invalid(t.path.Child(name), ofRequest, fmt.Sprintf("the object has the %s %q", name, ofObject)))
	}
	return ofRequest
}

// scope is that of the resource, where the cluster has it.
func (t *translation) scope() (meta.RESTScopeName, bool) {
	mapper := t.view.Mapper()
	kind, err := mapper.KindFor(t.fields.Resource)
	if err != nil {
		return "", false
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", false
	}
	return mapping.Scope.Name(), true
}

func (t *translation) setNamespaces(namespace string) {
	for _, object := range []*unstructured.Unstructured{t.fields.Object, t.fields.OldObject} {
		if object != nil && object.GetNamespace() != namespace && (namespace == "" || object.GetNamespace() == "") {
			object.SetNamespace(namespace)
		}
	}
}
