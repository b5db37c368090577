// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// ValidateValidatingAdmissionPolicy returns what is wrong with a new policy.
// Its rules are those of the upstream function of the same name.
func ValidateValidatingAdmissionPolicy(p *policy.ValidatingAdmissionPolicy) field.ErrorList {
	return validatePolicy(p, policyValidator{environment: kubernetesEnvironment()})
}

// ValidateValidatingAdmissionPolicyUpdate returns what is wrong with a policy
// that is to replace oldPolicy. Expressions that oldPolicy has too may use all
// that stored expressions may use. Match conditions are not looked at again when
// neither they nor the paramKind have changed, nor is it asked again whether
// variables may read themselves when they have not changed: an old policy stays
// writable.
func ValidateValidatingAdmissionPolicyUpdate(newPolicy, oldPolicy *policy.ValidatingAdmissionPolicy) field.ErrorList {
	return validatePolicyUpdate(newPolicy, oldPolicy, kubernetesEnvironment())
}

func validatePolicyUpdate(newPolicy, oldPolicy *policy.ValidatingAdmissionPolicy, env *celEnvironment) field.ErrorList {
	return validatePolicy(newPolicy, policyValidator{
		environment: env,
		stored:      storedExpressionsOf(&oldPolicy.Spec),
		skipMatchConditions: equality.Semantic.DeepEqual(newPolicy.Spec.ParamKind, oldPolicy.Spec.ParamKind) &&
			equality.Semantic.DeepEqual(newPolicy.Spec.MatchConditions, oldPolicy.Spec.MatchConditions),
		skipCircles: equality.Semantic.DeepEqual(newPolicy.Spec.Variables, oldPolicy.Spec.Variables),
	})
}

func validatePolicy(p *policy.ValidatingAdmissionPolicy, v policyValidator) field.ErrorList {
	specPath := field.NewPath("spec")
	// The size bounds the work of everything below.
	if errs := validateSize(p, specPath); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&p.ObjectMeta, false,
		apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	v.policyName = p.Name
	return append(errs, v.validateSpec(&p.Spec, specPath)...)
}

// policyValidator validates one policy.
type policyValidator struct {
	environment *celEnvironment
	// stored is empty for a new policy.
	stored storedExpressions
	// skipMatchConditions says that the match conditions were accepted before.
	skipMatchConditions bool
	// skipCircles says that the variables were stored before as they are.
	skipCircles bool

	// policyName is the first part of the keys of audit annotations.
	policyName string
	// hasParams says that expressions may use params.
	hasParams bool
	// compiler knows the variables that were compiled so far.
	compiler policyCompiler
}

func (v *policyValidator) validateSpec(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	v.hasParams = spec.ParamKind != nil
	compiler, err := v.environment.newPolicyCompiler(len(spec.Variables))
	if err != nil {
		return append(errs, field.InternalError(path.Child("variables"), err))
	}
	v.compiler = compiler

	errs = append(errs, validateFailurePolicy(spec.FailurePolicy, path.Child("failurePolicy"))...)
	errs = append(errs, validateParamKind(spec.ParamKind, path.Child("paramKind"))...)
	errs = append(errs, validateMatchConstraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	if !v.skipMatchConditions {
		errs = append(errs, v.validateMatchConditions(spec.MatchConditions, path.Child("matchConditions"))...)
	}
	errs = append(errs, v.validateVariables(spec.Variables, path.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const detail = "validations or auditAnnotations must contain at least one item"
		return append(errs,
			field.Required(path.Child("validations"), detail),
			field.Required(path.Child("auditAnnotations"), detail))
	}
	for i := range spec.Validations {
		errs = append(errs, v.validateValidation(&spec.Validations[i], path.Child("validations").Index(i))...)
	}
	return append(errs, v.validateAuditAnnotations(spec.AuditAnnotations, path.Child("auditAnnotations"))...)
}

func validateFailurePolicy(failurePolicy *admissionregistrationv1.FailurePolicyType, path *field.Path) field.ErrorList {
	if failurePolicy == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	switch *failurePolicy {
	case admissionregistrationv1.Fail, admissionregistrationv1.Ignore:
		return nil
	default:
		return field.ErrorList{field.NotSupported(path, *failurePolicy, []admissionregistrationv1.FailurePolicyType{
			admissionregistrationv1.Fail, admissionregistrationv1.Ignore,
		})}
	}
}
