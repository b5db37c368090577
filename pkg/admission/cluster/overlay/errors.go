// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ObjectError is what is wrong with one of the objects given to New.
type ObjectError struct {
	// Index is the place of the object among those given.
	Index int
	// SameAs is the index of the earlier object with the same kind, namespace
	// and name. It has a meaning only where the type of Err is
	// field.ErrorTypeDuplicate.
	SameAs int
	// Err says what is wrong; its field is relative to the object.
	Err *field.Error
}

func (e *ObjectError) Error() string {
	return e.At(field.NewPath("objects")).Error()
}

// Unwrap returns the error without its place.
func (e *ObjectError) Unwrap() error { return e.Err }

// At returns the error as one of the list of objects at path.
func (e *ObjectError) At(path *field.Path) *field.Error {
	placed := *e.Err
	placed.Field = path.Index(e.Index).Child(e.Err.Field).String()
	return &placed
}

// Errors is the error of New: all that is wrong, ordered by index.
type Errors []*ObjectError

func (e Errors) Error() string {
	texts := make([]string, 0, len(e))
	for _, one := range e {
		texts = append(texts, one.Error())
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the errors one by one.
func (e Errors) Unwrap() []error {
	all := make([]error, 0, len(e))
	for _, one := range e {
		all = append(all, one)
	}
	return all
}

// maxPlaced bounds the errors that At returns, but for the one that counts the rest.
const maxPlaced = 100

// At returns the errors as those of the list of objects at path, for example
// spec.cluster: the first hundred, and how many more there are.
func (e Errors) At(path *field.Path) field.ErrorList {
	list := make(field.ErrorList, 0, min(len(e), maxPlaced+1))
	for i, one := range e {
		if i == maxPlaced {
			return append(list, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("and %d more faults", len(e)-i)))
		}
		list = append(list, one.At(path))
	}
	return list
}

func (e *Errors) add(index int, errs ...*field.Error) {
	for _, err := range errs {
		*e = append(*e, &ObjectError{Index: index, Err: err})
	}
}
