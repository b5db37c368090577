// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/value"
)

// salvaging gives the storage of a kind a transformer that replaces what cannot
// be decoded by what can be read of it.
type salvaging struct {
	generic.RESTOptionsGetter
	kind Kind
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g salvaging) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	config := *options.StorageConfig
	config.Transformer = &salvager{
		kind:  g.kind,
		codec: config.Codec,
		root:  path.Join("/", config.Prefix, options.ResourcePrefix) + "/",
		next:  config.Transformer,
	}
	options.StorageConfig = &config
	return options, nil
}

// salvager stands between etcd and the decoder, where the key of an object is
// still known. An object that cannot be decoded would otherwise fail every list
// and end every watch of its kind; so it is replaced, as it is read, by one that
// can be: with the name that the key gives it, the parts of its spec that can be
// read, and a mark that says what is wrong. What is in etcd stays as it is until
// someone writes the object anew or deletes it.
type salvager struct {
	kind  Kind
	codec runtime.Codec
	root  string            // of the keys of the kind
	next  value.Transformer // between etcd and this one, or nil
}

// TransformToStorage implements value.Transformer.
func (s *salvager) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	if s.next == nil {
		return data, nil
	}
	return s.next.TransformToStorage(ctx, data, dataCtx)
}

// TransformFromStorage implements value.Transformer. What the next transformer
// cannot read is an error and not damage: its keys may come back. Without one
// there are no keys, and what is encrypted is damaged: it must not keep its whole
// kind from being read.
func (s *salvager) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	stale := false
	if s.next != nil {
		var err error
		if data, stale, err = s.next.TransformFromStorage(ctx, data, dataCtx); err != nil {
			return nil, false, err
		}
	}
	key, ok := strings.CutPrefix(string(dataCtx.AuthenticatedData()), s.root)
	if !ok {
		return data, stale, nil
	}
	name, possible := s.kind.KeyName(key)
	var damage error
	if possible {
		damage = s.check(name, data)
	} else {
		damage = &impossibleKeyError{key: s.root + key}
	}
	if damage == nil {
		return data, stale, nil
	}
	// Stale: a write must reach etcd even where it makes of the object what is
	// shown of it.
	whole, err := s.salvage(name, data, damage)
	return whole, true, err
}

// check says why data is not the object of that name. Errors and panics of
// decoding, defaulting and conversion are reasons.
func (s *salvager) check(name types.NamespacedName, data []byte) (damage error) {
	if bytes.HasPrefix(data, []byte("k8s:enc:")) {
		return errors.New("it is encrypted, and this server has no keys")
	}
	obj, err := s.decode(data)
	if runtime.IsNotRegisteredError(err) {
		text, _, _ := strings.Cut(err.Error(), " in scheme ")
		return errors.New(text)
	}
	if err != nil {
		return err
	}
	if got, want := reflect.TypeOf(obj), reflect.TypeOf(s.kind.New()); got != want {
		return fmt.Errorf("it is a %s and not a %s", got.Elem().Name(), want.Elem().Name())
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if accessor.GetName() != name.Name || accessor.GetNamespace() != name.Namespace {
		return fmt.Errorf("its metadata names it %q, its key %q",
			path.Join(accessor.GetNamespace(), accessor.GetName()), path.Join(name.Namespace, name.Name))
	}
	if _, marked := accessor.GetAnnotations()[UndecodableAnnotation]; marked {
		return fmt.Errorf("it is stored with the annotation %s, which no stored object has", UndecodableAnnotation)
	}
	return nil
}

func (s *salvager) decode(data []byte) (obj runtime.Object, err error) {
	defer contain(&err)
	return runtime.Decode(s.codec, data)
}

// contain turns a panic into an error.
func contain(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("panic: %v", cause)
	}
}

// salvage encodes an object of that name with the parts of the spec that can be
// read. Parts that validation refuses count as unreadable: a rule that means
// nothing to this version would match nothing. When even that cannot be encoded,
// nothing but the name is left.
func (s *salvager) salvage(name types.NamespacedName, data []byte, damage error) ([]byte, error) {
	fields := readFields(data)
	metadata, spec := readMetadata(readFields(fields["metadata"])), readFields(fields["spec"])
	metadata.Name, metadata.Namespace = name.Name, name.Namespace
	if metadata.UID == "" {
		metadata.UID = derivedUID(s.root+name.String(), data)
	}
	whole, faults, err := s.encode(metadata, spec, damage)
	if err == nil && len(faults) > 0 {
		for _, part := range faults {
			delete(spec, part)
		}
		whole, _, err = s.encode(metadata, spec, damage)
	}
	if err != nil {
		bare := metav1.ObjectMeta{Name: metadata.Name, Namespace: metadata.Namespace, UID: metadata.UID}
		whole, _, err = s.encode(bare, nil, errors.Join(damage, err))
	}
	return whole, err
}

// encode returns the object and the fields of its spec that validation refuses.
func (s *salvager) encode(metadata metav1.ObjectMeta, spec fields, damage error) (whole []byte, faults []string, err error) {
	defer contain(&err)
	obj := s.kind.New()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	text, advice := printable(damage.Error(), maxDamageText), howToMend
	var impossible *impossibleKeyError
	if errors.As(damage, &impossible) {
		advice = "" // it says itself what to do
	}
	accessor.SetName(metadata.Name)
	accessor.SetNamespace(metadata.Namespace)
	accessor.SetUID(metadata.UID)
	accessor.SetGeneration(metadata.Generation)
	accessor.SetCreationTimestamp(metadata.CreationTimestamp)
	accessor.SetLabels(metadata.Labels)
	annotations := metadata.Annotations
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[UndecodableAnnotation] = text
	accessor.SetAnnotations(annotations)
	s.kind.salvage(obj, spec, text, advice)
	if whole, err = runtime.Encode(s.codec, obj); err != nil {
		return nil, nil, err
	}
	if obj, err = runtime.Decode(s.codec, whole); err != nil { // with defaults
		return nil, nil, err
	}
	validate := s.kind.Validate
	if s.kind.validateSalvaged != nil {
		validate = s.kind.validateSalvaged
	}
	for _, fault := range validate(obj) {
		if names := strings.FieldsFunc(fault.Field, func(r rune) bool { return r == '.' || r == '[' }); len(names) > 1 && names[0] == "spec" {
			faults = append(faults, names[1])
		}
	}
	return whole, faults, nil
}
