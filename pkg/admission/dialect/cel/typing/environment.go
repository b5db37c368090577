// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
)

// pair is what an environment declares the types of.
type pair struct {
	object, params schema.GroupVersionKind
	mended         bool
}

// environment returns the environment in which objects are of the given kind: that
// of upstream's type checker, or one in which its mistakes are mended. The error is
// resolver.ErrSchemaNotFound when there is no schema of the kind.
func (r *run) environment(kind schema.GroupVersionKind, mended bool) (*environment.EnvSet, error) {
	key := pair{object: kind, params: r.params, mended: mended}
	if cached, ok := r.environments.Get(key); ok {
		if set, ok := cached.(*environment.EnvSet); ok {
			return set, nil
		}
	}
	objects, err := r.declare(kind, mended)
	if err != nil {
		return nil, err
	}
	params := (*apiservercel.DeclType)(nil)
	if !r.params.Empty() {
		params, err = r.declare(r.params, mended)
		if err != nil && !errors.Is(err, resolver.ErrSchemaNotFound) {
			return nil, fmt.Errorf("params of %v: %w", r.params, err)
		}
	}
	declared := declarations(objects, params, !r.params.Empty())
	if mended {
		declared.EnvOptions = append(declared.EnvOptions, cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	}
	set, err := r.base.Extend(declared)
	if err != nil {
		return nil, fmt.Errorf("declare the types: %w", err)
	}
	r.environments.Add(key, set)
	return set, nil
}

// declare returns the type that CEL knows objects of a kind by. It is nil when the
// schema says nothing that CEL could use: any type will do then.
func (r *run) declare(kind schema.GroupVersionKind, mended bool) (*apiservercel.DeclType, error) {
	found, err := r.cluster.Schema(kind)
	if err != nil {
		return nil, err
	}
	if mended {
		found = mend(found)
	}
	declared := common.SchemaDeclType(&openapi.Schema{Schema: found}, true)
	if declared == nil {
		return nil, nil //nolint:nilnil // As buildEnvSet of upstream's type checker has it.
	}
	return declared.MaybeAssignTypeName(typeName(kind)), nil
}

// typeName is how error messages name the type. It is the same each time, unlike
// that of upstream's type checker, so that an unchanged result has an unchanged
// text. No expression can spell it: it would become an identifier.
func typeName(kind schema.GroupVersionKind) string {
	group := kind.Group
	if group == "" {
		group = "core"
	}
	return group + "/" + kind.Version + "." + kind.Kind
}

// declarations are those of buildEnvSet of upstream's type checker, which leaves
// out authorizer.requestResource.
func declarations(objects, params *apiservercel.DeclType, hasParams bool) environment.VersionedOptions {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	d := declared{options: environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // in every environment
		EnvOptions:        []cel.EnvOption{cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType)},
	}}
	d.add(namespace, plugincel.NamespaceVarName)
	d.add(request, plugincel.RequestVarName)
	d.add(objects, plugincel.ObjectVarName, plugincel.OldObjectVarName)
	if hasParams {
		d.add(params, plugincel.ParamsVarName)
	}
	return d.options
}

type declared struct{ options environment.VersionedOptions }

// add declares names of a type, of any type when it is nil.
func (d *declared) add(of *apiservercel.DeclType, names ...string) {
	celType := cel.DynType
	if of != nil {
		celType = of.CelType()
		d.options.DeclTypes = append(d.options.DeclTypes, of)
	}
	for _, name := range names {
		d.options.EnvOptions = append(d.options.EnvOptions, cel.Variable(name, celType))
	}
}
