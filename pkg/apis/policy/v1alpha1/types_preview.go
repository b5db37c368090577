// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

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

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AdmissionPreview asks what the policies would say about a request, and why, or
// about objects that exist. It is answered on create and stored nowhere.
type AdmissionPreview struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the question.
	// +optional
	Spec AdmissionPreviewSpec `json:"spec,omitempty"`
	// Status is the answer.
	// +optional
	Status AdmissionPreviewStatus `json:"status,omitempty"`
}

// AdmissionPreviewSpec is the question of a preview. It has a request or objects.
type AdmissionPreviewSpec struct {
	// Request is the request to judge. An object alone is enough.
	// +optional
	Request *PreviewRequest `json:"request,omitempty"`
	// Objects selects existing objects, each of which is judged as if the caller
	// sent it again. The caller must have the right to list them.
	// +optional
	Objects *PreviewObjects `json:"objects,omitempty"`
	// Policies are candidates, judged together with the stored ones. A candidate
	// shadows the stored object of the same kind, namespace and name. Both our
	// apiVersion and the home apiVersion of the kind are accepted.
	// +optional
	// +listType=atomic
	Policies []runtime.RawExtension `json:"policies,omitempty"`
	// StoredPolicies says whether the stored policies judge too: Include (the
	// default) or Ignore.
	// +optional
	StoredPolicies StoredPolicies `json:"storedPolicies,omitempty"`
	// Cluster holds objects laid over the cluster for this preview: Namespaces,
	// params, CustomResourceDefinitions, ConfigMaps.
	// +optional
	// +listType=atomic
	Cluster []runtime.RawExtension `json:"cluster,omitempty"`
}

// PreviewRequest has the field names of admission.k8s.io/v1 AdmissionRequest.
// Every field is optional; what is absent is derived from the object.
type PreviewRequest struct {
	// UID identifies the request; it is an input of everything random.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Kind is the kind of object that is judged.
	// +optional
	Kind *GroupVersionKind `json:"kind,omitempty"`
	// Resource is the resource that is judged.
	// +optional
	Resource *GroupVersionResource `json:"resource,omitempty"`
	// SubResource is the subresource, if any.
	// +optional
	SubResource string `json:"subResource,omitempty"`
	// RequestKind is the kind of the original request.
	// +optional
	RequestKind *GroupVersionKind `json:"requestKind,omitempty"`
	// RequestResource is the resource of the original request.
	// +optional
	RequestResource *GroupVersionResource `json:"requestResource,omitempty"`
	// RequestSubResource is the subresource of the original request.
	// +optional
	RequestSubResource string `json:"requestSubResource,omitempty"`
	// Name is the name of the object; the one in its metadata when absent. With
	// requestResource, a DELETE without a name stays without: so does an API server
	// ask about the objects of a collection.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is the namespace of the request; the one in the metadata of the
	// object when absent.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Operation is CREATE, UPDATE, DELETE or CONNECT. When absent: UPDATE with
	// object and oldObject, DELETE with oldObject only, otherwise CREATE.
	// +optional
	Operation string `json:"operation,omitempty"`
	// UserInfo is the user who makes the request; the caller when absent.
	// +optional
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
	// Object is the object of the request.
	// +optional
	Object *runtime.RawExtension `json:"object,omitempty"`
	// OldObject is the existing object, for UPDATE and DELETE.
	// +optional
	OldObject *runtime.RawExtension `json:"oldObject,omitempty"`
	// DryRun says that the request is a dry run.
	// +optional
	DryRun *bool `json:"dryRun,omitempty"`
	// Options are the options of the operation, for example CreateOptions.
	// +optional
	Options *runtime.RawExtension `json:"options,omitempty"`
	// Time is the clock of policies that ask for one; the present when absent.
	// +optional
	Time *metav1.MicroTime `json:"time,omitempty"`
}

