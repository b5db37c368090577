// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
)

// webhookStrategy is the strategy of conversion by a webhook.
const webhookStrategy = "Webhook"

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	scaleKind      = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
)

// definition is a CustomResourceDefinition. Its schemas are looked at when they
// are asked for.
type definition struct {
	Spec   definitionSpec
	source *unstructured.Unstructured
	// structurals return the schemas of the versions, by which objects are pruned
	// and defaulted, or nil. They are made once, when they are first asked for.
	structurals map[string]func() (*structuralschema.Structural, error)
}

// definitionSpec is the part that says which resources there are.
type definitionSpec struct {
	Group string `json:"group"`
	Names struct {
		Plural   string `json:"plural"`
		Singular string `json:"singular"`
		Kind     string `json:"kind"`
	} `json:"names"`
	Scope      string              `json:"scope"`
	Versions   []definitionVersion `json:"versions"`
	Conversion struct {
		Strategy string `json:"strategy"`
	} `json:"conversion"`
	PreserveUnknownFields bool `json:"preserveUnknownFields"`
}

type definitionVersion struct {
	Name         string `json:"name"`
	Served       bool   `json:"served"`
	Storage      bool   `json:"storage"`
	Subresources struct {
		Status *struct{} `json:"status"`
		Scale  *struct{} `json:"scale"`
	} `json:"subresources"`
}

