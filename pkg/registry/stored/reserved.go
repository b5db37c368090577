// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReservedSuffix ends the names of the policies and bindings that a server reads
// from its bootstrap directory, and of no other. It is StaticConfigSuffix of
// k8s.io/apiserver/pkg/admission/plugin/manifest.
const ReservedSuffix = ".static.k8s.io"

// IsReserved says whether the name is one of bootstrap policies and bindings.
func IsReserved(name string) bool { return strings.HasSuffix(name, ReservedSuffix) }

// ValidateCreate checks an object as a write that creates it does: it must be
// valid, and it must neither have a name of bootstrap policies nor bind one of
// them. Nobody can be taken in by a stored object that would have no effect.
func (k *Kind) ValidateCreate(obj runtime.Object) field.ErrorList {
	errs := k.Validate(obj)
	if created, err := meta.Accessor(obj); err == nil && IsReserved(created.GetName()) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), created.GetName(), reservedAdvice()))
	}
	return append(errs, k.refuseReservedTarget(obj, nil)...)
}

// refuseReservedTarget refuses a binding that names a bootstrap policy, unless old
// is one that has named the same.
func (k *Kind) refuseReservedTarget(obj, old runtime.Object) field.ErrorList {
	if k.Binds == nil {
		return nil
	}
	target := k.Binds(obj)
	if !IsReserved(target) || old != nil && k.Binds(old) == target {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "policyName"), target, fmt.Sprintf(
		"names ending with %q are those of bootstrap policies, which only bindings in their directory bind: put this binding there, or name a stored policy", ReservedSuffix))}
}

// warnReserved tells who writes an object that was stored before its name was
// reserved, as WarningsForStaticSuffix in
// k8s.io/kubernetes/pkg/apis/admissionregistration/validation does.
func warnReserved(obj runtime.Object) []string {
	if written, err := meta.Accessor(obj); err == nil && IsReserved(written.GetName()) {
		return []string{"metadata.name: " + reservedAdvice()}
	}
	return nil
}

func reservedAdvice() string {
	return fmt.Sprintf("names ending with %q are reserved for static manifest-based configurations and cannot be managed via the API", ReservedSuffix)
}

// Binds makes a typed function of the policy that a binding names one of the table.
func Binds[T runtime.Object](target func(T) string) func(runtime.Object) string {
	return func(obj runtime.Object) string {
		typed, err := as[T](obj)
		if err != nil {
			return "" // validation refuses it
		}
		return target(typed)
	}
}
