// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var errTooDeep = fmt.Errorf("the document is nested more than %d levels deep; flatten it", MaxDepth)

func errTwice(key string) error {
	return fmt.Errorf("key %q is set twice; keep one of them", key)
}

// decodeJSON decodes the document if it is one JSON value.
func (d *document) decodeJSON() (value any, isJSON bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	decoder.UseNumber()
	fault, err := check(decoder)
	if fault != nil {
		line := d.line + bytes.Count(d.text[:decoder.InputOffset()], []byte("\n"))
		return nil, true, d.fault(line, fault)
	}
	if err != nil {
		return nil, false, nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false, nil
	}
	if err := utiljson.Unmarshal(d.text, &value); err != nil {
		return nil, true, d.fault(d.line, err)
	}
	return value, true, nil
}

// check reads one JSON value. It stops behind the place where a key is set
// twice or the nesting gets too deep, which is the fault, or where the text is
// not JSON, which is err.
func check(decoder *json.Decoder) (fault, err error) {
	type container struct {
		keys  map[string]bool // nil for a list
		isKey bool            // the next token is a key
	}
	var open []container
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		switch delim, _ := token.(json.Delim); delim {
		case '{':
			open = append(open, container{keys: map[string]bool{}, isKey: true})
			if len(open) > MaxDepth {
				return errTooDeep, nil
			}
			continue
		case '[':
			open = append(open, container{})
			if len(open) > MaxDepth {
				return errTooDeep, nil
			}
			continue
		case '}', ']':
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil, nil
		}
		top := &open[len(open)-1]
		if key, ok := token.(string); ok && top.isKey {
			if top.keys[key] {
				return errTwice(key), nil
			}
			top.keys[key] = true
			top.isKey = false
			continue
		}
		top.isKey = top.keys != nil
	}
}
