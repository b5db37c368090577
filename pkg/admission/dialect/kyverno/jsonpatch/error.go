// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"errors"
	"fmt"
)

var (
	errNoSlash   = errors.New("must begin with a slash")
	errTooDeep   = fmt.Errorf("leads deeper than %d levels", maxDepth)
	errMissing   = errors.New("there is nothing at this path")
	errNoParent  = errors.New("the parent of this path is missing")
	errNotEqual  = errors.New("what stands there is not the value that it is tested for")
	errNoObject  = errors.New("an object can only become an object")
	errWholeMove = errors.New("the whole object cannot be moved, nor anything be moved or copied to its place")
	errTooLarge  = errors.New("the object would become too large")
	errValueDeep = fmt.Errorf("the object would be nested deeper than %d levels", maxDepth)
)

// OperationError is why an operation of a patch could not be applied.
type OperationError struct {
	// Index is that of the operation in the patch.
	Index    int
	Op, Path string
	Err      error
}

// Error implements error.
func (e *OperationError) Error() string {
	return fmt.Sprintf("operation %d, %s %s: %v", e.Index, e.Op, excerpt(e.Path), e.Err)
}

// Unwrap returns the reason alone.
func (e *OperationError) Unwrap() error { return e.Err }
