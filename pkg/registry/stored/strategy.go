// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// strategy guards the writes of one kind. Its rules are those of the strategies
// under k8s.io/kubernetes/pkg/registry/admissionregistration.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind Kind
}

// NamespaceScoped says whether objects of the kind live in namespaces.
func (s strategy) NamespaceScoped() bool { return s.kind.Namespaced }

// AllowCreateOnUpdate refuses to create an object by writing to its name.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate asks every update for the resourceVersion it is based on.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// Canonicalize leaves objects as they are.
func (strategy) Canonicalize(runtime.Object) {}

// PrepareForCreate drops a status that the user sent and starts at generation 1.
func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if s.kind.Status != nil {
		s.kind.Status.copy(obj, s.kind.New())
	}
	if created, err := meta.Accessor(obj); err == nil {
		created.SetGeneration(1)
		unmark(created)
	}
}

// PrepareForUpdate keeps the stored status and counts a change of what the user wants as
// a new generation. What replaces a damaged object has a new spec and no status.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	damaged := Damage(old) != nil
	if s.kind.Status != nil {
		source := old
		if damaged {
			source = s.kind.New()
		}
		s.kind.Status.copy(obj, source)
	}
	updated, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	existing, err := meta.Accessor(old)
	if err != nil {
		return
	}
	if !damaged {
		unmark(updated)
	}
	if damaged || !s.kind.sameWish(obj, old) {
		updated.SetGeneration(existing.GetGeneration() + 1)
	}
}

// Validate checks a new object and, if that is valid and compiles, its writer.
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if errs := s.kind.ValidateCreate(obj); len(errs) > 0 {
		return errs
	}
	if errs := s.compiles(ctx, obj); len(errs) > 0 {
		return errs
	}
	return s.authorize(ctx, obj, nil)
}

// ValidateUpdate checks an object against the one it replaces and, if it is valid and
// compiles, its writer. A spec that stays as it is need not compile any more: an old
// object stays writable. Nothing but the whole replaces a damaged one, of which its
// writer is taken to have kept nothing.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	damage := Damage(old)
	if damage != nil && !s.replacesDamage(ctx, obj, old) {
		return refuseDamage(damage)
	}
	errs := append(s.kind.ValidateUpdate(obj, old), s.kind.refuseReservedTarget(obj, old)...)
	if len(errs) > 0 {
		return errs
	}
	if damage != nil || !s.kind.sameWish(obj, old) {
		if errs := s.compiles(ctx, obj); len(errs) > 0 {
			return errs
		}
	}
	if damage != nil {
		old = nil
	}
	return s.authorize(ctx, obj, old)
}

func (s strategy) compiles(ctx context.Context, obj runtime.Object) field.ErrorList {
	if s.kind.Compiles == nil {
		return nil
	}
	return s.kind.Compiles(ctx, obj)
}

func (s strategy) authorize(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if s.kind.Authorize == nil {
		return nil
	}
	return s.kind.Authorize(ctx, obj, old)
}

// WarningsOnCreate tells the writer what is not wrong enough to refuse.
func (s strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(ctx, obj)
}

// WarningsOnUpdate tells the same as WarningsOnCreate, whatever has changed: a dry
// run of what is stored already is a way to ask.
func (s strategy) WarningsOnUpdate(ctx context.Context, obj, _ runtime.Object) []string {
	return append(warnReserved(obj), s.WarningsOnCreate(ctx, obj)...)
}

// GetResetFields names the fields that a write of the object does not own: the
// status, and the mark of damage.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	mark := fieldpath.MakePathOrDie("metadata", "annotations", UndecodableAnnotation)
	if s.kind.Status == nil {
		return resetFields(mark)
	}
	return resetFields(mark, fieldpath.MakePathOrDie("status"))
}

// statusStrategy guards the writes of the status subresource.
type statusStrategy struct {
	strategy
}

// PrepareForUpdate keeps the stored spec and metadata.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.kind.Spec.copy(obj, old)
	updated, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	existing, err := meta.Accessor(old)
	if err != nil {
		return
	}
	metav1.ResetObjectMetaForStatus(updated, existing)
}

// ValidateUpdate checks the status alone. That of a damaged object cannot be
// written: there is no object to write it to.
func (s statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if damage := Damage(old); damage != nil {
		return refuseDamage(damage)
	}
	return s.kind.ValidateStatusUpdate(obj, old)
}

// WarningsOnUpdate has none to give: they are about the spec.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields names the fields that a write of the status does not own.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func resetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(paths...),
	}
}
