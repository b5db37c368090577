// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// StoredPolicies says whether a preview judges with the stored policies too.
type StoredPolicies string

const (
	// IncludeStoredPolicies judges with the stored policies and the candidates.
	IncludeStoredPolicies StoredPolicies = "Include"
	// IgnoreStoredPolicies judges with the candidates alone.
	IgnoreStoredPolicies StoredPolicies = "Ignore"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AdmissionPreview asks what the policies would say about a request, and why, or
// about objects that exist. It is answered on create and stored nowhere.
type AdmissionPreview struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Spec is the question.
	Spec AdmissionPreviewSpec
	// Status is the answer.
	Status AdmissionPreviewStatus
}

// AdmissionPreviewSpec is the question of a preview. It has a request or objects.
type AdmissionPreviewSpec struct {
	// Request is the request to judge. An object alone is enough.
	Request *PreviewRequest
	// Objects selects existing objects, each of which is judged as if the caller
	// sent it again. The caller must have the right to list them.
	Objects *PreviewObjects
	// Policies are candidates, judged together with the stored ones. A candidate
	// shadows the stored object of the same kind, namespace and name. Both our
	// apiVersion and the home apiVersion of the kind are accepted.
	Policies []runtime.RawExtension
	// StoredPolicies says whether the stored policies judge too: Include (the
	// default) or Ignore.
	StoredPolicies StoredPolicies
	// Cluster holds objects laid over the cluster for this preview: Namespaces,
	// params, CustomResourceDefinitions, ConfigMaps.
	Cluster []runtime.RawExtension
}

// PreviewRequest has the field names of admission.k8s.io/v1 AdmissionRequest.
// Every field is optional; what is absent is derived from the object.
type PreviewRequest struct {
	// UID identifies the request; it is an input of everything random.
	UID types.UID
	// Kind is the kind of object that is judged.
	Kind *GroupVersionKind
	// Resource is the resource that is judged.
	Resource *GroupVersionResource
	// SubResource is the subresource, if any.
	SubResource string
	// RequestKind is the kind of the original request.
	RequestKind *GroupVersionKind
	// RequestResource is the resource of the original request.
	RequestResource *GroupVersionResource
	// RequestSubResource is the subresource of the original request.
	RequestSubResource string
	// Name is the name of the object; the one in its metadata when absent. With
	// requestResource, a DELETE without a name stays without: so does an API server
	// ask about the objects of a collection.
	Name string
	// Namespace is the namespace of the request; the one in the metadata of the
	// object when absent.
	Namespace string
	// Operation is CREATE, UPDATE, DELETE or CONNECT. When absent: UPDATE with
	// object and oldObject, DELETE with oldObject only, otherwise CREATE.
	Operation string
	// UserInfo is the user who makes the request; the caller when absent.
	UserInfo *authenticationv1.UserInfo
	// Object is the object of the request.
	Object *runtime.RawExtension
	// OldObject is the existing object, for UPDATE and DELETE.
	OldObject *runtime.RawExtension
	// DryRun says that the request is a dry run.
	DryRun *bool
	// Options are the options of the operation, for example CreateOptions.
	Options *runtime.RawExtension
	// Time is the clock of policies that ask for one; the present when absent.
	Time *metav1.MicroTime
}

// PreviewObjects selects existing objects of one resource, up to the limit: the first
// in the order of the API server, which compares texts of the form namespace/name.
type PreviewObjects struct {
	// Resource is the resource of the objects. Its version may be left out; the
	// preferred one is judged then.
	Resource GroupVersionResource
	// Namespace is where the objects are; in all namespaces when empty.
	Namespace string
	// LabelSelector selects objects by their labels; all of them when absent.
	LabelSelector *metav1.LabelSelector
	// Limit bounds the objects that are judged: 500 when absent or 0, at most 5000.
	// However many these are, no more are judged when about 256 MiB have been read.
	Limit int32
	// Operation is what each object is judged with: CREATE (the default) as a new
	// object, UPDATE as a change of the object that changes nothing, DELETE as one
	// that goes.
	Operation string
}

// AdmissionPreviewStatus is the answer of a preview.
type AdmissionPreviewStatus struct {
	// Allowed says whether the request would be admitted. Of existing objects, it
	// says that all that were to be judged have been, and that none would be denied:
	// objects.denied, objects.error and objects.remaining are 0.
	Allowed bool
	// Result is the status that the API server would answer a denied request with.
	// Its details list every failure.
	Result *metav1.Status
	// Object is the object after all mutation.
	Object *runtime.RawExtension
	// Patch leads from the object of the request to the one after all mutation.
	Patch []PatchOperation
	// Diverging are the rules that would change the object again if it were sent once
	// more: each further change of the object runs through them again.
	Diverging []Divergence
	// Warnings are those that the client would see.
	Warnings []string
	// AuditAnnotations are those that the audit event of the request would carry.
	AuditAnnotations map[string]string
	// Evaluations say what each policy found, in the order of judgement.
	Evaluations []Evaluation
	// Objects is the answer about existing objects.
	Objects *ObjectsStatus
}

