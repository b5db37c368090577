// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// documents returns the functions that take values out of texts.
func documents() []jmespath.Function {
	return []jmespath.Function{
		ofTexts("parse_json", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return parseJSON(ctx, run, texts[0])
		}),
		ofTexts("parse_yaml", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return parseYAML(ctx, run, texts[0])
		}),
		ofTexts("x509_decode", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return decodeCertificate(ctx, run, texts[0])
		}),
	}
}

// parseJSON pays for as many values as there can be in a text.
func parseJSON(ctx context.Context, run *jmespath.Run, text string) (any, error) {
	values := 1 + countAny(text, ",[{:")
	if err := run.Spend(ctx, values, len(text)+values*bytesPerItem); err != nil {
		return nil, err
	}
	var value any
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("the text is not JSON: %w", err)
	}
	return value, nil
}

// parseYAML returns the value of the first document of a text, as sigs.k8s.io/yaml sees
// it. Aliases are paid for as what they stand for.
func parseYAML(ctx context.Context, run *jmespath.Run, text string) (any, error) {
	values := 1 + countAny(text, ",[{:-\n")
	if err := run.Spend(ctx, len(text)/4+values, len(text)+values*bytesPerItem); err != nil {
		return nil, err
	}
	if strings.Contains(text, "&") && strings.Contains(text, "*") {
		if err := payForAliases(ctx, run, text); err != nil {
			return nil, err
		}
	}
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the text is not YAML: %w", err)
	}
	return parseJSON(ctx, run, string(converted))
}

// countAny counts the characters of a set in a text.
func countAny(text, set string) int {
	total := 0
	for i := range len(set) {
		total += strings.Count(text, set[i:i+1])
	}
	return total
}
