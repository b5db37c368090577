// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// Apply returns what the operations make of an object, one after the other. The object
// is not modified: the result shares with it what is unchanged, and is the object itself
// when no operation changes anything. The error is an *OperationError.
//
// What the operations put into the object may take maxBytes in all as JSON, and when one
// of them copies, so may the result.
func Apply(object map[string]any, operations []Operation, maxBytes int) (map[string]any, error) {
	return (&Series{}).Apply(object, operations, maxBytes)
}

// Series applies patches one after the other, each to what the former one has made. What
// it has copied it does not copy again, so that many small changes of a large object take
// no longer than they must.
type Series struct{ owned owned }

// Apply is the function Apply for the next patch. The result of the former one is gone
// then, and after an error all results are.
func (s *Series) Apply(object map[string]any, operations []Operation, maxBytes int) (map[string]any, error) {
	if len(operations) > maxOperations {
		return nil, fmt.Errorf("the patch has %d operations, at most %d are taken", len(operations), maxOperations)
	}
	a := &application{root: object, maxBytes: maxBytes, left: maxBytes, owned: &s.owned}
	for i := range operations {
		o := &operations[i]
		if err := a.apply(o); err != nil {
			return nil, &OperationError{Index: i, Op: o.Op, Path: o.Path, Err: err}
		}
	}
	return a.root, nil
}

// Release lets the last result be kept: no later Apply changes it.
func (s *Series) Release() { s.owned.forget() }

// application is one application of a patch.
type application struct {
	root map[string]any
	// maxBytes is what the result may take when it holds copies of itself.
	maxBytes int
	// left is what may still be put into the object.
	left int

	owned *owned
}

func (a *application) apply(o *Operation) error {
	path, from, err := o.tokens()
	if err != nil {
		return err
	}
	if len(path) == 0 {
		return a.applyToRoot(o)
	}
	switch o.Op {
	case opAdd:
		if err := a.spend(o.Value, len(path)); err != nil {
			return err
		}
		return a.change(path, &change{creates: true, leaf: a.add(o.Value)})
	case opReplace:
		if err := a.spend(o.Value, len(path)); err != nil {
			return err
		}
		return a.change(path, &change{leaf: a.replace(o.Value)})
	case opRemove:
		return a.change(path, &change{tolerant: true, leaf: a.remove})
	case opMove:
		return a.move(from, path)
	case opCopy:
		return a.copy(from, path)
	case opTest:
		return a.test(path, o.Value)
	}
	return fmt.Errorf("there is no operation %q", excerpt(o.Op))
}

// applyToRoot applies an operation on the object as a whole, which Kyverno's policies
// can only have in foreach. The library lets nothing remove it, and neither do we.
func (a *application) applyToRoot(o *Operation) error {
	switch o.Op {
	case opAdd, opReplace:
		object, ok := o.Value.(map[string]any)
		if !ok {
			return errNoObject
		}
		if err := a.spend(object, 0); err != nil {
			return err
		}
		a.root = object
		return nil
	case opTest:
		if !patch.Equal(a.root, o.Value) {
			return errNotEqual
		}
		return nil
	case opRemove:
		return nil
	}
	return errWholeMove
}

// tokens returns the names and indices in the paths of an operation.
func (o *Operation) tokens() (path, from []string, err error) {
	if o.path != nil {
		return o.path, o.from, nil
	}
	split, err := newOperation(o.Op, o.Path, o.From, o.Value)
	return split.path, split.from, err
}

// spend takes the size of a value that is put at a depth from what is left.
func (a *application) spend(value any, depth int) error {
	size, ok := patch.Size(value, a.left, maxDepth-depth)
	if !ok {
		if _, small := patch.Size(value, a.left, a.left); small {
			return errValueDeep
		}
		return errTooLarge
	}
	a.left -= size
	return nil
}

// move takes a value away and puts it elsewhere.
func (a *application) move(from, path []string) error {
	if len(from) == 0 {
		return errWholeMove
	}
	value, err := a.get(from)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if err := a.spend(value, len(path)); err != nil {
		return err
	}
	if err := a.change(from, &change{leaf: a.remove}); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	return a.change(path, &change{leaf: a.add(value)})
}

// copy puts a value in a second place. Both share it from then on, so that nothing in it
// may be changed in place any more.
func (a *application) copy(from, path []string) error {
	value, err := a.get(from)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if err := a.spend(value, len(path)); err != nil {
		return err
	}
	a.owned.forget()
	if err := a.change(path, &change{leaf: a.add(value)}); err != nil {
		return err
	}
	if _, ok := patch.Size(a.root, a.maxBytes, a.maxBytes); !ok {
		return errTooLarge
	}
	return nil
}

// test compares. A field that is missing is null, as in the library.
func (a *application) test(path []string, want any) error {
	value, err := a.get(path)
	if err == errMissing && want == nil { //nolint:errorlint // It is never wrapped.
		return nil
	}
	if err != nil {
		return err
	}
	if !patch.Equal(value, want) {
		return errNotEqual
	}
	return nil
}

// get returns the value at a path. The error is errMissing when the parent is an object
// without such a field.
func (a *application) get(path []string) (any, error) {
	var node any = a.root
	for i, token := range path {
		switch parent := node.(type) {
		case map[string]any:
			value, ok := parent[token]
			if !ok && i == len(path)-1 {
				return nil, errMissing
			}
			node = value
		case []any:
			index, err := existing(parent, token)
			if err != nil {
				return nil, err
			}
			node = parent[index]
		default:
			return nil, errNoParent
		}
	}
	return node, nil
}
