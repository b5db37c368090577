// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"
)

// Review is AdmissionRequest of k8s.io/api/admission/v1 with objects that are
// values, such as map[string]any, and not text: they are decoded with the review
// around them, once. Decode it as API servers decode objects, with
// UnmarshalCaseSensitivePreserveInts of sigs.k8s.io/json: keys are
// case-sensitive, whole numbers stay whole, of equal keys the last one counts,
// and nesting is bounded (10,000 levels).
type Review struct {
	UID         types.UID                   `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource,omitempty"`

	RequestKind        *metav1.GroupVersionKind     `json:"requestKind,omitempty"`
	RequestResource    *metav1.GroupVersionResource `json:"requestResource,omitempty"`
	RequestSubResource string                       `json:"requestSubResource,omitempty"`

	Name      string                    `json:"name,omitempty"`
	Namespace string                    `json:"namespace,omitempty"`
	Operation admissionv1.Operation     `json:"operation"`
	UserInfo  authenticationv1.UserInfo `json:"userInfo"`
	DryRun    *bool                     `json:"dryRun,omitempty"`

	Object    any `json:"object,omitempty"`
	OldObject any `json:"oldObject,omitempty"`
	Options   any `json:"options,omitempty"`
}

// FromReview returns the request of an AdmissionReview. It owns the objects of the
// review from now on. The error names the field that is at fault.
func FromReview(review *Review) (*Request, error) {
	fields := Fields{
		UID:         review.UID,
		Kind:        schema.GroupVersionKind(review.Kind),
		Resource:    schema.GroupVersionResource(review.Resource),
		SubResource: review.SubResource,
		Name:        review.Name,
		Namespace:   review.Namespace,
		Operation:   admission.Operation(review.Operation),
		User:        User(&review.UserInfo),
	}
	if fields.UID == "" {
		return nil, errors.New("request.uid: required: set a text that no other request has")
	}
	if fields.Kind.Kind == "" || fields.Kind.Version == "" {
		return nil, errors.New(`request.kind: version and kind are required, as in {"group":"apps","version":"v1","kind":"Deployment"}`)
	}
	if fields.Resource.Resource == "" || fields.Resource.Version == "" {
		return nil, errors.New(`request.resource: version and resource are required, as in {"group":"apps","version":"v1","resource":"deployments"}`)
	}
	if err := CheckOperation(fields.Operation); err != nil {
		return nil, fmt.Errorf("request.operation: %w", err)
	}
	if err := fields.SetOriginal((*schema.GroupVersionKind)(review.RequestKind),
		(*schema.GroupVersionResource)(review.RequestResource), review.RequestSubResource); err != nil {
		return nil, fmt.Errorf("request.%w", err)
	}
	if review.DryRun != nil {
		fields.DryRun = *review.DryRun
	}
	var err error
	if fields.Object, err = objectOf(review.Object); err != nil {
		return nil, fmt.Errorf("request.object: %w", err)
	}
	if fields.OldObject, err = objectOf(review.OldObject); err != nil {
		return nil, fmt.Errorf("request.oldObject: %w", err)
	}
	if fields.Options, err = objectOf(review.Options); err != nil {
		return nil, fmt.Errorf("request.options: %w", err)
	}
	if fields.Object == nil && NeedsObject(fields.Operation) {
		return nil, fmt.Errorf("request.object: required for %s", fields.Operation)
	}
	return New(fields), nil
}

// SetOriginal sets the kind and the resource of the original request: both, or
// with two nils neither. The error names the field that is missing.
func (f *Fields) SetOriginal(kind *schema.GroupVersionKind, resource *schema.GroupVersionResource, subresource string) error {
	if kind == nil && resource == nil {
		return nil
	}
	if kind == nil || kind.Kind == "" || kind.Version == "" {
		return errors.New("requestKind: version and kind are required beside requestResource")
	}
	if resource == nil || resource.Resource == "" || resource.Version == "" {
		return errors.New("requestResource: version and resource are required beside requestKind")
	}
	f.RequestKind, f.RequestResource, f.RequestSubResource = *kind, *resource, subresource
	return nil
}

// NeedsObject says whether a request with the operation has an object. Without
// it, a policy could not see what it is about.
func NeedsObject(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// CheckOperation reports an operation that is not one of admission.
func CheckOperation(operation admission.Operation) error {
	switch operation {
	case admission.Create, admission.Update, admission.Delete, admission.Connect:
		return nil
	}
	return fmt.Errorf("%q is not CREATE, UPDATE, DELETE or CONNECT", operation)
}

// Object decodes raw into an object, as the objects of a Review are decoded, or
// returns nil when raw is absent or null.
func Object(raw *runtime.RawExtension) (*unstructured.Unstructured, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil //nolint:nilnil // no object, and that is no error
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &value); err != nil {
		return nil, err
	}
	return objectOf(value)
}

// objectOf returns a decoded value as an object, or nil when there is none.
func objectOf(value any) (*unstructured.Unstructured, error) {
	switch object := value.(type) {
	case nil:
		return nil, nil //nolint:nilnil // no object, and that is no error
	case map[string]any:
		return checked(&unstructured.Unstructured{Object: object})
	}
	return nil, errors.New("must be a JSON object")
}

// checked refuses metadata that cannot be that of an object, on which labels
// and names could not be read.
func checked(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	metadata, ok := object.Object["metadata"]
	if !ok || metadata == nil {
		return object, nil
	}
	content, ok := metadata.(map[string]any)
	if !ok {
		return nil, errors.New("metadata: must be a JSON object")
	}
	if err := checkMetadata(content); err != nil {
		return nil, err
	}
	return object, nil
}

// checkMetadata names the field that is at fault, which the converter does not.
func checkMetadata(content map[string]any) error {
	err := convertMetadata(withoutTexts(content))
	if err == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if err := convertMetadata(map[string]any{key: content[key]}); err != nil {
			return fmt.Errorf("metadata.%s: does not fit ObjectMeta: %w", key, err)
		}
	}
	return fmt.Errorf("metadata: does not fit ObjectMeta: %w", err)
}

// withoutTexts returns the fields of metadata that the converter has to look at:
// all but texts and maps of texts where ObjectMeta has such.
func withoutTexts(content map[string]any) map[string]any {
	var others map[string]any
	for key, value := range content {
		fits := false
		switch key {
		case "name", "generateName", "namespace", "uid", "resourceVersion", "selfLink":
			_, fits = value.(string)
		case "labels", "annotations":
			fits = isMapOfTexts(value)
		}
		if fits {
			continue
		}
		if others == nil {
			others = map[string]any{}
		}
		others[key] = value
	}
	return others
}

func isMapOfTexts(value any) bool {
	entries, ok := value.(map[string]any)
	for _, entry := range entries {
		if _, isText := entry.(string); !isText {
			return false
		}
	}
	return ok
}

func convertMetadata(content map[string]any) error {
	if len(content) == 0 {
		return nil
	}
	var decoded metav1.ObjectMeta
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, &decoded)
}

// User returns the user of a review or preview.
func User(info *authenticationv1.UserInfo) user.Info {
	extra := make(map[string][]string, len(info.Extra))
	for key, values := range info.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: extra}
}
