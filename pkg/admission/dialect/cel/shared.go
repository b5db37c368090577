// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"sync"

	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// sharedKey names what all CEL policies share of a request.
var sharedKey = request.NewKey[*shared]("cel values")

// shared is what is built once for a request. It is safe for concurrent use.
type shared struct {
	original admission.Attributes
	noParam  param

	mu         sync.Mutex
	versions   []*version // one, or a few
	params     map[*unstructured.Unstructured]*param
	namespaces map[*corev1.Namespace]bound.Sizes
}

// version is a request with its objects in a kind in which policies have matched
// it. It is immutable but for its frames.
type version struct {
	// attributes are the request as upstream takes it. The values of its objects are
	// there: to make them when they are first asked for is not safe.
	attributes        *admission.VersionedAttributes
	object, oldObject content
	sizes             bound.Sizes

	mu     sync.Mutex
	frames []*frame // that nobody uses
}

// param is an object that policies take as params, or none.
type param struct {
	value content
	sizes bound.Sizes
}

// content is that of an object, in two forms; both are nil for none.
type content struct {
	value any // the CEL value
	bare  any // a map, if it is one
}

func (c *content) as(bare bool) any {
	if bare {
		return c.bare
	}
	return c.value
}

func contentOf(value ref.Val) content {
	if value == nil {
		return content{}
	}
	if bare, ok := value.Value().(map[string]any); ok {
		return content{value: value, bare: bare}
	}
	return content{value: value, bare: value}
}

func sharedOf(req *request.Request) (*shared, error) {
	return request.Derive(req, sharedKey, newShared)
}

func newShared(req *request.Request) (*shared, error) {
	return &shared{original: req.Attributes(), noParam: param{sizes: bound.Measure(nil)}}, nil
}

// version returns the request with its objects in the kind under which the policy
// has matched.
func (s *shared) version(in policy.Input) (*version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.versions {
		if known.attributes.VersionedKind == in.Matched.Kind {
			return known, nil
		}
	}
	object, err := inKind(in, in.Request.Object)
	if err != nil {
		return nil, err
	}
	oldObject, err := inKind(in, in.Request.OldObject)
	if err != nil {
		return nil, err
	}
	attributes := &admission.VersionedAttributes{
		Attributes:         s.original,
		VersionedKind:      in.Matched.Kind,
		VersionedObject:    admission.NewLazyObject(orNil(object)),
		VersionedOldObject: admission.NewLazyObject(orNil(oldObject)),
	}
	objectValue, err := attributes.VersionedObject.CELValue()
	if err != nil {
		return nil, err
	}
	oldValue, err := attributes.VersionedOldObject.CELValue()
	if err != nil {
		return nil, err
	}
	made := &version{attributes: attributes, object: contentOf(objectValue), oldObject: contentOf(oldValue)}
	made.sizes = bound.Measure(made.object.bare, made.oldObject.bare)
	s.versions = append(s.versions, made)
	return made, nil
}

// inKind returns obj in the kind under which the policy has matched. An object
// of a kind that the request does not declare (the body of a CONNECT, say) is
// taken as it is.
func inKind(in policy.Input, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if obj == nil || in.Matched.Kind == in.Request.Kind {
		return obj, nil
	}
	return in.View.Convert(obj, in.Matched.Kind)
}

// orNil avoids a typed nil.
func orNil(obj *unstructured.Unstructured) runtime.Object {
	if obj == nil {
		return nil
	}
	return obj
}

// param returns the CEL value of a param, which upstream makes anew for each
// evaluation.
func (s *shared) param(obj *unstructured.Unstructured) *param {
	if obj == nil {
		return &s.noParam
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.params[obj]
	if known == nil {
		known = newParam(obj)
		if s.params == nil {
			s.params = map[*unstructured.Unstructured]*param{}
		}
		s.params[obj] = known
	}
	return known
}

// newParam converts a param as upstream does, through JSON.
func newParam(obj *unstructured.Unstructured) *param {
	value := contentOf(common.SchemalessTypedToVal(obj))
	return &param{value: value, sizes: bound.Measure(value.bare)}
}

// namespaceSizes returns how large a Namespace is.
func (s *shared) namespaceSizes(namespace *corev1.Namespace) bound.Sizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.namespaces[namespace]
	if !ok {
		known = bound.Measure(namespaceContent(namespace))
		if s.namespaces == nil {
			s.namespaces = map[*corev1.Namespace]bound.Sizes{}
		}
		s.namespaces[namespace] = known
	}
	return known
}

// take returns a frame for a resource that nobody else has.
func (v *version) take(resource schema.GroupVersionResource) *frame {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := len(v.frames) - 1; i >= 0; i-- {
		if taken := v.frames[i]; taken.resource == resource {
			v.frames = append(v.frames[:i], v.frames[i+1:]...)
			return taken
		}
	}
	taken := &frame{version: v, resource: resource}
	taken.sizes = v.sizes.Max(requestSizes(v.attributes.Attributes, v.attributes.VersionedKind, resource))
	return taken
}

func (v *version) put(used *frame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frames = append(v.frames, used)
}
