// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// variablesType is the name of the type of `variables`; see composition.go in
// k8s.io/apiserver/pkg/admission/plugin/cel.
const variablesType = "kubernetes.variables"

// declarations say which of the variables are declared that some expressions see
// and others do not.
type declarations = plugincel.OptionalVariableDeclarations

// declare returns base with the variables that upstream declares for admission,
// those of the policy among them; see createEnvForOpts and NewCompositedCompiler
// in k8s.io/apiserver/pkg/admission/plugin/cel. What variables has as fields when
// an expression is checked is what the policy has as variables.
func declare(base *cel.Env, variables *apiservercel.DeclType, declared declarations) (*cel.Env, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	provider := apiservercel.NewDeclTypeProvider(request, namespace, variables)
	provider.SetRecognizeKeywordAsFieldName(true)
	options, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, fmt.Errorf("declaring the types of admission: %w", err)
	}
	options = append(options,
		cel.Variable(plugincel.ObjectVarName, cel.DynType),
		cel.Variable(plugincel.OldObjectVarName, cel.DynType),
		cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugincel.RequestVarName, request.CelType()),
		cel.Variable(plugincel.VariableVarName, variables.CelType()))
	if declared.HasParams {
		options = append(options, cel.Variable(plugincel.ParamsVarName, cel.DynType))
	}
	if declared.HasAuthorizer {
		options = append(options,
			cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
			cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	}
	env, err := base.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("declaring the variables of admission: %w", err)
	}
	return env, nil
}

// noVariables returns the type of the variables of a policy that has none.
func noVariables() *apiservercel.DeclType {
	return apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})
}

// fieldType returns the type that a variable has in the eyes of others, of which
// upstream keeps less than the checker knows: convertCelTypeToDeclType in
// k8s.io/apiserver/pkg/admission/plugin/cel. A variable that does not compile has
// none.
func fieldType(t *cel.Type) *apiservercel.DeclType {
	if t == nil {
		return apiservercel.DynType
	}
	for _, simple := range []*apiservercel.DeclType{
		apiservercel.AnyType, apiservercel.BoolType, apiservercel.BytesType, apiservercel.DoubleType, apiservercel.DurationType,
		apiservercel.IntType, apiservercel.NullType, apiservercel.StringType, apiservercel.TimestampType, apiservercel.UintType,
	} {
		if t == simple.CelType() { // and not one that only looks the same, such as a wrapper
			return simple
		}
	}
	if !t.HasTrait(traits.ContainerType) || !t.HasTrait(traits.IndexerType) {
		return apiservercel.DynType
	}
	switch of := t.Parameters(); len(of) {
	case 1:
		return apiservercel.NewListType(fieldType(of[0]), -1)
	case 2:
		return apiservercel.NewMapType(fieldType(of[0]), fieldType(of[1]), -1)
	}
	return apiservercel.DynType
}
