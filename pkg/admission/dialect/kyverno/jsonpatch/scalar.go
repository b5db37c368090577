// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// readYAML returns what a text is as a value of YAML that is not in quotes.
func readYAML(ctx context.Context, run *jmespath.Run, text string) (any, error) {
	if isWord(text) {
		return text, nil
	}
	if number, ok := decimal(text); ok {
		return number, nil
	}
	if err := spendOnParsing(ctx, run, text); err != nil {
		return nil, err
	}
	// Behind a key, a value ends where it does in the patch.
	encoded, err := yaml.YAMLToJSON([]byte("k: " + text))
	if err != nil {
		return nil, fmt.Errorf("the text %q is no value of YAML; put the variable in quotes to have it as it is: %w", excerpt(text), err)
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &object); err != nil {
		return nil, fmt.Errorf("the text %q is no value of YAML: %w", excerpt(text), err)
	}
	value, ok := object["k"]
	if !ok || len(object) != 1 {
		return nil, fmt.Errorf("the text %q is more than one value of YAML; put the variable in quotes to have it as it is", excerpt(text))
	}
	return value, nil
}

// readJSON returns what a text is as JSON.
func readJSON(ctx context.Context, run *jmespath.Run, text string) (any, error) {
	if err := spendOnParsing(ctx, run, text); err != nil {
		return nil, err
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("the text %q is no JSON; put the variable in quotes to have it as it is: %w", excerpt(text), err)
	}
	return value, nil
}

// isWord says that YAML takes a text for a string: most names, images and paths. It does
// not say so of all texts of which that is true.
func isWord(text string) bool {
	if text == "" || text[0] != '/' && !isLetter(text[0]) || text[len(text)-1] == ':' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte("._/:@+=~-", c) < 0 {
			return false
		}
	}
	const longest = len("false")
	if len(text) > longest {
		return true
	}
	switch strings.ToLower(text) {
	case "y", "yes", "n", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// decimal returns the integer that a text is for YAML: one that begins with a 0 may be
// octal.
func decimal(text string) (int64, bool) {
	if text == "" || text[0] < '1' || text[0] > '9' {
		return 0, text == "0"
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil
}
