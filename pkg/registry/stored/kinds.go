// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/validation"
)

const unset = "<unset>"

// Kinds returns the table of all stored kinds. A new kind is a new row.
func Kinds() []Kind {
	return []Kind{validatingAdmissionPolicies(), validatingAdmissionPolicyBindings(), clusterPolicies(), policies()}
}

func validatingAdmissionPolicies() Kind {
	status := PartOf(func(p *policy.ValidatingAdmissionPolicy) *admissionregistrationv1.ValidatingAdmissionPolicyStatus {
		return &p.Status
	})
	return Kind{
		Resource:   "validatingadmissionpolicies",
		Singular:   "validatingadmissionpolicy",
		ShortNames: []string{"pvap"},
		Homes:      []schema.GroupVersion{admissionregistrationv1.SchemeGroupVersion},
		New:        func() runtime.Object { return &policy.ValidatingAdmissionPolicy{} },
		NewList:    func() runtime.Object { return &policy.ValidatingAdmissionPolicyList{} },
		Spec: PartOf(func(p *policy.ValidatingAdmissionPolicy) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
			return &p.Spec
		}),
		Status:               &status,
		Validate:             Validation(validation.ValidateValidatingAdmissionPolicy),
		ValidateUpdate:       UpdateValidation(validation.ValidateValidatingAdmissionPolicyUpdate),
		ValidateStatusUpdate: UpdateValidation(validation.ValidateValidatingAdmissionPolicyStatusUpdate),
		Columns: columns(
			metav1.TableColumnDefinition{Name: "Validations", Type: "integer", Description: "Validations indicates the number of validation rules defined in this configuration"},
			metav1.TableColumnDefinition{Name: "ParamKind", Type: "string", Description: "ParamKind specifies the kind of resources used to parameterize this policy"},
			readyColumn(),
		),
		Cells: Cells(func(p *policy.ValidatingAdmissionPolicy) []any {
			return []any{p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind), ready(p, p.Status.Conditions), age(p.CreationTimestamp)}
		}),
		salvage: salvageOf(salvagePolicy),
	}
}

func validatingAdmissionPolicyBindings() Kind {
	return Kind{
		Resource:   "validatingadmissionpolicybindings",
		Singular:   "validatingadmissionpolicybinding",
		ShortNames: []string{"pvapb"},
		Homes:      []schema.GroupVersion{admissionregistrationv1.SchemeGroupVersion},
		New:        func() runtime.Object { return &policy.ValidatingAdmissionPolicyBinding{} },
		NewList:    func() runtime.Object { return &policy.ValidatingAdmissionPolicyBindingList{} },
		Spec: PartOf(func(b *policy.ValidatingAdmissionPolicyBinding) *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
			return &b.Spec
		}),
		Validate:       Validation(validation.ValidateValidatingAdmissionPolicyBinding),
		ValidateUpdate: UpdateValidation(validation.ValidateValidatingAdmissionPolicyBindingUpdate),
		Binds:          Binds(func(b *policy.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
		Columns: columns(
			metav1.TableColumnDefinition{Name: "PolicyName", Type: "string", Description: "PolicyName indicates the policy definition which the policy binding binded to"},
			metav1.TableColumnDefinition{Name: "ParamRef", Type: "string", Description: "ParamRef indicates the param resource which sets the configuration param"},
		),
		Cells: Cells(func(b *policy.ValidatingAdmissionPolicyBinding) []any {
			return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), age(b.CreationTimestamp)}
		}),
		salvage: salvageOf(salvageBinding),
	}
}

// salvagePolicy keeps what says for which requests the policy is, and what an
// error leads to. Without matchConstraints it is for all, and without a
// failurePolicy defaulting makes it Fail. It has no validations.
func salvagePolicy(p *policy.ValidatingAdmissionPolicy, spec fields, damage, advice string) {
	p.Spec.MatchConstraints = readField[admissionregistrationv1.MatchResources](spec, "matchConstraints")
	p.Spec.FailurePolicy = readField[admissionregistrationv1.FailurePolicyType](spec, "failurePolicy")
	p.Status.Conditions = damagedConditions(p.Generation, p.Spec.MatchConstraints != nil,
		string(valueOr(p.Spec.FailurePolicy, admissionregistrationv1.Fail)), damage, advice)
}

// salvageBinding keeps what says which policy is bound, with which params and for
// which requests. Without matchResources it is for all that the policy matches. It
// has no actions, which denies.
func salvageBinding(b *policy.ValidatingAdmissionPolicyBinding, spec fields, _, _ string) {
	b.Spec.PolicyName = valueOr(readField[string](spec, "policyName"), "")
	b.Spec.ParamRef = readField[admissionregistrationv1.ParamRef](spec, "paramRef")
	b.Spec.MatchResources = readField[admissionregistrationv1.MatchResources](spec, "matchResources")
}

// columns puts those of a kind between the two that every kind has. A client sees
// the definitions that k8s.io/kubernetes/pkg/printers/internalversion gives,
// descriptions included.
func columns(own ...metav1.TableColumnDefinition) []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	all := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: docs["name"]}}
	all = append(all, own...)
	return append(all, metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: docs["creationTimestamp"]})
}

// ready is the status of the condition of that name, if it is about the object as
// it is now.
func ready(object metav1.Object, conditions []metav1.Condition) string {
	condition := meta.FindStatusCondition(conditions, "Ready")
	if condition == nil || condition.ObservedGeneration != object.GetGeneration() {
		return string(metav1.ConditionUnknown)
	}
	return string(condition.Status)
}

func readyColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Ready", Type: "string", Description: "Ready says whether this generation of the policy judges requests"}
}

func paramKind(kind *admissionregistrationv1.ParamKind) string {
	if kind == nil {
		return unset
	}
	return kind.APIVersion + "/" + kind.Kind
}

// paramRef shows a reference without a namespace under *: the table cannot tell
// whether the param is namespaced.
func paramRef(ref *admissionregistrationv1.ParamRef) string {
	switch {
	case ref == nil:
		return unset
	case ref.Name != "" && ref.Namespace != "":
		return ref.Namespace + "/" + ref.Name
	case ref.Name != "":
		return "*/" + ref.Name
	case ref.Selector != nil:
		return ref.Selector.String()
	default:
		return unset
	}
}

func age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
