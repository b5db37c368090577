// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// jsonValue is any JSON of a spec.
type jsonValue = apiextensionsv1.JSON

// maxObjectBytes bounds what a patch may make of an object, which an API server takes
// up to 1.5 MiB of.
const maxObjectBytes = 3 << 20

// mutation is what a rule changes: an overlay, a jsonPatch or a forEach.
type mutation interface {
	// apply returns the changed object, which shares what has not changed with object. Why
	// says why nothing was changed, where a condition of the mutation itself is to blame.
	apply(ctx context.Context, e *evaluation, object map[string]any) (changed map[string]any, why string, err error)
}

// overlay is a patchStrategicMerge.
type overlay struct{ patch *anchor.Overlay }

func (o *overlay) apply(ctx context.Context, e *evaluation, object map[string]any) (map[string]any, string, error) {
	merged, why, err := o.patch.Apply(ctx, e.run, e.variables, object)
	if err != nil {
		return nil, "", fmt.Errorf("patchStrategicMerge: %w", err)
	}
	return merged, why, nil
}

// jsonPatch is a patchesJson6902.
type jsonPatch struct{ patch *jsonpatch.Template }

func (p *jsonPatch) apply(ctx context.Context, e *evaluation, object map[string]any) (map[string]any, string, error) {
	operations, err := p.patch.Render(ctx, e.run, e.variables)
	if err != nil {
		return nil, "", fmt.Errorf("patchesJson6902: %w", err)
	}
	patched, err := e.series.Apply(object, operations, maxObjectBytes)
	if err != nil {
		return nil, "", fmt.Errorf("patchesJson6902: %w", err)
	}
	return patched, "", nil
}

// mutation compiles what a rule changes.
func (c *ruleCompiler) mutation(spec *kyvernov1.Mutation, path *field.Path) mutation {
	if spec == nil {
		return nil
	}
	if len(spec.Targets) > 0 { // a later version may have stored it: the object of the request is not meant
		c.errs = append(c.errs, field.Forbidden(path.Child("targets"), "rules with targets (mutate existing) are not supported yet"))
	}
	if len(spec.ForEach) > 0 {
		return c.forEach(spec.ForEach, path.Child("foreach"))
	}
	return c.patch(spec.PatchStrategicMerge, spec.PatchesJSON6902, c.at("mutate"), path)
}

// patch compiles one of the two forms of patches. At is the place of the two fields.
func (c *ruleCompiler) patch(strategic *jsonValue, text string, at template.Place, path *field.Path) mutation {
	if strategic != nil {
		at.Path, path = append(at.Path, "patchStrategicMerge"), path.Child("patchStrategicMerge")
		value, err := decodedJSON(strategic)
		if err != nil {
			c.errs = append(c.errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
			return nil
		}
		compiled, faults := anchor.Compile(value, c.templates, at)
		c.faults(faults, path)
		c.uses(compiled.Uses(), path)
		return &overlay{patch: compiled}
	}
	if text == "" {
		return nil
	}
	at.Path, path = append(at.Path, "patchesJson6902"), path.Child("patchesJson6902")
	compiled, faults := jsonpatch.Compile(text, c.templates, at)
	c.faults(faults, path)
	if compiled == nil {
		return nil
	}
	c.uses(compiled.Uses(), path)
	return &jsonPatch{patch: compiled}
}

func decodedJSON(raw *jsonValue) (any, error) {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// decoded returns a part of a spec as decoded JSON.
func decoded(part any) (any, error) {
	raw, err := json.Marshal(part)
	if err != nil {
		return nil, err
	}
	return decodedJSON(&jsonValue{Raw: raw})
}
