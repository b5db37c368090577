// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Compiler compiles one internal object of our group.
type Compiler interface {
	Compile(ctx context.Context, kind string, obj runtime.Object) (*policy.Unit, field.ErrorList)
}

// CandidateKind is a kind that a preview takes as a candidate.
type CandidateKind struct {
	// Home is the version under which the kind is known elsewhere; manifests of
	// that version are taken as they stand.
	Home       schema.GroupVersion
	Namespaced bool
	// Validate checks an internal object as a write does.
	Validate func(obj runtime.Object) field.ErrorList
}

// Candidates decodes, validates and compiles the policies of a preview as if
// they were written. It is safe for concurrent use.
type Candidates struct {
	// Version is the served version of our group.
	Version schema.GroupVersion
	// Decoder decodes strictly into the internal version, with defaults.
	Decoder runtime.Decoder
	// Kinds are the kinds of our group that are taken.
	Kinds    map[string]CandidateKind
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
	kind, known := c.Kinds[object.GetKind()]
	if !known {
		return nil, field.ErrorList{field.NotSupported(field.NewPath("kind"), object.GetKind(), c.names())}
	}
	version := object.GroupVersionKind().GroupVersion()
	if version != kind.Home && version != c.Version {
		return nil, field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), object.GetAPIVersion(),
			[]string{c.Version.String(), kind.Home.String()})}
	}
	object.SetAPIVersion(c.Version.String())
	encoded, err := object.MarshalJSON()
	if err != nil {
		return nil, field.ErrorList{field.Invalid(nil, object.GetName(), err.Error())}
	}
	internal, _, err := c.Decoder.Decode(encoded, nil, nil)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(nil, object.GetName(), err.Error())}
	}
	if accessor, err := meta.Accessor(internal); err == nil && !kind.Namespaced {
		accessor.SetNamespace("") // as rest.BeforeCreate does on a write
	}
	if errs := kind.Validate(internal); len(errs) > 0 {
		return nil, errs
	}
	return c.Compiler.Compile(ctx, object.GetKind(), internal)
}

func (c *Candidates) names() []string {
	names := make([]string, 0, len(c.Kinds))
	for name := range c.Kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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
