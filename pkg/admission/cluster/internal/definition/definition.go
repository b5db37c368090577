// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition reads CustomResourceDefinitions: which resources they define,
// how objects are converted between the versions, and what an API server makes of an
// object by the schemas. It does not know where definitions and objects come from, and
// calls no conversion webhook.
package definition

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

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
)

// webhookStrategy is the strategy of conversion by a webhook.
const webhookStrategy = "Webhook"

var (
	// Kind is the kind of the objects that New reads.
	Kind      = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
)

// Definition is a CustomResourceDefinition. Its schemas are looked at when they
// are asked for.
type Definition struct {
	spec   specification
	source *unstructured.Unstructured
	// structurals return the schemas of the versions, by which objects are pruned
	// and defaulted, or nil. They are made once, when they are first asked for.
	structurals map[string]func() (*structuralschema.Structural, error)
}

// specification is the part that says which resources there are.
type specification struct {
	Group string `json:"group"`
	Names struct {
		Plural   string `json:"plural"`
		Singular string `json:"singular"`
		Kind     string `json:"kind"`
	} `json:"names"`
	Scope      string        `json:"scope"`
	Versions   []specVersion `json:"versions"`
	Conversion struct {
		Strategy string `json:"strategy"`
	} `json:"conversion"`
	PreserveUnknownFields bool `json:"preserveUnknownFields"`
}

type specVersion struct {
	Name         string `json:"name"`
	Served       bool   `json:"served"`
	Storage      bool   `json:"storage"`
	Subresources struct {
		Status *struct{} `json:"status"`
		Scale  *struct{} `json:"scale"`
	} `json:"subresources"`
}

// New reads a CustomResourceDefinition, which it does not modify and which must not
// change. It finds the faults for which no resource could be served; the rules are those of
// k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation.
func New(obj *unstructured.Unstructured) (*Definition, field.ErrorList) {
	var given struct {
		Spec specification `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &given); err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("kind"), obj.GetKind(), "the object cannot be read as a CustomResourceDefinition: "+err.Error())}
	}
	d := &Definition{spec: given.Spec, source: obj, structurals: map[string]func() (*structuralschema.Structural, error){}}
	for _, version := range d.spec.Versions {
		d.structurals[version.Name] = sync.OnceValues(func() (*structuralschema.Structural, error) {
			if d.spec.PreserveUnknownFields {
				return nil, nil //nolint:nilnil // Objects are then left as they are.
			}
			return d.structural(version.Name)
		})
	}
	at := field.NewPath("spec")
	var errs field.ErrorList
	need := func(path *field.Path, value, advice string) {
		if value == "" {
			errs = append(errs, field.Required(path, advice))
		}
	}
	need(at.Child("group"), d.spec.Group, "name the API group")
	need(at.Child("names", "plural"), d.spec.Names.Plural, "name the resource, for example gadgets")
	need(at.Child("names", "kind"), d.spec.Names.Kind, "name the kind, for example Gadget")
	if want := d.spec.Names.Plural + "." + d.spec.Group; len(errs) == 0 && obj.GetName() != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), fmt.Sprintf("must be %q: spec.names.plural and spec.group", want)))
	}
	if scopes := []string{"Cluster", "Namespaced"}; !slices.Contains(scopes, d.spec.Scope) {
		errs = append(errs, field.NotSupported(at.Child("scope"), d.spec.Scope, scopes))
	}
	if strategies := []string{"None", webhookStrategy}; d.spec.Conversion.Strategy != "" && !slices.Contains(strategies, d.spec.Conversion.Strategy) {
		errs = append(errs, field.NotSupported(at.Child("conversion", "strategy"), d.spec.Conversion.Strategy, strategies))
	}
	return d, append(errs, d.inspectVersions(at.Child("versions"))...)
}

func (d *Definition) inspectVersions(at *field.Path) field.ErrorList {
	if len(d.spec.Versions) == 0 {
		return field.ErrorList{field.Required(at, "list at least one version")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	stored := 0
	for i, version := range d.spec.Versions {
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

// Kind returns the kind that d defines.
func (d *Definition) Kind() schema.GroupKind {
	return schema.GroupKind{Group: d.spec.Group, Kind: d.spec.Names.Kind}
}

// Resource returns the resource that d defines.
func (d *Definition) Resource() schema.GroupResource {
	return schema.GroupResource{Group: d.spec.Group, Resource: d.spec.Names.Plural}
}

// Resources returns the versions in the order of the definition, in which
// apiextensions-apiserver registers them as equivalents of each other.
func (d *Definition) Resources() []discovery.Resource {
	var all []discovery.Resource
	for _, version := range d.spec.Versions {
		kind := d.Kind().WithVersion(version.Name)
		subresources := map[string]schema.GroupVersionKind{}
		if version.Subresources.Status != nil {
			subresources["status"] = kind
		}
		if version.Subresources.Scale != nil {
			subresources["scale"] = scaleKind
		}
		all = append(all, discovery.Resource{
			Resource:     d.Resource().WithVersion(version.Name),
			Kind:         kind,
			Singular:     d.spec.Names.Singular,
			Namespaced:   d.spec.Scope == "Namespaced",
			Unserved:     !version.Served,
			Subresources: subresources,
		})
	}
	return all
}

// Convert returns the object in another version, as the converters of
// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion do for the strategy
// None.
func (d *Definition) Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if err := d.convertible(obj.GroupVersionKind(), to); err != nil {
		return nil, err
	}
	fields := maps.Clone(obj.Object)
	fields["apiVersion"] = to.GroupVersion().String()
	return &unstructured.Unstructured{Object: fields}, nil
}

// convertible returns why an object cannot be converted, or nil.
func (d *Definition) convertible(from, to schema.GroupVersionKind) error {
	switch {
	case to.GroupKind() != d.Kind() || !d.has(from.Version) || !d.has(to.Version):
		return fmt.Errorf("unable to convert %v to %v: the CustomResourceDefinition of %s has no such versions", from, to, d.Resource())
	case d.spec.Conversion.Strategy == webhookStrategy:
		return fmt.Errorf("unable to convert %v to %v: the conversion webhook is not called; the object that the API server converted is needed", from, to)
	default:
		return nil
	}
}

// storage returns the version of storage. There is exactly one.
func (d *Definition) storage() string {
	i := slices.IndexFunc(d.spec.Versions, func(v specVersion) bool { return v.Storage })
	return d.spec.Versions[i].Name
}

// KindBelow returns the kind in which objects are taken from a view that serves
// their kind in the versions of mappings: that of storage, in which this
// definition would find them; or the one in which they are asked for.
func (d *Definition) KindBelow(asked schema.GroupVersionKind, mappings []*meta.RESTMapping) schema.GroupVersionKind {
	serves := func(kind schema.GroupVersionKind) bool {
		return slices.ContainsFunc(mappings, func(m *meta.RESTMapping) bool { return m.GroupVersionKind == kind })
	}
	stored := d.Kind().WithVersion(d.storage())
	switch {
	case d.spec.Conversion.Strategy != webhookStrategy && serves(stored):
		return stored
	case serves(asked):
		return asked
	default:
		return mappings[0].GroupVersionKind
	}
}

func (d *Definition) has(version string) bool {
	return slices.ContainsFunc(d.spec.Versions, func(v specVersion) bool { return v.Name == version })
}
