// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxFields is how many fields of an element are looked at to see which elements
	// belong together.
	maxFields = 32
	// identifying is how much more the same name says than the same value of another
	// field.
	identifying = 8
)

// digest is what is known of an element to see whether another is like it. Two
// different elements can have the same: they are compared before anything is said.
type digest struct {
	whole uint64
	// fields are those of an object, in the order of hash.
	fields []field
	weight int
}

// field stands for a key of an object with its value.
type field struct {
	hash   uint64
	weight int
}

func digests(elements []any) []digest {
	result := make([]digest, len(elements))
	for i, element := range elements {
		result[i] = newDigest(element)
	}
	return result
}

func newDigest(element any) digest {
	object, ok := element.(map[string]any)
	if !ok {
		return digest{whole: hash(element, diffDepth), weight: 1}
	}
	d := digest{weight: 1}
	for key, value := range object {
		one := field{hash: hashField(key, value, diffDepth), weight: 1}
		if key == "name" {
			one.weight = identifying
		}
		d.whole += one.hash
		d.weight += one.weight
		if len(object) <= maxFields {
			d.fields = append(d.fields, one)
		}
	}
	slices.SortFunc(d.fields, func(a, b field) int { return cmp.Compare(a.hash, b.hash) })
	return d
}

// common returns how much two elements have in common.
func (d *digest) common(other *digest) int {
	if d.whole == other.whole && d.weight == other.weight {
		return 2 * d.weight // more than any that are only alike
	}
	sum := 0
	for i, j := 0, 0; i < len(d.fields) && j < len(other.fields); {
		switch cmp.Compare(d.fields[i].hash, other.fields[j].hash) {
		case -1:
			i++
		case 1:
			j++
		default:
			sum += d.fields[i].weight
			i, j = i+1, j+1
		}
	}
	return sum
}

// The constants of FNV-1a.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

func hashUint(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * hashPrime
		v >>= 8
	}
	return h
}

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * hashPrime
	}
	return hashUint(h, uint64(len(s)))
}

func hashField(key string, value any, depth int) uint64 {
	return hashUint(hashString(hashStart, key), hash(value, depth))
}

// hash returns the same number for equal values. It looks at nothing that is deeper
// than depth.
func hash(value any, depth int) uint64 {
	const (
		ofNull = iota + 1
		ofBool
		ofInteger
		ofNumber
		ofString
		ofList
		ofObject
	)
	switch v := value.(type) {
	case bool:
		if v {
			return hashUint(hashStart, ofBool)
		}
		return hashUint(hashStart+1, ofBool)
	case int64:
		return hashUint(hashStart+ofInteger, uint64(v)) //nolint:gosec // any number will do
	case float64:
		if whole, ok := integer(v); ok {
			return hash(whole, depth)
		}
		return hashUint(hashStart+ofNumber, math.Float64bits(v))
	case string:
		return hashString(hashStart+ofString, v)
	case []any:
		h := hashUint(hashStart+ofList, uint64(len(v)))
		if depth > 0 {
			for _, inner := range v {
				h = hashUint(h, hash(inner, depth-1))
			}
		}
		return h
	case map[string]any:
		h := hashUint(hashStart+ofObject, uint64(len(v)))
		if depth > 0 {
			for key, inner := range v {
				h += hashField(key, inner, depth-1) // in any order
			}
		}
		return h
	}
	return hashUint(hashStart, ofNull)
}
