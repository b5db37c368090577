// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// value bounds the sizes of all values that an expression can have. An optional
// has the bounds of the value in it.
type value struct {
	// text and length are the bytes of the value if it is a string or bytes, and its
	// entries if it is a list or a map.
	text, length uint64
	// innerText and innerLength bound the same of every value within a list or a map,
	// keys included, however deep.
	innerText, innerLength uint64
	// values and bytes count the value with all that is within: values, keys
	// included, and bytes of text.
	values, bytes uint64
	// atMost bounds the value if it is an integer; 0: nothing is known.
	atMost uint64
	// loop is the loop whose current element the value is a part of, counted from 1;
	// 0: none.
	loop int
	// object says that the value is one of the objects of the request as a whole, of
	// which more is known field by field.
	object bool
}

func anything() value {
	return value{
		text: unbounded, length: unbounded, innerText: unbounded, innerLength: unbounded,
		values: unbounded, bytes: unbounded,
	}
}

func scalar() value {
	return value{values: 1}
}

func text(size uint64) value {
	return value{text: size, values: 1, bytes: size}
}

// texts is a list of at most length strings of at most longest bytes each and of
// total bytes together.
func texts(length, longest, total uint64) value {
	return value{length: length, innerText: longest, values: plus(length, 1), bytes: total}
}

// size bounds what the size functions of cel-go and Kubernetes return for the value:
// 1 for everything that has no size, errors included.
func (v value) size() uint64 {
	return max(v.text, v.length, 1)
}

// scan bounds traversalCost of k8s.io/apiserver/pkg/cel/library/cost.go.
func (v value) scan() uint64 {
	return plus(v.values, traversal(v.bytes))
}

// element bounds every element, key and value of a field.
func (v value) element() value {
	v.text, v.length = v.innerText, v.innerLength
	v.atMost, v.object = 0, false
	return v
}

// or bounds a value that is one of v and other.
func (v value) or(other value) value {
	either := value{
		text: max(v.text, other.text), length: max(v.length, other.length),
		innerText: max(v.innerText, other.innerText), innerLength: max(v.innerLength, other.innerLength),
		values: max(v.values, other.values), bytes: max(v.bytes, other.bytes),
		object: v.object && other.object,
	}
	if v.atMost != 0 && other.atMost != 0 {
		either.atMost = max(v.atMost, other.atMost)
	}
	// What has no entries has no element that a loop could take from elsewhere.
	switch {
	case v.loop == other.loop || other.length == 0:
		either.loop = v.loop
	case v.length == 0:
		either.loop = other.loop
	}
	return either
}

// concatenated bounds the sum of v and other: a string, bytes, a list or a number.
func (v value) concatenated(other value) value {
	sum := value{
		text: plus(v.text, other.text), length: plus(v.length, other.length),
		innerText: max(v.innerText, other.innerText), innerLength: max(v.innerLength, other.innerLength),
		values: plus(v.values, other.values), bytes: plus(v.bytes, other.bytes),
	}
	if v.atMost != 0 && other.atMost != 0 {
		sum.atMost = plus(v.atMost, other.atMost)
	}
	return sum
}

// with bounds the list or map v after one more entry, or a part of one, was put in.
func (v value) with(part value) value {
	v.innerText = max(v.innerText, part.text, part.innerText)
	v.innerLength = max(v.innerLength, part.length, part.innerLength)
	v.values = plus(v.values, part.values)
	v.bytes = plus(v.bytes, part.bytes)
	v.loop, v.object = 0, false
	return v
}

// grown bounds what n rounds of a loop make of an accumulator when v is what the
// first of them makes of it, and no round adds more than that.
func (v value) grown(n uint64) value {
	if v.length == 0 && v.text == 0 {
		return scalar()
	}
	return value{
		text: times(v.text, n), length: times(v.length, n),
		innerText: v.innerText, innerLength: v.innerLength,
		values: times(v.values, n), bytes: times(v.bytes, n),
	}
}
