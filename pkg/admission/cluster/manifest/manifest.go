// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest decodes manifests, YAML or JSON, as kubectl does, but
// strictly: what kubectl would drop or guess is an error. It reads no files and
// does not know which kinds exist.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MaxDepth is how deep the mappings and lists of a document may be nested.
const MaxDepth = 256

// maxFaults is how many faults of a manifest are reported.
const maxFaults = 100

// Position is a place in a manifest. Documents and lines count from 1; only
// documents with content count.
type Position struct {
	Document int
	Line     int
	// Item is the place in a list of objects, for example "items[2]". It is
	// empty for an object that is a document itself.
	Item string
}

func (p Position) String() string {
	text := fmt.Sprintf("document %d, line %d", p.Document, p.Line)
	if p.Item != "" {
		text += ", " + p.Item
	}
	return text
}

// Object is one object of a manifest and the place where it was found: the
// first line of its document.
type Object struct {
	Position
	Content *unstructured.Unstructured
}

// Error is what is wrong at one place of a manifest.
type Error struct {
	Position
	Err error
}

func (e *Error) Error() string { return e.Position.String() + ": " + e.Err.Error() }

// Unwrap returns the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// Decode returns the objects of a manifest in their order. Lists of objects
// are replaced by their items, empty documents are passed over. Keys that are
// set twice, text that is not UTF-8, documents nested deeper than MaxDepth and
// documents that are no objects are errors. The error joins an *Error for each
// fault; all broken documents are reported, up to a hundred faults, and no
// object is returned then.
func Decode(data []byte) ([]*unstructured.Unstructured, error) {
	objects, err := Read(data)
	if err != nil {
		return nil, err
	}
	contents := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		contents = append(contents, object.Content)
	}
	return contents, nil
}

// Read is Decode for callers that need to know where the objects are. Next to
// an error it returns the objects of the documents that could be decoded.
func Read(data []byte) ([]Object, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, &Error{Position: Position{Document: 1, Line: invalidLine(data)}, Err: errors.New("the text is not UTF-8; save it as UTF-8")}
	}
	var objects []Object
	var faults []error
	for _, doc := range split(data) {
		if len(faults) >= maxFaults {
			faults = append(faults, doc.fault(doc.line, errors.New("not read: there are too many faults before it")))
			break
		}
		value, err := doc.decode()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if value == nil {
			continue
		}
		found, err := flatten(nil, Position{Document: doc.number, Line: doc.line}, value)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		objects = append(objects, found...)
	}
	return objects, errors.Join(faults...)
}

func invalidLine(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return 1 + bytes.Count(data[:i], []byte("\n"))
		}
		i += size
	}
	return 1
}

// flatten appends value to objects, or its items when it is a list of objects.
func flatten(objects []Object, at Position, value any) ([]Object, error) {
	content, ok := value.(map[string]any)
	if !ok {
		return nil, &Error{Position: at, Err: fmt.Errorf("found %s; an object with apiVersion and kind is needed", describe(value))}
	}
	object := &unstructured.Unstructured{Object: content}
	items, isList, err := itemsOf(object)
	if err != nil {
		return nil, &Error{Position: at, Err: err}
	}
	if !isList {
		return append(objects, Object{Position: at, Content: object}), nil
	}
	itemKind := strings.TrimSuffix(object.GetKind(), "List")
	for i, item := range items {
		place := at
		place.Item = strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", at.Item, i), ".")
		if fields, ok := item.(map[string]any); ok && itemKind != "" {
			// The items of a typed list do not repeat its kind, as in
			// unstructured.UnstructuredList.
			setDefault(fields, "apiVersion", object.GetAPIVersion())
			setDefault(fields, "kind", itemKind)
		}
		if objects, err = flatten(objects, place, item); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// itemsOf returns the items of a list of objects. A custom resource whose kind
// happens to end in List is none unless it has items.
func itemsOf(object *unstructured.Unstructured) (items []any, isList bool, err error) {
	value, found := object.Object["items"]
	switch kind := object.GetKind(); {
	case kind == "List" && value == nil:
		return nil, true, nil
	case !strings.HasSuffix(kind, "List") || !found:
		return nil, false, nil
	}
	items, ok := value.([]any)
	if !ok && value != nil {
		return nil, false, fmt.Errorf("items: found %s; a list of objects is needed", describe(value))
	}
	return items, true, nil
}

func setDefault(fields map[string]any, key, value string) {
	if _, found := fields[key]; !found {
		fields[key] = value
	}
}

func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
