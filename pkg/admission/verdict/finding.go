// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict holds what policies find, and the one place where findings
// become a decision: Fold. It does not know policy languages or HTTP.
package verdict

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kind says what sort of fact a Finding is. The zero value is Undecided, which
// never admits.
type Kind uint8

const (
	// Undecided is what a forgotten assignment leaves. It is treated as Error.
	Undecided Kind = iota
	// Pass says that a rule has nothing to object.
	Pass
	// Fail says that a rule objects. The actions of the binding decide what
	// follows; failurePolicy has no part in it.
	Fail
	// Error says that a rule could not be judged. failurePolicy decides
	// whether it counts; if so, the actions of the binding apply as to Fail.
	Error
	// Misconfigured says that a policy or binding cannot be used for this
	// request, or that an audit annotation could not be computed.
	// failurePolicy decides whether it counts; if so, the request is denied
	// whatever the actions are.
	Misconfigured
	// Skip says that a condition of the policy keeps it from judging.
	Skip
	// Annotation carries an audit annotation and nothing else.
	Annotation
	// NotMatched says that the policy, or its binding, is not about the
	// request; Message is the first reason.
	NotMatched
	// Refused says that an audit annotation is of a type that cannot be shown. The
	// request is denied, whatever failurePolicy and actions are: see Validate in
	// k8s.io/apiserver/pkg/admission/plugin/policy/validating.
	Refused
	// Mutated says that a rule changes the object of the request into Object. It
	// decides nothing; Message, if there is one, is a warning for the caller.
	Mutated
)

// Finding is what one rule of a policy says about one request. It is a
// statement of fact: failurePolicy and actions are not applied to it yet.
type Finding struct {
	Kind Kind
	// Rule is the field of the policy, for example "validations[0]".
	Rule       string
	Expression string
	// Index is the place of the rule among the rules of the policy.
	Index   int
	Message string
	// Reason is empty for Invalid.
	Reason metav1.StatusReason
	// Key and Value are set for an Annotation; Key has no prefix.
	Key, Value string
	// Object is that of the request after a rule that has Mutated it. It shares what
	// the rule left alone with the object before, and must not be modified.
	Object *unstructured.Unstructured
	// Trace is set only where an explanation was asked for.
	Trace *Trace
}

// Trace says how a rule came to its finding.
type Trace struct {
	// Values holds what the parts of the expression were, as JSON, by the text of
	// the part. Large values are cut, and what the asker may not read is
	// replaced by a text that says so.
	Values map[string]json.RawMessage
	// Cost is in units of the CEL cost model.
	Cost uint64
	// Took is the time that the rule needed.
	Took time.Duration
	// Concealed says what the asker may not read although the texts of the finding,
	// its message or its value, may tell it. It is empty when they may be shown.
	Concealed string
}

// Shown returns text, which is one of those of the finding, or what stands for it
// where the asker may not read what it may tell.
func (f *Finding) Shown(text string) string {
	if text == "" || f.Trace == nil || f.Trace.Concealed == "" {
		return text
	}
	return "(concealed: " + f.Trace.Concealed + ")"
}

// FailurePolicy says whether errors count. The zero value is FailClosed.
type FailurePolicy uint8

const (
	// FailClosed makes an error count.
	FailClosed FailurePolicy = iota
	// Ignore lets the request pass where a policy cannot be judged.
	Ignore
)

// Action is what a failure leads to.
type Action uint8

const (
	// Deny rejects the request. It is the zero value.
	Deny Action = iota
	// Warn tells the client.
	Warn
	// Audit tells the audit log.
	Audit
)

// PolicyID names a policy or a binding of our group.
type PolicyID struct{ Kind, Namespace, Name string }

// display is the name of a policy as messages show it.
func (id PolicyID) display() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// ParamRef names the param that a policy was judged with, or another object that it has
// read. Without a name it stands for all objects of the namespace, or of all namespaces.
type ParamRef struct{ APIVersion, Kind, Namespace, Name string }

// Origin says through what a policy came to its findings. Requests share it, and
// nobody may modify it.
type Origin struct {
	Policy  PolicyID
	Binding string
	Param   *ParamRef
	OnError FailurePolicy
	Actions []Action
	// Mutates says that the policy changes objects, and does not judge.
	Mutates bool
}

// Step is one Finding with its place in the run.
type Step struct {
	Origin
	// Took is that of Evaluation.
	Took    time.Duration
	Finding Finding
}
