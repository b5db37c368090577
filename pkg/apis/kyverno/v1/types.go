// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ApplyRules says how many rules of a policy apply to a request.
type ApplyRules string

const (
	// ApplyAll applies every rule that matches.
	ApplyAll ApplyRules = "All"
	// ApplyOne stops after the first rule that has changed the object.
	ApplyOne ApplyRules = "One"
)

// FailurePolicy says what follows when a policy cannot be judged.
type FailurePolicy string

const (
	// Fail denies the request.
	Fail FailurePolicy = "Fail"
	// Ignore lets it pass.
	Ignore FailurePolicy = "Ignore"
)

// Spec is what a policy does.
type Spec struct {
	// Rules are applied in their order; each sees what the former have made of the object.
	// +optional
	// +listType=atomic
	Rules []Rule `json:"rules,omitempty"`
	// ApplyRules is All (the default), or One: no rule after the first that has changed the object.
	// +optional
	ApplyRules *ApplyRules `json:"applyRules,omitempty"`
	// FailurePolicy is Fail (the default) or Ignore. The one of webhookConfiguration wins.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`
	// Admission says whether the policy is applied to requests. True when absent.
	// +optional
	Admission *bool `json:"admission,omitempty"`
	// Background says whether rules with targets may run when no request is made. True when absent.
	// +optional
	Background *bool `json:"background,omitempty"`
	// EmitWarning has no effect on mutate rules.
	// +optional
	EmitWarning *bool `json:"emitWarning,omitempty"`
	// SchemaValidation has no effect: every write is validated.
	// +optional
	SchemaValidation *bool `json:"schemaValidation,omitempty"`
	// WebhookConfiguration says how requests are judged.
	// +optional
	WebhookConfiguration *WebhookConfiguration `json:"webhookConfiguration,omitempty"`
	// WebhookTimeoutSeconds is the older form of webhookConfiguration.timeoutSeconds.
	// +optional
	WebhookTimeoutSeconds *int32 `json:"webhookTimeoutSeconds,omitempty"`
	// MutateExistingOnPolicyUpdate is the older form of mutate.mutateExistingOnPolicyUpdate of a rule.
	// +optional
	MutateExistingOnPolicyUpdate bool `json:"mutateExistingOnPolicyUpdate,omitempty"`
	// ValidationFailureAction has no effect on mutate rules.
	// +optional
	ValidationFailureAction string `json:"validationFailureAction,omitempty"`
	// ValidationFailureActionOverrides has no effect on mutate rules.
	// +optional
	// +listType=atomic
	ValidationFailureActionOverrides []apiextensionsv1.JSON `json:"validationFailureActionOverrides,omitempty"`
	// GenerateExisting has no effect on mutate rules.
	// +optional
	GenerateExisting bool `json:"generateExisting,omitempty"`
	// GenerateExistingOnPolicyUpdate has no effect on mutate rules.
	// +optional
	GenerateExistingOnPolicyUpdate *bool `json:"generateExistingOnPolicyUpdate,omitempty"`
	// UseServerSideApply has no effect on mutate rules.
	// +optional
	UseServerSideApply bool `json:"useServerSideApply,omitempty"`
}