// ObjectsStatus says what became of existing objects. Each object that was judged
// counts once as allowed, denied or error.
type ObjectsStatus struct {
	// Judged is the number of objects that were judged.
	Judged int32
	// Allowed is the number of objects that would be admitted.
	Allowed int32
	// Denied is the number of objects that would be denied because a rule fails.
	Denied int32
	// Error is the number of objects that would be denied only because a policy
	// cannot be judged and has the failurePolicy Fail, or that got no verdict.
	Error int32
	// Changed is the number of objects that mutation would change.
	Changed int32
	// Warned is the number of allowed objects that a warning would be about.
	Warned int32
	// Audited is the number of allowed objects that only the audit log would hear of.
	Audited int32
	// Ignored is the number of other allowed objects for which a policy cannot be
	// judged, which its failurePolicy Ignore lets pass.
	Ignored int32
	// Remaining is the number of objects within the limit that were not judged
	// because the time had ended, or too much had been read. When truncated is set
	// too, and the limit is not reached, there may be more of them: how many the API
	// server has is not always known, but this is at least 1 then.
	Remaining int32
	// Truncated says that there are, or may be, other objects than those that judged
	// and remaining count: beyond the limit, or beyond what was read. They were not
	// looked at.
	Truncated bool
	// Failures are the first objects for which a policy did not pass, at most 20:
	// first those that are denied and errors, then the others, each in the order in
	// which they were judged.
	Failures []ObjectFailure
}

// ObjectFailure is an existing object for which a policy did not pass.
type ObjectFailure struct {
	// Object is the object.
	Object ObjectReference
	// Outcome is the gravest: Denied, Error, Warned or Audited. Error also stands for
	// an error that the failurePolicy Ignore lets pass.
	Outcome EvaluationOutcome
	// Message is the first reason for a denial, which names the policy and the
	// binding, or else what the first of the evaluations says.
	Message string
	// Evaluations are those that did not pass, at most 10.
	Evaluations []Evaluation
}

// EvaluationOutcome is the outcome of one evaluation.
type EvaluationOutcome string

const (
	// OutcomeAllowed says that the rule had nothing to object.
	OutcomeAllowed EvaluationOutcome = "Allowed"
	// OutcomeDenied says that the rule failed and the request is denied for it.
	OutcomeDenied EvaluationOutcome = "Denied"
	// OutcomeWarned says that the rule failed and the client is warned.
	OutcomeWarned EvaluationOutcome = "Warned"
	// OutcomeAudited says that the rule failed and the audit event says so.
	OutcomeAudited EvaluationOutcome = "Audited"
	// OutcomeMutated says that the rule has changed the object.
	OutcomeMutated EvaluationOutcome = "Mutated"
	// OutcomeSkipped says that a condition of the policy kept it from judging.
	OutcomeSkipped EvaluationOutcome = "Skipped"
	// OutcomeError says that the policy could not be judged; its failurePolicy
	// decides what follows.
	OutcomeError EvaluationOutcome = "Error"
	// OutcomeNotMatched says that the policy or its binding is not about the
	// request.
	OutcomeNotMatched EvaluationOutcome = "NotMatched"
)

// Evaluation is what one rule of one policy found, through one binding and
// with one param.
type Evaluation struct {
	// Policy is the policy that judged.
	Policy PolicyReference
	// Binding is the name of the binding through which it judged.
	Binding string
	// Param is the param that it was given.
	Param *ObjectReference
	// Phase is Mutate or Validate.
	Phase string
	// Outcome says what followed.
	Outcome EvaluationOutcome
	// Rule is the field or the name of the rule, for example validations[0].
	Rule string
	// Expression is the expression of the rule.
	Expression string
	// Message is what the rule says about the request.
	Message string
	// Values are what the parts of the expression were, by their text.
	Values map[string]apiextensionsv1.JSON
	// WhyNot is the first reason for which the policy has no part in the request.
	WhyNot string
	// Patch is what the rule has changed in the object as it found it.
	Patch []PatchOperation
	// Cost is what the rule cost, in units of the CEL cost model.
	Cost int64
	// DurationMicroseconds is the time that the rule needed.
	DurationMicroseconds int64
}

// PatchOperation is one operation of a JSON patch (RFC 6902).
type PatchOperation struct {
	// Op is add, remove or replace.
	Op string
	// Path is a JSON pointer.
	Path string
	// Value is that of add and replace.
	Value *apiextensionsv1.JSON
}

// Divergence is what a rule would change in an object that has been through all rules.
type Divergence struct {
	// Policy is the policy of the rule.
	Policy PolicyReference
	// Rule is the name of the rule.
	Rule string
	// Patch is what it would change.
	Patch []PatchOperation
}

// PolicyReference names a policy.
type PolicyReference struct {
	// Kind is the kind of the policy.
	Kind string
	// Namespace is empty for cluster-scoped policies.
	Namespace string
	// Name is the name of the policy.
	Name string
}

// ObjectReference names an object of any kind.
type ObjectReference struct {
	// APIVersion is the group and version.
	APIVersion string
	// Kind is the kind of the object.
	Kind string
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	// Name is the name of the object.
	Name string
}

// GroupVersionKind names a kind; the empty group is the core group.
type GroupVersionKind struct {
	// Group is the API group.
	Group string
	// Version is the API version.
	Version string
	// Kind is the kind.
	Kind string
}

// GroupVersionResource names a resource; the empty group is the core group.
type GroupVersionResource struct {
	// Group is the API group.
	Group string
	// Version is the API version.
	Version string
	// Resource is the plural, lower-case name of the resource.
	Resource string
}
