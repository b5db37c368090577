// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy is the contract between the chain and the policy languages,
// which are called dialects. It does not know any of them, nor the stored
// kinds, nor where compiled policies are kept.
package policy

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// A Dialect compiles the stored kinds of one policy language. It is a pure
// function: it has no state and never reads the cluster.
type Dialect interface {
	// Name is short, lower case and unique, for example "cel".
	Name() string
	// Kinds are the internal kinds of our group that Compile takes, policies
	// and bindings.
	Kinds() []string
	// Compile prepares one stored object for use. All faults are reported at
	// once, each at its field path. The unit is usable even then: a policy
	// whose expressions do not compile reports that as findings for the
	// requests that it matches. The unit is nil only for an object that is not
	// of Kinds.
	Compile(ctx context.Context, obj runtime.Object) (*Unit, field.ErrorList)
}

// OriginRequest is the Origin of faults that concern only the requests that come to
// them: the unit does all else. A write is refused for them, as for others; a preview
// shows what they lead to.
const OriginRequest = "request"

// ID names a stored object. Kind is a kind of our group.
type ID = verdict.PolicyID

// Unit is one compiled stored object: a policy or a binding. Exactly one of
// Policy and Binding is set.
type Unit struct {
	ID      ID
	Policy  *Policy
	Binding *Binding
	// Warnings are what the writer should know beside the faults. They are bounded in
	// number and length.
	Warnings []string
}

// Policy is the compiled form of a policy. It is immutable.
type Policy struct {
	Criteria *match.Criteria
	Program  Program
	// OnError is the failurePolicy.
	OnError verdict.FailurePolicy
	// Mutates says that the program changes objects: it is asked before the programs
	// that judge, which see what has become of the object.
	Mutates bool
	// Reads are what the program reads of the cluster by itself, params apart. Whoever
	// writes the policy must have the right to each of them.
	Reads []Read
	// NeedsBinding says that the policy judges only through bindings.
	NeedsBinding bool
	// ParamKind is nil for a policy that takes no params.
	ParamKind *schema.GroupVersionKind
}

// Read is something that a program may read of the cluster. An empty Name, Namespace,
// Group, Version or Resource stands for any: a policy whose variables say what is read can
// read all of it.
type Read struct {
	// Field is where the policy says so.
	Field *field.Path
	// Verb is get or list, or create for a review that the API server answers and
	// forgets.
	Verb        string
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	Name        string
}

// Binding is the compiled form of a binding. It is immutable.
type Binding struct {
	// Policy is the policy that the binding puts in force.
	Policy   ID
	Criteria *match.Criteria
	// Params is nil for a binding that gives no params.
	Params  *Params
	Actions []verdict.Action
}

// Params says which objects a policy is judged with through a binding.
type Params struct {
	Name      string
	Selector  labels.Selector // used when Name is empty
	Err       error           // a selector that cannot be used
	Namespace string          // empty: that of the request, for namespaced kinds
	// AllowAbsent lets a request pass the binding when nothing is selected;
	// otherwise that is an error.
	AllowAbsent bool
}

// A Program judges requests. It is safe for concurrent use.
type Program interface {
	// Evaluate returns what the policy has to say about the request, in rule
	// order: facts, to which failurePolicy and actions are applied later. It
	// never modifies its input and stops when ctx ends. What it returns follows
	// from the input, is shared and must not be modified: a request is asked about
	// once, however many bindings give the same param.
	Evaluate(ctx context.Context, in Input) []verdict.Finding
}

// A Resting program can put away what it is able to make again, so that memory and
// the garbage collector carry the policies that are in use and not all of them.
type Resting interface {
	Program
	// Rest puts that away unless a request has needed it since the last call. It
	// may be called while requests are judged, and changes nothing but how long the
	// next one takes.
	Rest()
}

// A Selective program can tell with little work that a request is not for it.
type Selective interface {
	Program
	// Selects is false only if Evaluate would find nothing but NotMatched, whatever the
	// cluster holds. The chain then does not ask the program, unless someone wants to
	// know why.
	Selects(req *request.Request) bool
}

// Input is everything that a program may look at.
type Input struct {
	Request *request.Request
	// Matched is the resource and the kind under which the policy matched. It
	// differs from those of the request when an equivalent resource matched.
	Matched cluster.Equivalent
	// Param is nil when the policy takes none or the binding gives none.
	Param *unstructured.Unstructured
	View  cluster.View
	// Explain is nil unless someone asks how the policy comes to its findings:
	// those about a rule then have a trace, as far as there is room. It never
	// changes what is found; only the message of a NotMatched, which decides
	// nothing, may be left out when nobody asks.
	Explain *Explain
}

// Explain says what an explanation may show.
type Explain struct {
	// MayRead says whether the asker may get an object. What lies in a param or in
	// the Namespace of the request that they may not get is concealed, and so is
	// the data of a Secret that the request itself carries: no value shows it, and
	// the trace of a finding says when its texts may. A nil MayRead conceals all.
	MayRead func(ctx context.Context, ref verdict.ParamRef) bool
}
