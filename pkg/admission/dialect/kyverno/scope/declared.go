// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

const (
	// maxSize is how large the values of all entries together may become, as JSON. It is
	// that of Kyverno's pkg/engine/context.
	maxSize = 2 << 20
	// maxNesting is how many entries may wait for one another.
	maxNesting = 64
)

var (
	errSize    = fmt.Errorf("the values of the context are larger than %d bytes together: let a jmesPath choose what is needed", maxSize)
	errNesting = fmt.Errorf("more than %d entries of the context depend on one another in a row", maxNesting)
	// errRefused is in the errors of what is never asked, whatever default there is.
	errRefused = errors.New("not allowed here")
)

// declaration is an entry that rules and iterations see now.
type declaration struct {
	entry *Entry
	// elements is how many elements there were when it was declared.
	elements int
	asked    bool
	value    any
	err      error
	size     int
}

// lookup returns the value of a name among the first entries that are declared. The last
// of the name counts; those before it are evaluated, too, and their errors are its
// errors, as in Kyverno's pkg/engine/context (deferred.go), which loads all of a name.
// An entry never sees itself or one after it: there are no cycles.
func (v *Variables) lookup(ctx context.Context, name string, among int) (value any, ok bool, err error) {
	if err := v.run.Spend(ctx, 1+among/8, 0); err != nil {
		return nil, false, err
	}
	for i := range among {
		if v.declared[i].entry.name != name {
			continue
		}
		if !v.declared[i].asked {
			v.evaluate(ctx, i)
		}
		if err := v.declared[i].err; err != nil {
			return nil, false, err
		}
		value, ok = v.declared[i].value, true
	}
	return value, ok, nil
}

// evaluate finds the value of a declared entry.
func (v *Variables) evaluate(ctx context.Context, place int) {
	d := &v.declared[place]
	if v.nesting >= maxNesting {
		d.err = errNesting
	} else {
		v.nesting++
		d.value, d.err = d.entry.source.value(ctx, horizon{v: v, declared: place, elements: d.elements})
		v.nesting--
	}
	if d.err == nil {
		d.size, d.err = v.measure(ctx, d.value)
	}
	if d.err != nil {
		d.value, d.err = nil, failure(d.entry.name, d.err)
	}
	v.size += d.size
	d.asked = true
}

// failure returns the error of a variable. A field that is missing somewhere in an entry
// must not look as if the variable itself were missing: an expression may stand for that.
func failure(name string, err error) error {
	var missing *jmespath.NotFoundError
	if errors.As(err, &missing) {
		return fmt.Errorf("context entry %q: %s", name, err.Error())
	}
	return fmt.Errorf("context entry %q: %w", name, err)
}

// lasts says whether no default may stand for an error.
func lasts(ctx context.Context, err error) bool {
	return errors.Is(err, jmespath.ErrBudget) || errors.Is(err, errSize) || errors.Is(err, errNesting) ||
		errors.Is(err, errRefused) || ctx.Err() != nil
}
