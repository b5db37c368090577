// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Compiler compiles one internal object of our group.
type Compiler interface {
	Compile(ctx context.Context, kind string, obj runtime.Object) (*policy.Unit, field.ErrorList)
}

// Candidates decodes, validates and compiles the policies of a preview as if
// they were written. It is safe for concurrent use.
type Candidates struct {
	// Read returns the valid internal object of a manifest, which it may change, as
	// a write that creates it would store it. The paths of faults start there.
	Read     func(manifest *unstructured.Unstructured) (runtime.Object, field.ErrorList)
	Compiler Compiler
}

// decode returns the units of raw, with the faults of all of them.
func (c *Candidates) decode(ctx context.Context, raw []runtime.RawExtension, path *field.Path) ([]*policy.Unit, field.ErrorList) {
	if len(raw) > maxPolicies {
		return nil, field.ErrorList{field.TooMany(path, len(raw), maxPolicies)}
	}
	objects, errs := decodeObjects(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	units := make([]*policy.Unit, 0, len(objects))
	seen := map[policy.ID]bool{}
	for i, object := range objects {
		if err := ctx.Err(); err != nil { // compiling many takes long
			return nil, field.ErrorList{field.InternalError(path.Index(i), err)}
		}
		unit, unitErrs := c.compile(ctx, object)
		if len(unitErrs) > 0 {
			errs = append(errs, under(path.Index(i), unitErrs)...)
			continue
		}
		if seen[unit.ID] {
			errs = append(errs, field.Duplicate(path.Index(i), unit.ID.Kind+"/"+unit.ID.Name))
		}
		seen[unit.ID] = true
		units = append(units, unit)
	}
	return units, errs
}

// compile returns the unit of one candidate, which it may change; the paths of
// its faults start at the candidate.
func (c *Candidates) compile(ctx context.Context, object *unstructured.Unstructured) (*policy.Unit, field.ErrorList) {
	internal, errs := c.Read(object)
	if len(errs) > 0 {
		return nil, errs
	}
	unit, errs := c.Compiler.Compile(ctx, object.GetKind(), internal)
	if unit != nil {
		for _, text := range unit.Warnings {
			warning.AddWarning(ctx, "", fmt.Sprintf("%s %q: %s", object.GetKind(), object.GetName(), text))
		}
	}
	return unit, slices.DeleteFunc(errs, func(err *field.Error) bool { return err.Origin == policy.OriginRequest })
}

// under moves field errors of an object below path.
func under(path *field.Path, errs field.ErrorList) field.ErrorList {
	moved := make(field.ErrorList, len(errs))
	for i, err := range errs {
		next := *err
		next.Field = path.String()
		if err.Field != "" && err.Field != "<nil>" {
			next.Field = fmt.Sprintf("%s.%s", path, err.Field)
		}
		moved[i] = &next
	}
	return moved
}

// decodeObjects decodes each of raw strictly as one object.
func decodeObjects(raw []runtime.RawExtension, path *field.Path) ([]*unstructured.Unstructured, field.ErrorList) {
	var errs field.ErrorList
	objects := make([]*unstructured.Unstructured, 0, len(raw))
	for i := range raw {
		object, err := decodeObject(raw[i].Raw)
		if err != nil {
			errs = append(errs, field.Invalid(path.Index(i), field.OmitValueType{}, err.Error()))
			continue
		}
		objects = append(objects, object)
	}
	return objects, errs
}

func decodeObject(raw []byte) (*unstructured.Unstructured, error) {
	decoded, err := manifest.Decode(raw)
	var fault *manifest.Error
	switch {
	case errors.As(err, &fault):
		return nil, fault.Err // its place in a manifest says nothing here
	case err != nil:
		return nil, err
	case len(decoded) == 0:
		return nil, errors.New("empty: give an object with apiVersion and kind")
	case len(decoded) > 1:
		return nil, fmt.Errorf("a list of %d objects: give each of them an entry of its own", len(decoded))
	}
	return decoded[0], nil
}
