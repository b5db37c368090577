// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Variables are those of one policy that looks at one request. They are a
// jmespath.Scope: what a rule, or an iteration of a foreach, sees at the time. They are
// not safe for concurrent use.
type Variables struct {
	in       policy.Input
	run      *jmespath.Run
	noRoles  bool
	object   *unstructured.Unstructured
	request  map[string]any // nil until it is asked for
	roles    *roleNames     // nil until they are asked for
	images   *images        // nil until they are asked for
	elements []element
	declared []declaration
	// nesting is the number of entries that are being evaluated.
	nesting int
	// size is that of the values of all entries.
	size  int
	read  []verdict.ParamRef
	known map[verdict.ParamRef]bool // what is in read
}

var (
	_ jmespath.Scope = (*Variables)(nil)
	_ jmespath.Scope = horizon{}
)

// element is what one level of a foreach is at.
type element struct {
	value any
	index int64
}

// New returns the variables for a policy that looks at in. What they spend is of run.
func New(in policy.Input, run *jmespath.Run) *Variables {
	return &Variables{in: in, run: run, object: in.Request.Object}
}

// WithoutRoles says that no expression asks for request.roles and request.clusterRoles:
// they are absent then, and the role bindings of the cluster are not read, which happens
// otherwise when an expression first asks for request. See AsksRoles.
func (v *Variables) WithoutRoles() { v.noRoles = true }

// SetObject makes object what request.object stands for from now on. Entries that have
// been asked for keep their values, and images are those of the object that came.
func (v *Variables) SetObject(object *unstructured.Unstructured) {
	v.object, v.request = object, nil
}

// Begin lets a rule or an iteration begin that declares entries, and returns what ends
// it. What has begun last ends first. The entries see the elements that there are now.
func (v *Variables) Begin(entries []*Entry) (end func()) {
	first := len(v.declared)
	for _, entry := range entries {
		v.declared = append(v.declared, declaration{entry: entry, elements: len(v.elements)})
	}
	return func() {
		for i := first; i < len(v.declared); i++ {
			v.size -= v.declared[i].size
		}
		v.declared = v.declared[:first]
	}
}

// Push makes value the element of a foreach, at an index of its list, and returns what
// ends that. As in Kyverno, element is that of the innermost foreach, and element0 that of
// the outermost.
func (v *Variables) Push(value any, index int) (pop func()) {
	count := len(v.elements)
	v.elements = append(v.elements, element{value: value, index: int64(index)})
	return func() { v.elements = v.elements[:count] }
}

// Read returns what has been read of the cluster so far, in order. A list has no name,
// and no namespace when it is of all namespaces.
func (v *Variables) Read() []verdict.ParamRef { return v.read }

// readSteps is what a look into the cluster takes, about.
const readSteps = 100

// reads notes that something is going to be read, and spends what that takes.
func (v *Variables) reads(ctx context.Context, ref verdict.ParamRef) error {
	if !v.known[ref] {
		if v.known == nil {
			v.known = map[verdict.ParamRef]bool{}
		}
		v.known[ref] = true
		v.read = append(v.read, ref)
	}
	return v.run.Spend(ctx, readSteps, mapEntrySize)
}

// Field implements jmespath.Scope.
func (v *Variables) Field(ctx context.Context, name string) (any, bool, error) {
	return v.horizon().Field(ctx, name)
}

// Object implements jmespath.Scope. Of the entries it has those that have been asked for.
func (v *Variables) Object(ctx context.Context) (map[string]any, error) {
	return v.horizon().Object(ctx)
}

// horizon is what a rule or an iteration sees.
func (v *Variables) horizon() horizon {
	return horizon{v: v, declared: len(v.declared), elements: len(v.elements)}
}
