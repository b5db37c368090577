// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import "k8s.io/kube-openapi/pkg/validation/spec"

// Extensions of schemas, see k8s.io/apiserver/pkg/cel/openapi.
const (
	intOrString           = "x-kubernetes-int-or-string"
	preserveUnknownFields = "x-kubernetes-preserve-unknown-fields"
)

// mend returns a copy of a schema in which what CEL cannot tell the type of is of
// any type. Upstream leaves it out, with all that contains it, and then finds that
// such a field is not defined: the limits of a container, whose quantities are
// texts or numbers, and whatever may have further fields.
func mend(schema *spec.Schema) *spec.Schema {
	if schema == nil {
		return nil
	}
	mended := *schema
	if unknown, _ := schema.Extensions.GetBool(preserveUnknownFields); unknown || len(schema.Type) == 0 {
		mended.Extensions = spec.Extensions{intOrString: true} // of which anything may come
		return &mended
	}
	if schema.Properties != nil {
		mended.Properties = make(map[string]spec.Schema, len(schema.Properties))
		for name := range schema.Properties {
			property := schema.Properties[name]
			mended.Properties[name] = *mend(&property)
		}
	}
	if items := schema.Items; items != nil {
		mended.Items = &spec.SchemaOrArray{Schema: mend(items.Schema)}
	}
	if further := schema.AdditionalProperties; further != nil && further.Schema != nil {
		mended.AdditionalProperties = &spec.SchemaOrBool{Allows: further.Allows, Schema: mend(further.Schema)}
	}
	return &mended
}
