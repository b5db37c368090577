// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import "context"

// nothing is a part for which there is nothing to merge: a variable that is an empty map,
// and maps and lists that have nothing else in them. So {{ x || `{}` }} adds no map. It
// is deleteConditionElements of Kyverno's pkg/engine/mutate/patch, which takes all empty
// maps from a patch; one that is written, or deeper in the value of a variable, means
// something, as in emptyDir: {}, and stays.
type nothing struct{}

func (nothing) traits() traits                                      { return traits{} }
func (n nothing) resolve(context.Context, *rendering) (part, error) { return n, nil }

// isNothing says whether there is nothing to merge for the value of a variable.
func isNothing(value any) bool {
	object, ok := value.(map[string]any)
	return ok && len(object) == 0
}

// empty says whether a field has nothing to merge, and notes it.
func (m *mapping) empty(p part) bool {
	_, empty := p.(nothing)
	m.emptied = m.emptied || empty
	return empty
}
