// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/definition"
)

// conflicts finds resources and kinds that another one has taken. owner names
// the definitions that are laid over together with d.
func (b *builder) conflicts(d *definition.Definition, owner map[schema.GroupKind]string) field.ErrorList {
	at := field.NewPath("spec", "names", "kind")
	if builtin.Table().HasResource(d.Resource()) || builtin.Table().HasKind(d.Kind()) {
		return field.ErrorList{field.Invalid(at, d.Kind().Kind, "kube-apiserver serves the kind itself; remove the CustomResourceDefinition")}
	}
	if other, taken := owner[d.Kind()]; taken {
		return field.ErrorList{field.Invalid(at, d.Kind().Kind, fmt.Sprintf("CustomResourceDefinition %s defines the kind too; keep one of them", other))}
	}
	mappings, err := b.base.Mapper().RESTMappings(d.Kind())
	if err != nil && !meta.IsNoMatchError(err) {
		return field.ErrorList{field.InternalError(at, err)}
	}
	for _, mapping := range mappings {
		if taken := mapping.Resource.GroupResource(); taken != d.Resource() {
			return field.ErrorList{field.Invalid(at, d.Kind().Kind, fmt.Sprintf("%s has the kind already; choose another one", taken))}
		}
	}
	return nil
}