// WebhookConfiguration says how requests are judged.
type WebhookConfiguration struct {
	// FailurePolicy is Fail (the default) or Ignore.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`
	// TimeoutSeconds bounds the time for judging a request with the policy: 1 to 30, 10 when absent.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// MatchConditions are CEL expressions, all of which must be true for a request to be judged.
	// +optional
	// +listType=map
	// +listMapKey=name
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// Rule is one rule of a policy.
type Rule struct {
	// Name is unique in the policy, 63 characters at most.
	Name string `json:"name"`
	// Context declares variables, each found when it is first needed.
	// +optional
	// +listType=atomic
	Context []ContextEntry `json:"context,omitempty"`
	// Match says which requests the rule is about.
	// +optional
	Match MatchResources `json:"match,omitzero"`
	// Exclude takes requests out of those that match.
	// +optional
	Exclude *MatchResources `json:"exclude,omitempty"`
	// Preconditions must hold: any and all, or a list of conditions that must all hold.
	// +optional
	Preconditions *apiextensionsv1.JSON `json:"preconditions,omitempty"`
	// Mutate says what is changed.
	// +optional
	Mutate *Mutation `json:"mutate,omitempty"`
	// SkipBackgroundRequests keeps the rule from requests of the controller that changes existing objects. True when absent.
	// +optional
	SkipBackgroundRequests *bool `json:"skipBackgroundRequests,omitempty"`
	// ReportProperties has no effect: there are no policy reports.
	// +optional
	ReportProperties map[string]string `json:"reportProperties,omitempty"`

	// CELPreconditions is refused: it belongs to validate rules.
	// +optional
	// +listType=atomic
	CELPreconditions []apiextensionsv1.JSON `json:"celPreconditions,omitempty"`
	// ImageExtractors is refused: it belongs to rules that verify images.
	// +optional
	ImageExtractors *apiextensionsv1.JSON `json:"imageExtractors,omitempty"`
	// Validate is refused: write a ValidatingAdmissionPolicy.
	// +optional
	Validate *apiextensionsv1.JSON `json:"validate,omitempty"`
	// Generate is refused.
	// +optional
	Generate *apiextensionsv1.JSON `json:"generate,omitempty"`
	// VerifyImages is refused.
	// +optional
	// +listType=atomic
	VerifyImages []apiextensionsv1.JSON `json:"verifyImages,omitempty"`
}

// Mutation says what a rule changes. It has exactly one of patchStrategicMerge,
// patchesJson6902 and foreach.
type Mutation struct {
	// PatchStrategicMerge is an overlay of the object.
	// +optional
	PatchStrategicMerge *apiextensionsv1.JSON `json:"patchStrategicMerge,omitempty"`
	// PatchesJSON6902 is the text of a list of JSON patch operations, as YAML or JSON.
	// +optional
	PatchesJSON6902 string `json:"patchesJson6902,omitempty"`
	// ForEach changes the object once for each element of lists.
	// +optional
	// +listType=atomic
	ForEach []ForEachMutation `json:"foreach,omitempty"`
	// Targets are the existing objects that the rule changes instead of that of the request.
	// +optional
	// +listType=atomic
	Targets []apiextensionsv1.JSON `json:"targets,omitempty"`
	// MutateExistingOnPolicyUpdate has the rule run for all triggers when the policy is written.
	// +optional
	MutateExistingOnPolicyUpdate *bool `json:"mutateExistingOnPolicyUpdate,omitempty"`
}

// ForEachOrder is an order of elements.
type ForEachOrder string

const (
	// Ascending begins with the first element.
	Ascending ForEachOrder = "Ascending"
	// Descending begins with the last element.
	Descending ForEachOrder = "Descending"
)

// ForEachMutation changes the object once for each element of a list. It has exactly one of
// patchStrategicMerge, patchesJson6902 and foreach.
type ForEachMutation struct {
	// List is a JMESPath expression, without braces.
	// +optional
	List string `json:"list,omitempty"`
	// Order is Ascending or Descending; Descending when absent beside patchStrategicMerge, and Ascending otherwise.
	// +optional
	Order *ForEachOrder `json:"order,omitempty"`
	// Context declares variables of one iteration.
	// +optional
	// +listType=atomic
	Context []ContextEntry `json:"context,omitempty"`
	// Preconditions must hold for an element, or it is passed over: any and all.
	// +optional
	Preconditions *apiextensionsv1.JSON `json:"preconditions,omitempty"`
	// PatchStrategicMerge is an overlay of the object.
	// +optional
	PatchStrategicMerge *apiextensionsv1.JSON `json:"patchStrategicMerge,omitempty"`
	// PatchesJSON6902 is the text of a list of JSON patch operations, as YAML or JSON.
	// +optional
	PatchesJSON6902 string `json:"patchesJson6902,omitempty"`
	// ForEach is a list of entries of this form, for lists within the element.
	// +optional
	ForEach *apiextensionsv1.JSON `json:"foreach,omitempty"`
}
