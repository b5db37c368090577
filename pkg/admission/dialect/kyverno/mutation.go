// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jsonpatch"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/merge"
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
	// apply returns the changed object, which shares what has not changed with object.
	apply(ctx context.Context, e *evaluation, object map[string]any) (map[string]any, error)
}

// overlay is a patchStrategicMerge.
type overlay struct{ patch *template.Template }

func (o *overlay) apply(ctx context.Context, e *evaluation, object map[string]any) (map[string]any, error) {
	rendered, err := o.patch.Render(ctx, e.run, e.variables)
	if err != nil {
		return nil, fmt.Errorf("patchStrategicMerge: %w", err)
	}
	merged, err := merge.Merge(object, rendered)
	if err != nil {
		return nil, fmt.Errorf("patchStrategicMerge: %w", err)
	}
	return merged, nil
}

// jsonPatch is a patchesJson6902.
type jsonPatch struct{ patch *jsonpatch.Template }

func (p *jsonPatch) apply(ctx context.Context, e *evaluation, object map[string]any) (map[string]any, error) {
	operations, err := p.patch.Render(ctx, e.run, e.variables)
	if err != nil {
		return nil, fmt.Errorf("patchesJson6902: %w", err)
	}
	patched, err := jsonpatch.Apply(object, operations, maxObjectBytes)
	if err != nil {
		return nil, fmt.Errorf("patchesJson6902: %w", err)
	}
	return patched, nil
}

// mutation compiles what a rule changes.
func (c *ruleCompiler) mutation(spec *kyvernov1.Mutation, path *field.Path) mutation {
	if spec == nil {
		return nil
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
		c.anchors(value, path)
		compiled, faults := c.templates.Value(value, at)
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

// anchors refuses the anchors of an overlay, which are not understood yet: merged as
// they stand, they would be written into objects.
func (c *ruleCompiler) anchors(value any, path *field.Path) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if isAnchor(key) {
				c.errs = append(c.errs, field.Forbidden(path.Key(key), "anchors are not supported yet: use preconditions, foreach or patchesJson6902"))
				continue
			}
			c.anchors(child, path.Child(key))
		}
	case []any:
		for i, child := range value {
			c.anchors(child, path.Index(i))
		}
	}
}

func isAnchor(key string) bool {
	opening := strings.IndexByte(key, '(')
	return opening >= 0 && opening <= 1 && strings.HasSuffix(key, ")") && (opening == 0 || strings.ContainsRune("+<=^X", rune(key[0])))
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
