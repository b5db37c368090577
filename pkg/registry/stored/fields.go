// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"bytes"
	"encoding/json"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// fields are the values of a JSON object by name, as they stand. A value that
// breaks off, and one whose name occurs twice, cannot be read any further.
type fields map[string]json.RawMessage

// readFields reads the fields of an object as far as it goes. What follows a
// fault is lost; the value that holds it is kept up to its end, so that its own
// fields can be read.
func readFields(data []byte) fields {
	read := fields{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return read
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return read
		}
		begin := decoder.InputOffset()
		var field json.RawMessage
		err = decoder.Decode(&field)
		if err != nil {
			field = bytes.TrimLeft(data[begin:], ": \t\r\n")
		}
		if _, twice := read[name]; twice {
			field = nil
		}
		read[name] = field
		if err != nil {
			return read
		}
	}
	return read
}

// readField returns nil unless the field is there and all of it is understood: a
// field of which this version does not know a part may mean something else.
func readField[T any](from fields, name string) *T {
	raw, ok := from[name]
	if !ok {
		return nil
	}
	var read *T
	if strict, err := kjson.UnmarshalStrict(raw, &read); err != nil || len(strict) > 0 {
		return nil
	}
	return read
}

func valueOr[T any](read *T, absent T) T {
	if read == nil {
		return absent
	}
	return *read
}

// readMetadata returns what identifies and describes an object. The rest has to
// do with how it is written and deleted, and does not outlive its damage.
func readMetadata(from fields) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		UID:               valueOr(readField[types.UID](from, "uid"), ""),
		Generation:        valueOr(readField[int64](from, "generation"), 0),
		CreationTimestamp: valueOr(readField[metav1.Time](from, "creationTimestamp"), metav1.Time{}),
		Labels:            valueOr(readField[map[string]string](from, "labels"), nil),
		Annotations:       valueOr(readField[map[string]string](from, "annotations"), nil),
	}
}

// derivedUID is the same on every server and at every read of the same data.
func derivedUID(key string, data []byte) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NewSHA1(uuid.NameSpaceURL, []byte(key)), data).String())
}
