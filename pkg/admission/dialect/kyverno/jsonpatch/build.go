// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"maps"
	"slices"
	"strings"
)

// builder makes the nodes of a form.
type builder struct {
	*marks
	// plain says which variables stand in scalars without quotes.
	plain []bool
	// json says that the text is JSON.
	json bool
	// seen says which variables have been found.
	seen []bool
}

// complete says whether all variables were found: one in a comment, a key, or a number
// was not.
func (b *builder) complete() bool { return !slices.Contains(b.seen, false) }

// entry makes an operation of a form, and says what can be known to be wrong with it.
func (b *builder) entry(decoded any) (entry, error) {
	fields, ok := decoded.(map[string]any)
	for key := range fields {
		if b.pieces(key) != nil {
			return entry{}, nil // it is not complete
		}
	}
	n := b.node(decoded)
	if n == nil {
		fixed, err := operation(decoded)
		return entry{operation: fixed}, err
	}
	if !ok {
		return entry{node: n}, nil
	}
	known := Operation{}
	probe := maps.Clone(fields)
	for name, field := range map[string]*string{"op": &known.Op, "path": &known.Path, "from": &known.From} {
		value, ok := fields[name]
		if !ok {
			continue
		}
		if b.node(value) == nil {
			*field, _ = value.(string)
			continue
		}
		probe[name] = b.likely(value)
	}
	if known.Op == "" && b.node(fields["op"]) != nil {
		return entry{operation: known, node: n}, nil
	}
	_, err := operation(probe)
	return entry{operation: known, node: n}, err
}

// likely returns a path that a value with variables could become, and nothing for one
// of another form.
func (b *builder) likely(value any) any {
	text, ok := value.(string)
	if !ok {
		return ""
	}
	pieces := b.pieces(text)
	if pieces[0].literal == "" {
		return ""
	}
	var path strings.Builder
	for _, p := range pieces {
		path.WriteString(p.literal)
		if p.literal == "" {
			path.WriteByte('0')
		}
	}
	return path.String()
}

// node makes the node of a decoded value. It is nil when there is no variable in it.
func (b *builder) node(value any) node {
	switch value := value.(type) {
	case int64:
		if variable, ok := b.number(value); ok {
			b.seen[variable] = true
			return &whole{variable: variable, json: b.json}
		}
	case string:
		return b.textNode(value)
	case []any:
		result := &listNode{base: value, items: map[int]node{}}
		for i, inner := range value {
			if n := b.node(inner); n != nil {
				result.items[i] = n
			}
		}
		if len(result.items) > 0 {
			return result
		}
	case map[string]any:
		result := &objectNode{base: value}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if n := b.node(value[key]); n != nil {
				result.fields = append(result.fields, fieldNode{key: key, node: n})
			}
		}
		if len(result.fields) > 0 {
			return result
		}
	}
	return nil
}

func (b *builder) textNode(text string) node {
	pieces := b.pieces(text)
	if pieces == nil {
		return nil
	}
	result := &mixed{pieces: pieces}
	for _, p := range pieces {
		if p.literal == "" {
			b.seen[p.variable] = true
			result.plain = result.plain || b.plain[p.variable]
		}
	}
	return result
}
