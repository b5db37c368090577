// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "strings"

const (
	// longestNumber is not below the text of a number, a time or a duration that string
	// makes, nor below that of an address.
	longestNumber = 64
	// longestVerb is not below what format makes of a value that is not text, %f with
	// the digits grouped included, unless a precision is given.
	longestVerb = 512
	// longestEscape is how many bytes %q makes of one at most.
	longestEscape = 4
	// longestComplaint and mostComplaints bound what formats find to say of a text,
	// which they may quote once as a whole and once in part.
	longestComplaint = 4096
	mostComplaints   = 64
)

func same(c *call) value { return c.arg(0) }

func sameNumber(c *call) value { return value{values: 1, atMost: c.arg(0).atMost} }

func part(c *call) value { return c.arg(0).element() }

func either(c *call) value { return c.arg(0).or(c.arg(1)) }

func sum(c *call) value { return c.arg(0).concatenated(c.arg(1)) }

func length(c *call) value { return value{values: 1, atMost: c.arg(0).size()} }

// inserted bounds cel.@mapInsert(map, key, value) and cel.@mapInsert(map, map).
func inserted(c *call) value {
	if len(c.args) != 3 {
		return c.arg(0).concatenated(c.arg(1))
	}
	all := c.arg(0).with(c.arg(1)).with(c.arg(2))
	all.length = plus(all.length, 1)
	return all
}

// printed bounds string(x), which refuses lists and maps.
func printed(c *call) value { return text(max(c.arg(0).text, longestNumber)) }

// rewritten bounds functions that make a text character by character: what is not
// valid UTF-8 becomes a character of three bytes, and quoting adds two.
func rewritten(c *call) value { return text(plus(2, times(3, c.arg(0).text))) }

// character is one rune.
func character(*call) value { return text(4) }

// formatted bounds string.format of ext.Strings.
func formatted(c *call) value {
	layout, ok := c.literalText(0)
	if !ok {
		return text(unbounded)
	}
	args := c.arg(1)
	size := plus(uint64(len(layout)), times(longestEscape, args.bytes))
	size = plus(size, times(longestVerb, args.values))
	return text(plus(size, precisions(layout)))
}

// precisions adds up the precisions that layout asks for: each verb adds no more
// digits than that.
func precisions(layout string) uint64 {
	all := uint64(0)
	for {
		_, rest, found := strings.Cut(layout, ".")
		if !found {
			return all
		}
		digits := uint64(0)
		for len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9' {
			digits = plus(times(10, digits), uint64(rest[0]-'0'))
			rest = rest[1:]
		}
		all = plus(all, digits)
		layout = rest
	}
}

// replaced bounds text.replace(old, new) and text.replace(old, new, limit).
func replaced(c *call) value {
	size := c.arg(0).text
	count := plus(size, 1)
	if old, ok := c.literalText(1); ok && old != "" {
		count = size / uint64(len(old))
	}
	if limit, ok := c.literalCount(3); ok {
		count = min(count, limit)
	}
	return text(plus(size, times(count, c.arg(2).text)))
}

// split bounds text.split(separator) and text.split(separator, limit).
func split(c *call) value {
	size := c.arg(0).text
	count := plus(size, 1)
	if limit, ok := c.literalCount(2); ok {
		count = min(count, limit)
	}
	return texts(count, size, size)
}

// matches bounds text.findAll(pattern).
func matches(c *call) value {
	size := c.arg(0).text
	return texts(plus(size, 1), size, size)
}

// joined bounds list.join() and list.join(separator), which take only text.
func joined(c *call) value {
	list := c.arg(0)
	elements := min(list.bytes, times(list.length, list.innerText))
	return text(plus(elements, times(list.length, c.arg(1).text)))
}

// flattened bounds list.flatten(depth): no more elements than values within.
func flattened(c *call) value {
	list := c.arg(0)
	list.length = list.values
	list.loop, list.object = 0, false
	return list
}

// counted bounds lists.range(n) of a number that is known.
func counted(c *call) value {
	n := c.arg(0).atMost
	if n == 0 {
		n = unbounded
	}
	return value{length: n, values: plus(n, 1)}
}

// parts bounds a URL with all that its functions take from it: the text escaped, and
// the values of each key of the query.
func parts(c *call) value {
	size := plus(2, times(3, c.arg(0).text))
	return value{
		length: size, innerText: size, innerLength: size,
		values: times(4, size), bytes: times(2, size),
	}
}

// address bounds an IP address or CIDR, which has a size.
func address(*call) value { return text(longestAddress) }

// complaints bounds the list that validate returns.
func complaints(c *call) value {
	size := plus(longestComplaint, times(2*longestEscape, c.arg(1).text))
	return texts(mostComplaints, size, times(mostComplaints, size))
}
