// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// maxFaults is how many faults are reported.
const maxFaults = 100

// Manifests decodes manifests of the stored kinds.
type Manifests interface {
	// Decode returns the internal object of a manifest, which it may change, with
	// its kind. The paths of faults start at the manifest.
	Decode(manifest *unstructured.Unstructured) (runtime.Object, *stored.Kind, field.ErrorList)
}

// Compiler compiles one internal object of our group.
type Compiler interface {
	Compile(ctx context.Context, kind string, obj runtime.Object) (*policy.Unit, field.ErrorList)
}

type loader struct {
	manifests Manifests
	compiler  Compiler
}

// load returns the units of what was read, or all faults.
func (l *loader) load(ctx context.Context, dir string, found *contents) ([]*policy.Unit, error) {
	b := &batch{loader: l, faults: found.faults, unread: len(found.faults) > 0, first: map[policy.ID]place{}}
	for _, file := range found.files {
		objects := b.read(file)
		if b.objects += len(objects); b.objects > found.objects {
			return nil, fmt.Errorf("%s: the manifests up to here have more than %d objects; remove what no bootstrap policy needs", file.path, found.objects)
		}
		for _, object := range objects {
			b.add(ctx, place{file: file.path, Position: object.Position}, object.Content)
		}
	}
	b.checkTargets()
	if more := len(b.faults) - maxFaults; more > 0 {
		b.faults = append(b.faults[:maxFaults:maxFaults], fmt.Errorf("%s: and %d more faults", dir, more))
	}
	if err := errors.Join(b.faults...); err != nil {
		return nil, err
	}
	units := make([]*policy.Unit, len(b.members))
	for i, member := range b.members {
		units[i] = member.unit
	}
	return units, nil
}

// batch is what is being loaded together.
type batch struct {
	*loader
	objects int
	members []member
	first   map[policy.ID]place
	faults  []error
	unread  bool // there may be objects of which nothing is known
}

// member is an object whose name and target are known, at fault or not.
type member struct {
	place place
	unit  *policy.Unit
}

// place is where an object was found.
type place struct {
	file string
	manifest.Position
}

func (p place) String() string { return p.file + ": " + p.Position.String() }

// read returns the objects of a file.
func (b *batch) read(file file) []manifest.Object {
	objects, err := manifest.Read(file.data)
	for _, fault := range flatten(err) {
		b.faults = append(b.faults, fmt.Errorf("%s: %w", file.path, fault))
		b.unread = true
	}
	if err == nil && len(objects) == 0 {
		// Whoever writes a file by a shell redirection truncates it first: that must
		// not put its policies out of force.
		b.faults = append(b.faults, fmt.Errorf("%s: the file has no objects; write policies and bindings into it, or remove it", file.path))
		b.unread = true
	}
	return objects
}

func (b *batch) add(ctx context.Context, at place, content *unstructured.Unstructured) {
	name := content.GetKind()
	obj, kind, errs := b.manifests.Decode(content)
	if len(errs) > 0 {
		b.unread = true
		b.report(at, errs)
		return
	}
	errs = checkName(obj)
	invalid := kind.Validate(obj)
	unit, faults := b.compiler.Compile(ctx, name, obj)
	if len(invalid) > 0 {
		faults = nil // validation has found the same, and says more
	}
	errs = append(append(errs, invalid...), faults...)
	if unit == nil {
		b.unread = true
		b.report(at, errs)
		return
	}
	errs = append(errs, checkParams(unit)...)
	errs = append(errs, checkReads(unit)...)
	if first, twice := b.first[unit.ID]; twice && unit.ID.Name != "" {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeDuplicate, Field: "metadata.name", BadValue: unit.ID.Name,
			Detail: fmt.Sprintf("the first %s of that name is in %s: remove or rename one of them", unit.ID.Kind, first),
		})
	} else {
		b.first[unit.ID] = at
	}
	for _, text := range unit.Warnings {
		klog.FromContext(ctx).Info("A part of a bootstrap policy has no effect", "kind", unit.ID.Kind, "namespace", unit.ID.Namespace, "policy", unit.ID.Name, "warning", text)
	}
	b.members = append(b.members, member{place: at, unit: unit})
	b.report(at, errs)
}

// checkTargets demands that every binding names a policy that is there.
func (b *batch) checkTargets() {
	path := field.NewPath("spec", "policyName")
	for _, member := range b.members {
		if member.unit.Binding == nil || member.unit.Binding.Policy.Name == "" {
			continue // validation says so
		}
		target := member.unit.Binding.Policy
		_, found := b.first[target]
		switch {
		case !stored.IsReserved(target.Name):
			b.report(member.place, field.ErrorList{field.Invalid(path, target.Name, fmt.Sprintf(
				"must end with %q: bootstrap bindings bind bootstrap policies; bind a stored policy by a stored binding", stored.ReservedSuffix))})
		case !found && !b.unread:
			b.report(member.place, field.ErrorList{field.Invalid(path, target.Name, fmt.Sprintf(
				"no %s of that name is in the directory: add it, or name another one", target.Kind))})
		}
	}
}

// checkName demands the suffix that no stored object may have.
func checkName(obj runtime.Object) field.ErrorList {
	path := field.NewPath("metadata", "name")
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if name := accessor.GetName(); name != "" && !stored.IsReserved(name) { // validation demands a name
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf(
			"must end with %q, which sets bootstrap policies and bindings apart from stored ones: rename it", stored.ReservedSuffix))}
	}
	return nil
}

// checkParams refuses params: they are objects of the API, which others may change,
// and may not be there when the first request comes.
func checkParams(unit *policy.Unit) field.ErrorList {
	const advice = "is not supported for bootstrap policies, whose verdicts must not depend on objects of the API: write the values into the expressions"
	switch {
	case unit.Policy != nil && unit.Policy.ParamKind != nil:
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "paramKind"), advice)}
	case unit.Binding != nil && unit.Binding.Params != nil:
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "paramRef"), advice)}
	default:
		return nil
	}
}

// checkReads refuses rules that read the cluster, for the same reason.
func checkReads(unit *policy.Unit) field.ErrorList {
	if unit.Policy == nil {
		return nil
	}
	var errs field.ErrorList
	for _, read := range unit.Policy.Reads {
		errs = append(errs, field.Forbidden(read.Field,
			"is not supported for bootstrap policies, whose verdicts must not depend on objects of the API: write the values into the policy"))
	}
	return errs
}

// report adds the faults of an object.
func (b *batch) report(at place, errs field.ErrorList) {
	for _, fault := range errs {
		text := fault.ErrorBody()
		if fault.Field != "" && fault.Field != "<nil>" {
			text = fault.Error()
		}
		b.faults = append(b.faults, fmt.Errorf("%s: %s", at, strings.ReplaceAll(text, "\n", " ")))
	}
}

// flatten returns the errors that errors.Join has joined.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}