// newDefinition reads a CustomResourceDefinition. It finds the faults for which
// no resource could be served; the rules are those of
// k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation.
func newDefinition(obj *unstructured.Unstructured) (*definition, field.ErrorList) {
	var given struct {
		Spec definitionSpec `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &given); err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("kind"), obj.GetKind(), "the object cannot be read as a CustomResourceDefinition: "+err.Error())}
	}
	d := &definition{Spec: given.Spec, source: obj, structurals: map[string]func() (*structuralschema.Structural, error){}}
	for _, version := range d.Spec.Versions {
		d.structurals[version.Name] = sync.OnceValues(func() (*structuralschema.Structural, error) {
			if d.Spec.PreserveUnknownFields {
				return nil, nil //nolint:nilnil // Objects are then left as they are.
			}
			return d.structural(version.Name)
		})
	}
	spec := field.NewPath("spec")
	var errs field.ErrorList
	need := func(at *field.Path, value, advice string) {
		if value == "" {
			errs = append(errs, field.Required(at, advice))
		}
	}
	need(spec.Child("group"), d.Spec.Group, "name the API group")
	need(spec.Child("names", "plural"), d.Spec.Names.Plural, "name the resource, for example gadgets")
	need(spec.Child("names", "kind"), d.Spec.Names.Kind, "name the kind, for example Gadget")
	if want := d.Spec.Names.Plural + "." + d.Spec.Group; len(errs) == 0 && obj.GetName() != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), fmt.Sprintf("must be %q: spec.names.plural and spec.group", want)))
	}
	if scopes := []string{"Cluster", "Namespaced"}; !slices.Contains(scopes, d.Spec.Scope) {
		errs = append(errs, field.NotSupported(spec.Child("scope"), d.Spec.Scope, scopes))
	}
	if strategies := []string{"None", webhookStrategy}; d.Spec.Conversion.Strategy != "" && !slices.Contains(strategies, d.Spec.Conversion.Strategy) {
		errs = append(errs, field.NotSupported(spec.Child("conversion", "strategy"), d.Spec.Conversion.Strategy, strategies))
	}
	return d, append(errs, d.inspectVersions(spec.Child("versions"))...)
}

func (d *definition) inspectVersions(at *field.Path) field.ErrorList {
	if len(d.Spec.Versions) == 0 {
		return field.ErrorList{field.Required(at, "list at least one version")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	stored := 0
	for i, version := range d.Spec.Versions {
		switch {
		case version.Name == "":
			errs = append(errs, field.Required(at.Index(i).Child("name"), "name the version, for example v1"))
		case names.Has(version.Name):
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), version.Name))
		}
		names.Insert(version.Name)
		if version.Storage {
			stored++
		}
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(at, stored, "exactly one version must have storage: true"))
	}
	return errs
}

func (d *definition) kind() schema.GroupKind {
	return schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

func (d *definition) resource() schema.GroupResource {
	return schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}
}

// resources returns the versions in the order of the definition, in which
// apiextensions-apiserver registers them as equivalents of each other.
func (d *definition) resources() []discovery.Resource {
	var all []discovery.Resource
	for _, version := range d.Spec.Versions {
		kind := d.kind().WithVersion(version.Name)
		subresources := map[string]schema.GroupVersionKind{}
		if version.Subresources.Status != nil {
			subresources["status"] = kind
		}
		if version.Subresources.Scale != nil {
			subresources["scale"] = scaleKind
		}
		all = append(all, discovery.Resource{
			Resource:     d.resource().WithVersion(version.Name),
			Kind:         kind,
			Singular:     d.Spec.Names.Singular,
			Namespaced:   d.Spec.Scope == "Namespaced",
			Unserved:     !version.Served,
			Subresources: subresources,
		})
	}
	return all
}

// conflicts finds resources and kinds that another one has taken. owner names
// the definitions that are laid over together with d.
func (b *builder) conflicts(d *definition, owner map[schema.GroupKind]string) field.ErrorList {
	at := field.NewPath("spec", "names", "kind")
	if builtin.Table().HasResource(d.resource()) || builtin.Table().HasKind(d.kind()) {
		return field.ErrorList{field.Invalid(at, d.Spec.Names.Kind, "kube-apiserver serves the kind itself; remove the CustomResourceDefinition")}
	}
	if other, taken := owner[d.kind()]; taken {
		return field.ErrorList{field.Invalid(at, d.Spec.Names.Kind, fmt.Sprintf("CustomResourceDefinition %s defines the kind too; keep one of them", other))}
	}
	mappings, err := b.base.Mapper().RESTMappings(d.kind())
	if err != nil && !meta.IsNoMatchError(err) {
		return field.ErrorList{field.InternalError(at, err)}
	}
	for _, mapping := range mappings {
		if taken := mapping.Resource.GroupResource(); taken != d.resource() {
			return field.ErrorList{field.Invalid(at, d.Spec.Names.Kind, fmt.Sprintf("%s has the kind already; choose another one", taken))}
		}
	}
	return nil
}

// convert returns the object in another version, as the converters of
// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion do for the strategy
// None.
func (d *definition) convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if err := d.convertible(obj.GroupVersionKind(), to); err != nil {
		return nil, err
	}
	fields := maps.Clone(obj.Object)
	fields["apiVersion"] = to.GroupVersion().String()
	return &unstructured.Unstructured{Object: fields}, nil
}

// convertible returns why an object cannot be converted, or nil.
func (d *definition) convertible(from, to schema.GroupVersionKind) error {
	switch {
	case to.GroupKind() != d.kind() || !d.has(from.Version) || !d.has(to.Version):
		return fmt.Errorf("unable to convert %v to %v: the CustomResourceDefinition of %s has no such versions", from, to, d.resource())
	case d.Spec.Conversion.Strategy == webhookStrategy:
		return fmt.Errorf("unable to convert %v to %v: the conversion webhook is not called; the object that the API server converted is needed", from, to)
	default:
		return nil
	}
}

// storage returns the version of storage. There is exactly one.
func (d *definition) storage() string {
	i := slices.IndexFunc(d.Spec.Versions, func(v definitionVersion) bool { return v.Storage })
	return d.Spec.Versions[i].Name
}

// kindBelow returns the kind in which objects are taken from a view that serves
// their kind in the versions of mappings: that of storage, in which this
// definition would find them; or the one in which they are asked for.
func (d *definition) kindBelow(asked schema.GroupVersionKind, mappings []*meta.RESTMapping) schema.GroupVersionKind {
	serves := func(kind schema.GroupVersionKind) bool {
		return slices.ContainsFunc(mappings, func(m *meta.RESTMapping) bool { return m.GroupVersionKind == kind })
	}
	stored := d.kind().WithVersion(d.storage())
	switch {
	case d.Spec.Conversion.Strategy != webhookStrategy && serves(stored):
		return stored
	case serves(asked):
		return asked
	default:
		return mappings[0].GroupVersionKind
	}
}

func (d *definition) has(version string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v definitionVersion) bool { return v.Name == version })
}
