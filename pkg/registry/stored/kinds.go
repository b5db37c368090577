// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/validation"
)

const unset = "<unset>"

// Kinds returns the table of all stored kinds. A new kind is a new row.
func Kinds() []Kind {
	return []Kind{validatingAdmissionPolicies(), validatingAdmissionPolicyBindings()}
}

func validatingAdmissionPolicies() Kind {
	status := PartOf(func(p *policy.ValidatingAdmissionPolicy) *admissionregistrationv1.ValidatingAdmissionPolicyStatus {
		return &p.Status
	})
	return Kind{
		Resource:   "validatingadmissionpolicies",
		Singular:   "validatingadmissionpolicy",
		ShortNames: []string{"pvap"},
		Home:       admissionregistrationv1.SchemeGroupVersion,
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
		),
		Cells: Cells(func(p *policy.ValidatingAdmissionPolicy) []any {
			return []any{p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind), age(p.CreationTimestamp)}
		}),
	}
}

func validatingAdmissionPolicyBindings() Kind {
	return Kind{
		Resource:   "validatingadmissionpolicybindings",
		Singular:   "validatingadmissionpolicybinding",
		ShortNames: []string{"pvapb"},
		Home:       admissionregistrationv1.SchemeGroupVersion,
		New:        func() runtime.Object { return &policy.ValidatingAdmissionPolicyBinding{} },
		NewList:    func() runtime.Object { return &policy.ValidatingAdmissionPolicyBindingList{} },
		Spec: PartOf(func(b *policy.ValidatingAdmissionPolicyBinding) *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
			return &b.Spec
		}),
		Validate:       Validation(validation.ValidateValidatingAdmissionPolicyBinding),
		ValidateUpdate: UpdateValidation(validation.ValidateValidatingAdmissionPolicyBindingUpdate),
		Columns: columns(
			metav1.TableColumnDefinition{Name: "PolicyName", Type: "string", Description: "PolicyName indicates the policy definition which the policy binding binded to"},
			metav1.TableColumnDefinition{Name: "ParamRef", Type: "string", Description: "ParamRef indicates the param resource which sets the configuration param"},
		),
		Cells: Cells(func(b *policy.ValidatingAdmissionPolicyBinding) []any {
			return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), age(b.CreationTimestamp)}
		}),
	}
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
