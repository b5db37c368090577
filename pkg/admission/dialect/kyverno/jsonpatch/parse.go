// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Parse returns the operations of a text: JSON when its first character is [, and YAML
// otherwise, as Kyverno's convertPatchesToJSON has it. The error says what is wrong with
// the first operation that cannot be one.
func Parse(text string) ([]Operation, error) {
	entries, err := decode(text)
	if err != nil {
		return nil, err
	}
	return operations(entries)
}

// operations reads the decoded list of a patch.
func operations(entries []any) ([]Operation, error) {
	if len(entries) > maxOperations {
		return nil, fmt.Errorf("the patch has %d operations, at most %d are taken", len(entries), maxOperations)
	}
	result := make([]Operation, len(entries))
	for i, entry := range entries {
		var err error
		if result[i], err = operation(entry); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return result, nil
}

// decode returns the list that a text holds. A text without any is a patch that does
// nothing.
func decode(text string) ([]any, error) {
	value, err := decodeValue(text)
	if err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case nil:
		return nil, nil
	case []any:
		return value, nil
	}
	return nil, errors.New("a JSON patch is a list of operations")
}

func decodeValue(text string) (any, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the patch has %d bytes, at most %d are taken", len(text), maxText)
	}
	encoded := []byte(text)
	if text == "" || text[0] != '[' {
		var err error
		if encoded, err = yaml.YAMLToJSON(encoded); err != nil {
			return nil, fmt.Errorf("the patch is no YAML: %w", err)
		}
		if len(encoded) > maxText {
			return nil, fmt.Errorf("the patch has %d bytes as JSON, at most %d are taken", len(encoded), maxText)
		}
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &value); err != nil {
		return nil, fmt.Errorf("the patch is no JSON, which it must be when it begins with [: %w", err)
	}
	return value, nil
}

// operation reads one entry of a decoded patch. Like the library, it takes no notice of
// fields that it does not know.
func operation(entry any) (Operation, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return Operation{}, errors.New("is no object with the fields op and path")
	}
	op, _ := fields["op"].(string)
	switch op {
	case opAdd, opReplace, opTest:
		if _, ok := fields["value"]; !ok {
			return Operation{}, fmt.Errorf("%s needs a value; null is one too", op)
		}
	case opMove, opCopy:
		if _, ok := fields["from"].(string); !ok {
			return Operation{}, fmt.Errorf("%s needs the field from, a path", op)
		}
	case opRemove:
	default:
		return Operation{}, fmt.Errorf("op is %q, want %s, %s, %s, %s, %s or %s",
			excerpt(op), opAdd, opRemove, opReplace, opMove, opCopy, opTest)
	}
	path, ok := fields["path"].(string)
	if !ok {
		return Operation{}, fmt.Errorf("%s needs a path, which is a string", op)
	}
	from, _ := fields["from"].(string)
	return newOperation(op, path, from, fields["value"])
}
