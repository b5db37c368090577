// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anchor applies the overlays of Kyverno's patchStrategicMerge: strategic merge
// patches whose keys may be anchors. (key) and <(key) are conditions, and +(key) adds
// what is not there. It follows PreProcessPattern of Kyverno's
// pkg/engine/mutate/patch, in three steps: an overlay is compiled once to a tree, the
// tree is judged against an object, of which comes a plain patch, and the patch is
// merged. What the values of conditions mean, what variables stand for and how patches
// are merged other packages know.
//
// A condition that is not met ends the whole overlay, but below an element of a list
// only that element. An element with anchors anywhere in it is a patch for the elements
// of the object that meet its conditions, each judged on its own. It never adds one, and
// if it has a merge key it is only for elements with this key. Such an element with a
// global condition patches nothing: it asks that any element of the object passes.
package anchor

import (
	"context"
	"errors"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/merge"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

var errNoObject = errors.New("the overlay must be an object")

// Overlay is a compiled overlay. It is immutable and safe for concurrent use.
type Overlay struct {
	root part
	uses []template.Use
}

// Compile compiles an overlay, which is decoded JSON with variables. All faults are
// reported at once; the overlay is usable even then, and fails where they are.
func Compile(value any, c *template.Compiler, at template.Place) (*Overlay, []template.Fault) {
	b := builder{templates: c, at: at, strict: true}
	o := &Overlay{root: b.part(value, nil)}
	if literal, ok := o.root.(*literal); ok {
		if _, ok := literal.value.(map[string]any); !ok {
			b.fail(nil, errNoObject)
		}
	} else if _, ok := o.root.(*list); ok {
		b.fail(nil, errNoObject)
	}
	o.uses = b.uses
	return o, b.faults
}

// Uses returns where the names of variables stand, as far as they are known before a
// request. Nobody may modify the result.
func (o *Overlay) Uses() []template.Use { return o.uses }

// Apply returns an object with the overlay merged into it. It shares with the object
// what has not changed, and is the object itself when nothing has. Skipped says which
// condition nothing was done for; it holds no values of the object.
func (o *Overlay) Apply(ctx context.Context, run *jmespath.Run, scope jmespath.Scope, object map[string]any) (changed map[string]any, skipped string, err error) {
	root, err := o.root.resolve(ctx, &rendering{run: run, scope: scope})
	if err != nil {
		return nil, "", err
	}
	j := judgement{run: run}
	judged, err := j.value(ctx, root, object, merge.Schema{})
	switch {
	case err != nil:
		return nil, "", err
	case judged.unmet.why != met:
		return object, judged.unmet.String(), nil
	case judged.none:
		return object, j.missed.String(), nil
	}
	if _, ok := judged.patch.(map[string]any); !ok {
		return nil, "", errNoObject
	}
	changed, err = merge.Merge(object, judged.patch)
	if err != nil {
		return nil, "", err
	}
	if j.missed.why != met && patch.Equal(object, changed) {
		return object, j.missed.String(), nil
	}
	return changed, "", nil
}
