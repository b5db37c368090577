// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// Tally measures data that is not there as one value: it comes to what Measure
// returns for the map that the pieces would make. The zero value is that of no data.
type Tally struct {
	rest    tally
	unknown bool
}

// Map counts a map of so many fields, which come next.
func (t *Tally) Map(fields int) {
	t.rest.length = max(t.rest.length, fields)
	t.rest.values++
}

// Key counts the key of a field, whose value comes next.
func (t *Tally) Key(key string) {
	t.rest.values++
	t.rest.addText(key)
}

// Text counts a field with a text.
func (t *Tally) Text(key, text string) {
	t.Key(key)
	t.rest.values++
	t.rest.addText(text)
}

// Texts counts a field with a list of texts.
func (t *Tally) Texts(key string, list []string) {
	t.Key(key)
	t.rest.values++
	t.rest.addTexts(list)
}

// Field counts a field with a value that Measure takes.
func (t *Tally) Field(key string, value any) {
	t.Key(key)
	if !t.rest.add(value, maxDepth-1) {
		t.unknown = true
	}
}

// Sizes returns what has been counted.
func (t *Tally) Sizes() Sizes {
	if t.unknown {
		return Sizes{}
	}
	return Sizes{metadata: tally{}.extent(), rest: t.rest.extent()}
}
