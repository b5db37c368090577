// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2" // as sigs.k8s.io/yaml has it: YAML 1.1, with "yes" and "no"
)

const (
	// maxAliased bounds by how many bytes aliases may make a document larger.
	maxAliased = 16 << 20
	// maxFaultsOfDocument is how many faults of one document are reported.
	maxFaultsOfDocument = 10
)

func (d *document) decodeYAML() (any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	decoder.SetStrict(true)
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, d.yamlFault(err)
	}
	// Whatever follows would be lost: the stream is split already.
	var rest any
	if err := decoder.Decode(&rest); !errors.Is(err, io.EOF) {
		return nil, d.fault(d.line, errors.New("there is content behind the end of the object; separate objects by a line with ---"))
	}
	c := converter{budget: len(d.text) + maxAliased}
	value, err := c.convert(value, 0)
	if err != nil {
		return nil, d.fault(d.line, err)
	}
	return value, nil
}

// yamlLine is how the parser begins a message that has a place.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

func (d *document) yamlFault(err error) error {
	messages := []string{err.Error()}
	if typeErr := (*yaml.TypeError)(nil); errors.As(err, &typeErr) {
		messages = typeErr.Errors
	}
	if more := len(messages) - maxFaultsOfDocument; more > 0 {
		messages = append(messages[:maxFaultsOfDocument:maxFaultsOfDocument], fmt.Sprintf("and %d more faults", more))
	}
	var faults []error
	for _, message := range messages {
		line := d.line
		if place := yamlLine.FindStringSubmatch(message); place != nil {
			if n, err := strconv.Atoi(place[1]); err == nil {
				line = d.line + n - 1
			}
			message = message[len(place[0]):]
		}
		message = strings.TrimPrefix(message, "yaml: ")
		if key, twice := strings.CutSuffix(message, " already set in map"); twice {
			message = key + " is set twice; keep one of them"
		} else {
			message = "broken YAML: " + message
		}
		faults = append(faults, d.fault(line, errors.New(message)))
	}
	return errors.Join(faults...)
}

// converter turns what the YAML parser returns into what unstructured objects
// hold, with the values that sigs.k8s.io/yaml gives: by way of JSON.
type converter struct {
	budget int // bytes of text and number of values that may still come
}

func (c *converter) spend(cost int) error {
	if c.budget -= cost; c.budget < 0 {
		return errors.New("aliases make the document too large; write out what they stand for")
	}
	return nil
}

func (c *converter) convert(value any, depth int) (any, error) {
	if err := c.spend(1); err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case map[any]any:
		return c.convertMap(value, depth+1)
	case []any:
		return c.convertList(value, depth+1)
	case string:
		if !utf8.ValidString(value) {
			return nil, errors.New("a !!binary value is not UTF-8; write it as a string in base64")
		}
		return value, c.spend(len(value))
	case nil, bool, int64:
		return value, nil
	case int:
		return int64(value), nil
	case uint64:
		return float64(value), nil
	case float64:
		return number(value)
	default:
		return nil, fmt.Errorf("a value of type %T has no form in JSON; write it as a string", value)
	}
}

// number returns an integer as such: 1.0 and 1 are the same number in JSON.
func number(value float64) (any, error) {
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return nil, errors.New("NaN and infinity have no form in JSON; use a number or a string")
	case value == math.Trunc(value) && math.Abs(value) < 1<<63:
		return int64(value), nil
	default:
		return value, nil
	}
}

func (c *converter) convertList(list []any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep
	}
	converted := make([]any, len(list))
	for i, item := range list {
		var err error
		if converted[i], err = c.convert(item, depth); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

func (c *converter) convertMap(mapping map[any]any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep
	}
	converted := make(map[string]any, len(mapping))
	for k, item := range mapping {
		key, err := keyOf(k)
		if err != nil {
			return nil, err
		}
		if _, twice := converted[key]; twice {
			return nil, errTwice(key)
		}
		if err := c.spend(len(key)); err != nil {
			return nil, err
		}
		if converted[key], err = c.convert(item, depth); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

// keyOf returns the text of a key; sigs.k8s.io/yaml takes the same types.
func keyOf(key any) (string, error) {
	switch key := key.(type) {
	case string:
		if !utf8.ValidString(key) {
			return "", errors.New("a !!binary key is not UTF-8; write it as a string")
		}
		return key, nil
	case int, int64, bool:
		return fmt.Sprint(key), nil
	case float64:
		return strconv.FormatFloat(key, 'g', -1, 32), nil
	default:
		return "", fmt.Errorf("key %v is not a string; put it in quotes", key)
	}
}