// PreviewObjects selects existing objects of one resource, up to the limit: the first
// in the order of the API server, which compares texts of the form namespace/name.
type PreviewObjects struct {
	// Resource is the resource of the objects. Its version may be left out; the
	// preferred one is judged then.
	// +optional
	Resource GroupVersionResource `json:"resource,omitempty"`
	// Namespace is where the objects are; in all namespaces when empty.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector selects objects by their labels; all of them when absent.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// Limit bounds the objects that are judged: 500 when absent or 0, at most 5000.
	// However many these are, no more are judged when about 256 MiB have been read.
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// Operation is what each object is judged with: CREATE (the default) as a new
	// object, UPDATE as a change of the object that changes nothing, DELETE as one
	// that goes.
	// +optional
	Operation string `json:"operation,omitempty"`
}

// AdmissionPreviewStatus is the answer of a preview.
type AdmissionPreviewStatus struct {
	// Allowed says whether the request would be admitted. Of existing objects, it
	// says that all that were to be judged have been, and that none would be denied:
	// objects.denied, objects.error and objects.remaining are 0.
	// +optional
	Allowed bool `json:"allowed"`
	// Result is the status that the API server would answer a denied request with.
	// Its details list every failure.
	// +optional
	Result *metav1.Status `json:"result,omitempty"`
	// Object is the object after all mutation.
	// +optional
	Object *runtime.RawExtension `json:"object,omitempty"`
	// Patch leads from the object of the request to the one after all mutation.
	// +optional
	// +listType=atomic
	Patch []PatchOperation `json:"patch,omitempty"`
	// Diverging are the rules that would change the object again if it were sent once
	// more: each further change of the object runs through them again.
	// +optional
	// +listType=atomic
	Diverging []Divergence `json:"diverging,omitempty"`
	// Warnings are those that the client would see.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// AuditAnnotations are those that the audit event of the request would carry.
	// +optional
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	// Evaluations say what each policy found, in the order of judgement.
	// +optional
	// +listType=atomic
	Evaluations []Evaluation `json:"evaluations,omitempty"`
	// Objects is the answer about existing objects.
	// +optional
	Objects *ObjectsStatus `json:"objects,omitempty"`
}

// ObjectsStatus says what became of existing objects. Each object that was judged
// counts once as allowed, denied or error.
type ObjectsStatus struct {
	// Judged is the number of objects that were judged.
	// +optional
	Judged int32 `json:"judged"`
	// Allowed is the number of objects that would be admitted.
	// +optional
	Allowed int32 `json:"allowed"`
	// Denied is the number of objects that would be denied because a rule fails.
	// +optional
	Denied int32 `json:"denied"`
	// Error is the number of objects that would be denied only because a policy
	// cannot be judged and has the failurePolicy Fail, or that got no verdict.
	// +optional
	Error int32 `json:"error"`
	// Changed is the number of objects that mutation would change.
	// +optional
	Changed int32 `json:"changed"`
	// Warned is the number of allowed objects that a warning would be about.
	// +optional
	Warned int32 `json:"warned,omitempty"`
	// Audited is the number of allowed objects that only the audit log would hear of.
	// +optional
	Audited int32 `json:"audited,omitempty"`
	// Ignored is the number of other allowed objects for which a policy cannot be
	// judged, which its failurePolicy Ignore lets pass.
	// +optional
	Ignored int32 `json:"ignored,omitempty"`
	// Remaining is the number of objects within the limit that were not judged
	// because the time had ended, or too much had been read. When truncated is set
	// too, and the limit is not reached, there may be more of them: how many the API
	// server has is not always known, but this is at least 1 then.
	// +optional
	Remaining int32 `json:"remaining,omitempty"`
	// Truncated says that there are, or may be, other objects than those that judged
	// and remaining count: beyond the limit, or beyond what was read. They were not
	// looked at.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// Failures are the first objects for which a policy did not pass, at most 20:
	// first those that are denied and errors, then the others, each in the order in
	// which they were judged.
	// +optional
	// +listType=atomic
	Failures []ObjectFailure `json:"failures,omitempty"`
}

