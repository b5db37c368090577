// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import "fmt"

// refusable says what of a changed object an API server refuses with an error that names
// no policy, or nothing: labels and annotations that are no texts, as an unquoted number
// in an overlay is none. Rules are applied all the same, as Kyverno applies them. Which
// keys these are is left out: they may come from what the caller may not read.
func refusable(r *rule, object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range [...]string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for _, value := range values {
			if _, ok := value.(string); !ok && value != nil {
				return fmt.Sprintf("rule %q: after it, metadata.%s have a value that is no text, which the API server refuses: quote it", r.name, field)
			}
		}
	}
	return ""
}
