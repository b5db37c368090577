// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// digest stands for what a dialect reads of an object: of equal ones it would make
// the same, without the object being kept to compare it. The zero digest is unknown.
type digest [sha256.Size]byte

func (d digest) known() bool { return d != digest{} }

// digestOf returns the digest of an internal object, or an unknown one, also where
// making it panics: the object is then compiled again with each write. The status is for
// readers, and so is what the server keeps in the metadata for itself; what users write
// there, a dialect may read. UID and generation alone would not do: a restored backup
// counts its generations again.
func digestOf(obj apiruntime.Object) (d digest) {
	defer func() {
		if recover() != nil {
			d = digest{}
		}
	}()
	in := obj.DeepCopyObject()
	accessor, err := meta.Accessor(in)
	if err != nil {
		return digest{}
	}
	accessor.SetResourceVersion("")
	accessor.SetManagedFields(nil)
	if content, ok := in.(apiruntime.Unstructured); ok {
		delete(content.UnstructuredContent(), "status")
	} else if status := reflect.Indirect(reflect.ValueOf(in)).FieldByName("Status"); status.CanSet() {
		status.SetZero()
	}
	// All that is stored is JSON: of what an object holds, it tells everything.
	text, err := json.Marshal(in)
	if err != nil {
		return digest{}
	}
	return sha256.Sum256(text)
}