// ObjectFailure is an existing object for which a policy did not pass.
type ObjectFailure struct {
	// Object is the object.
	// +optional
	Object ObjectReference `json:"object,omitempty"`
	// Outcome is the gravest: Denied, Error, Warned or Audited. Error also stands for
	// an error that the failurePolicy Ignore lets pass.
	// +optional
	Outcome EvaluationOutcome `json:"outcome,omitempty"`
	// Message is the first reason for a denial, which names the policy and the
	// binding, or else what the first of the evaluations says.
	// +optional
	Message string `json:"message,omitempty"`
	// Evaluations are those that did not pass, at most 10.
	// +optional
	// +listType=atomic
	Evaluations []Evaluation `json:"evaluations,omitempty"`
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
	// +optional
	Policy PolicyReference `json:"policy,omitempty"`
	// Binding is the name of the binding through which it judged.
	// +optional
	Binding string `json:"binding,omitempty"`
	// Param is the param that it was given.
	// +optional
	Param *ObjectReference `json:"param,omitempty"`
	// Phase is Mutate or Validate.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Outcome says what followed.
	// +optional
	Outcome EvaluationOutcome `json:"outcome,omitempty"`
	// Rule is the field or the name of the rule, for example validations[0].
	// +optional
	Rule string `json:"rule,omitempty"`
	// Expression is the expression of the rule.
	// +optional
	Expression string `json:"expression,omitempty"`
	// Message is what the rule says about the request.
	// +optional
	Message string `json:"message,omitempty"`
	// Values are what the parts of the expression were that it looked at, by their
	// text. Parts behind a decided && or || are not among them. Objects with one
	// key say what is no plain value: {"error": ...} a part that cannot be
	// evaluated, {"absent": true} an optional without a value, {"concealed": ...}
	// data of a Secret that the caller may not get, {"type": ...} what is no JSON.
	// Large values are cut: a text says its length, and "...": "12 more" stands for
	// what did not fit.
	// +optional
	Values map[string]apiextensionsv1.JSON `json:"values,omitempty"`
	// WhyNot is the first reason for which the policy has no part in the request.
	// +optional
	WhyNot string `json:"whyNot,omitempty"`
	// Patch is what the rule has changed in the object as it found it.
	// +optional
	// +listType=atomic
	Patch []PatchOperation `json:"patch,omitempty"`
	// Cost is what the rule cost, in units of the CEL cost model.
	// +optional
	Cost int64 `json:"cost,omitempty"`
	// DurationMicroseconds is the time that the rule needed.
	// +optional
	DurationMicroseconds int64 `json:"durationMicroseconds,omitempty"`
}

// PatchOperation is one operation of a JSON patch (RFC 6902).
type PatchOperation struct {
	// Op is add, remove or replace.
	// +optional
	Op string `json:"op,omitempty"`
	// Path is a JSON pointer.
	// +optional
	Path string `json:"path,omitempty"`
	// Value is that of add and replace.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// Divergence is what a rule would change in an object that has been through all rules.
type Divergence struct {
	// Policy is the policy of the rule.
	// +optional
	Policy PolicyReference `json:"policy,omitempty"`
	// Rule is the name of the rule.
	// +optional
	Rule string `json:"rule,omitempty"`
	// Patch is what it would change.
	// +optional
	// +listType=atomic
	Patch []PatchOperation `json:"patch,omitempty"`
}

// PolicyReference names a policy.
type PolicyReference struct {
	// Kind is the kind of the policy.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace is empty for cluster-scoped policies.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the policy.
	// +optional
	Name string `json:"name,omitempty"`
}

// ObjectReference names an object of any kind.
type ObjectReference struct {
	// APIVersion is the group and version.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace is empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}

// GroupVersionKind names a kind; the empty group is the core group.
type GroupVersionKind struct {
	// Group is the API group.
	// +optional
	Group string `json:"group,omitempty"`
	// Version is the API version.
	// +optional
	Version string `json:"version,omitempty"`
	// Kind is the kind.
	// +optional
	Kind string `json:"kind,omitempty"`
}

// GroupVersionResource names a resource; the empty group is the core group.
type GroupVersionResource struct {
	// Group is the API group.
	// +optional
	Group string `json:"group,omitempty"`
	// Version is the API version.
	// +optional
	Version string `json:"version,omitempty"`
	// Resource is the plural, lower-case name of the resource.
	// +optional
	Resource string `json:"resource,omitempty"`
}
