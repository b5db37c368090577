// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// Manifests decodes manifests of the stored kinds that do not come as writes. It
// is safe for concurrent use.
type Manifests struct {
	version schema.GroupVersion
	decoder runtime.Decoder
	kinds   map[string]*Kind // by name
}

// NewManifests returns what decodes manifests of Kinds into the internal types of
// scheme.
func NewManifests(scheme *runtime.Scheme) (*Manifests, error) {
	m := &Manifests{
		version: v1alpha1.SchemeGroupVersion,
		decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(policy.SchemeGroupVersion()),
		kinds:   map[string]*Kind{},
	}
	for _, kind := range Kinds() {
		name, err := kind.Name(scheme)
		if err != nil {
			return nil, err
		}
		m.kinds[name] = &kind
	}
	return m, nil
}

// Decode returns the internal object of a manifest and its kind. The manifest has
// the served version or one under which the kind is known elsewhere; it is decoded
// strictly and gets the defaults that a write gives. Whether the object is valid is
// for the caller to ask the kind. The paths of faults start at the manifest, which
// Decode may change.
func (m *Manifests) Decode(manifest *unstructured.Unstructured) (runtime.Object, *Kind, field.ErrorList) {
	kind, known := m.kinds[manifest.GetKind()]
	if !known {
		return nil, nil, field.ErrorList{m.unknown(manifest.GroupVersionKind())}
	}
	version := manifest.GroupVersionKind().GroupVersion()
	switch {
	case version == m.version:
	case kind.isHome(version):
		delete(manifest.Object, "status") // it says what became of the object elsewhere
	default:
		return nil, nil, field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), manifest.GetAPIVersion(), m.versions(kind))}
	}
	manifest.SetAPIVersion(m.version.String())
	encoded, err := manifest.MarshalJSON()
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(nil, manifest.GetName(), err.Error())}
	}
	internal, _, err := m.decoder.Decode(encoded, nil, nil)
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(nil, manifest.GetName(), err.Error())}
	}
	if accessor, err := meta.Accessor(internal); err == nil && !kind.Namespaced {
		accessor.SetNamespace("") // as rest.BeforeCreate does on a write
	}
	return internal, kind, nil
}

// DecodeNew is Decode for an object that is valid and that a write could create,
// provided that it compiles, which is for the caller to find out.
func (m *Manifests) DecodeNew(manifest *unstructured.Unstructured) (runtime.Object, field.ErrorList) {
	internal, kind, errs := m.Decode(manifest)
	if len(errs) > 0 {
		return nil, errs
	}
	return internal, kind.ValidateCreate(internal)
}

// unknown says of a kind that there is none, and what to write instead, if it is one of
// those beside which people know our kinds.
func (m *Manifests) unknown(kind schema.GroupVersionKind) *field.Error {
	path := field.NewPath("kind")
	if advice, told := insteadOf(kind.GroupKind()); told {
		return field.Forbidden(path, advice)
	}
	return field.NotSupported(path, kind.Kind, m.names())
}

// insteadOf says what to write instead of a kind that is not supported.
func insteadOf(kind schema.GroupKind) (advice string, told bool) {
	switch kind.Group {
	case kyvernov1.GroupName, "policies." + kyvernov1.GroupName, policy.GroupName:
	default:
		return "", false
	}
	switch kind.Kind {
	case "PolicyException":
		return "there are no PolicyExceptions here: narrow match of the rule, or add an exclude to it", true
	case "CleanupPolicy", "ClusterCleanupPolicy":
		return "policies delete nothing here: keep this one where it runs, or have a CronJob delete the objects", true
	case "GlobalContextEntry":
		return "there are no GlobalContextEntries here: give each rule that reads it a context entry with an apiCall or a configMap", true
	default:
		return "", false
	}
}

// versions are those that manifests of a kind may have.
func (m *Manifests) versions(kind *Kind) []string {
	versions := []string{m.version.String()}
	for _, home := range kind.Homes {
		versions = append(versions, home.String())
	}
	return versions
}

func (m *Manifests) names() []string {
	names := make([]string, 0, len(m.kinds))
	for name := range m.kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
