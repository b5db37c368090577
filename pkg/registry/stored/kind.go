// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Category is carried by every listable kind, so that one word lists them all.
const Category = "portcullis"

// Kind is one row of the table: all that sets one stored kind apart.
type Kind struct {
	// Resource and Singular are the names in paths and on the command line.
	Resource, Singular string
	ShortNames         []string
	// Homes are the versions under which users know the kind from elsewhere. Their
	// objects have no other fields in the spec than ours.
	Homes      []schema.GroupVersion
	Namespaced bool

	// New and NewList make empty objects of the internal version.
	New, NewList func() runtime.Object

	// Spec is what the user writes; a change of it is a new generation.
	Spec Part
	// Annotations are the names of those that say what is done, as the spec does.
	Annotations []string
	// Status is what the server writes. A kind without one leaves it nil and gets
	// no status subresource.
	Status *Part

	Validate             func(obj runtime.Object) field.ErrorList
	ValidateUpdate       func(obj, old runtime.Object) field.ErrorList
	ValidateStatusUpdate func(obj, old runtime.Object) field.ErrorList

	// Compiles, which may be nil, returns what is wrong with an object that is valid, as
	// only the language of the policy can tell. It is asked when an object is created, and
	// again when its spec, or one of Annotations, changes.
	Compiles func(ctx context.Context, obj runtime.Object) field.ErrorList

	// Authorize, which may be nil, refuses writers whom the object would give more
	// than they have. It is asked about objects that are valid, on whatever way they
	// are written; old is nil when there is none, or only what can be read of one that
	// cannot be decoded.
	Authorize func(ctx context.Context, obj, old runtime.Object) field.ErrorList

	// Binds returns the policy that an object names, and is nil for kinds that are no
	// bindings.
	Binds func(obj runtime.Object) string

	// Warnings, which may be nil, returns what a writer should know of an object that
	// is valid. It must be quick: the write waits for it.
	Warnings func(ctx context.Context, obj runtime.Object) []string

	// Forecast, which may be nil, returns what else a writer should know who asks for a
	// dry run: what an object would do that is not wrong. It may take longer.
	Forecast func(ctx context.Context, obj runtime.Object) []string

	// Columns and Cells are the table that kubectl get shows. Every row of Cells
	// has one cell for each column.
	Columns []metav1.TableColumnDefinition
	Cells   func(obj runtime.Object) ([]any, error)

	// salvage puts into an empty object what can be read of the spec of a stored one
	// that cannot be decoded, and says in its status, if it has one, what is wrong
	// and what to do.
	// The object must not be valid: it must not pass for the whole.
	salvage func(obj runtime.Object, spec fields, damage, advice string)
	// validateSalvaged returns what is wrong with what was salvaged, apart from what is
	// left out of it. Nil is Validate.
	validateSalvaged func(obj runtime.Object) field.ErrorList
}

// Name returns the name of the kind, as typer knows it.
func (k *Kind) Name(typer runtime.ObjectTyper) (string, error) {
	kinds, _, err := typer.ObjectKinds(k.New())
	if err != nil {
		return "", fmt.Errorf("kind of %s: %w", k.Resource, err)
	}
	return kinds[0].Kind, nil
}

// sameWish says whether two objects say alike what is to be done.
func (k *Kind) sameWish(obj, old runtime.Object) bool {
	if !k.Spec.equal(obj, old) {
		return false
	}
	a, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	b, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	differ := func(name string) bool {
		left, one := a.GetAnnotations()[name]
		right, other := b.GetAnnotations()[name]
		return one != other || left != right
	}
	return !slices.ContainsFunc(k.Annotations, differ)
}

// isHome says whether users know the kind under a version from elsewhere.
func (k *Kind) isHome(version schema.GroupVersion) bool { return slices.Contains(k.Homes, version) }

// Part is one half of an object: its spec or its status.
type Part struct {
	copy  func(to, from runtime.Object)
	equal func(a, b runtime.Object) bool
}

// PartOf makes a Part of the field that the function points to. Objects of
// another type are left as they are and equal nothing; validation refuses them.
func PartOf[T runtime.Object, F any](of func(T) *F) Part {
	return Part{
		copy: func(to, from runtime.Object) {
			target, ok := to.(T)
			source, same := from.(T)
			if ok && same {
				*of(target) = *of(source)
			}
		},
		equal: func(a, b runtime.Object) bool {
			left, ok := a.(T)
			right, same := b.(T)
			return ok && same && apiequality.Semantic.DeepEqual(of(left), of(right))
		},
	}
}

// Validation makes a typed validation function one of the table.
func Validation[T runtime.Object](check func(T) field.ErrorList) func(runtime.Object) field.ErrorList {
	return func(obj runtime.Object) field.ErrorList {
		typed, err := as[T](obj)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return check(typed)
	}
}

// UpdateValidation makes a typed validation function of a change one of the
// table.
func UpdateValidation[T runtime.Object](check func(obj, old T) field.ErrorList) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList {
		typed, err := as[T](obj)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		typedOld, err := as[T](old)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return check(typed, typedOld)
	}
}

// Authorization makes a typed function that authorizes writes one of the table. It
// is given the zero value of the type when there is no old object.
func Authorization[T runtime.Object](authorize func(ctx context.Context, obj, old T) field.ErrorList) func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
		typed, err := as[T](obj)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		var typedOld T
		if old != nil {
			if typedOld, err = as[T](old); err != nil {
				return field.ErrorList{field.InternalError(nil, err)}
			}
		}
		return authorize(ctx, typed, typedOld)
	}
}

// Warnings makes a typed function of warnings one of the table.
func Warnings[T runtime.Object](warn func(context.Context, T) []string) func(context.Context, runtime.Object) []string {
	return func(ctx context.Context, obj runtime.Object) []string {
		typed, err := as[T](obj)
		if err != nil {
			return nil // validation refuses it
		}
		return warn(ctx, typed)
	}
}

// Cells makes a typed function of table cells one of the table.
func Cells[T runtime.Object](cells func(T) []any) func(runtime.Object) ([]any, error) {
	return func(obj runtime.Object) ([]any, error) {
		typed, err := as[T](obj)
		if err != nil {
			return nil, err
		}
		return cells(typed), nil
	}
}

// salvageOf makes a typed salvage function one of the table.
func salvageOf[T runtime.Object](fill func(obj T, spec fields, damage, advice string)) func(runtime.Object, fields, string, string) {
	return func(obj runtime.Object, spec fields, damage, advice string) {
		if typed, ok := obj.(T); ok {
			fill(typed, spec, damage, advice)
		}
	}
}

func as[T runtime.Object](obj runtime.Object) (T, error) {
	typed, ok := obj.(T)
	if !ok {
		return typed, fmt.Errorf("object is a %T, want a %T", obj, typed)
	}
	return typed, nil
}
