// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"strings"
)

// choices makes decisions out of bytes, the first of them once there are no more.
type choices struct {
	bytes []byte
	// loops counts the variables of the macros around.
	loops int
}

func (c *choices) below(n int) int {
	if len(c.bytes) == 0 {
		return 0
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return int(b) % n
}

func (c *choices) of(alternatives ...string) string {
	return alternatives[c.below(len(alternatives))]
}

// keys are few, so that expressions meet the data.
func (c *choices) key() string { return c.of("a", "b", "c", "d") }

// object returns random data of at most depth levels.
func (c *choices) object(depth int) map[string]any {
	object := map[string]any{}
	for range c.below(4) + 2 {
		object[c.key()] = c.data(depth - 1)
	}
	return object
}

func (c *choices) data(depth int) any {
	kind := c.below(9)
	if depth <= 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return c.words()
	case 1:
		return int64(c.below(256))
	case 2:
		return c.below(2) == 0
	case 3:
		return nil
	case 4:
		return c.of("10Gi", "10.0.0.1", "10.0.0.0/8", "https://example.com/a?b=c", "1.2.3", "2020-01-01T00:00:00Z", "1h", "x")
	case 5, 6:
		list := []any{}
		for range c.below(12) {
			list = append(list, c.data(depth-1))
		}
		return list
	default:
		return c.object(depth)
	}
}

func (c *choices) words() string {
	return strings.Repeat(c.of("a", "bc", "é", "\x00", "a b,", "\U0001F600", `"\`, "10.0.0.1/8"), c.below(80))
}

// local returns the name of a variable of a macro around, or some data.
func (c *choices) local() string {
	if c.loops == 0 {
		return "object"
	}
	return fmt.Sprintf("x%d", c.below(c.loops))
}

// path returns an expression of any type that reads data.
func (c *choices) path(depth int) string {
	root := c.of("object", "oldObject", "request", "params", "variables.v", "variables.w", "local", "local", "local", "local")
	if root == "local" {
		root = c.local()
	}
	for range c.below(3) {
		switch c.below(7) {
		case 0:
			root += fmt.Sprintf("[%d]", c.below(3))
		case 1:
			root += "['" + c.key() + "']"
		case 2:
			root = "(" + root + ".?" + c.key() + ".orValue(" + c.any(depth-1) + "))"
		case 3:
			root += "[" + c.any(depth-1) + "]"
		default:
			root += "." + c.key()
		}
	}
	return root
}

// any returns an expression of any type.
func (c *choices) any(depth int) string {
	if depth <= 0 {
		return c.of("object.a", "object.b", "'a'", "1", "true", "[1, 2]", "{'a': 1}", c.local())
	}
	switch c.below(8) {
	case 0:
		return c.text(depth)
	case 1:
		return c.number(depth)
	case 2:
		return c.boolean(depth)
	case 3:
		return c.list(depth)
	case 4:
		return c.mapping(depth)
	case 5:
		return "(" + c.boolean(depth-1) + " ? " + c.any(depth-1) + " : " + c.any(depth-1) + ")"
	case 6:
		return c.optional(depth)
	default:
		return c.path(depth)
	}
}

func (c *choices) optional(depth int) string {
	opt := c.of(
		"optional.of("+c.any(depth-1)+")",
		"optional.ofNonZeroValue("+c.any(depth-1)+")",
		"object.?a",
		"object.?b.?c",
		c.local()+".?a",
		"optional.none()",
		"["+c.text(depth-1)+"].first()",
	)
	switch c.below(6) {
	case 0:
		return opt + ".value()"
	case 1:
		return opt + ".orValue(" + c.any(depth-1) + ")"
	case 2:
		return opt + c.bind(".optMap", depth, c.any)
	case 3:
		return opt + c.bind(".optFlatMap", depth, c.optional)
	case 4:
		return opt + ".or(object.?c)"
	default:
		return opt + c.bind(".optMap", depth, c.any) + ".orValue(" + c.any(depth-1) + ")"
	}
}

// bind returns the call of a macro with one variable and a body.
func (c *choices) bind(macro string, depth int, body func(int) string) string {
	name := fmt.Sprintf("x%d", c.loops)
	c.loops++
	defer func() { c.loops-- }()
	return macro + "(" + name + ", " + body(depth-1) + ")"
}

// bindTwo returns the call of a macro with two variables and a body.
func (c *choices) bindTwo(macro string, depth int, body func(int) string) string {
	name, second := fmt.Sprintf("x%d", c.loops), fmt.Sprintf("x%d", c.loops+1)
	c.loops += 2
	defer func() { c.loops -= 2 }()
	return macro + "(" + name + ", " + second + ", " + body(depth-1) + ")"
}

func (c *choices) text(depth int) string {
	if depth <= 0 {
		return c.of("'a'", "'abc'", "''", "object.a", "string(object.b)", c.local())
	}
	t := func() string { return c.text(depth - 1) }
	switch c.below(18) {
	case 0:
		return "(" + t() + " + " + t() + ")"
	case 1:
		return "string(" + c.any(depth-1) + ")"
	case 2:
		return t() + ".lowerAscii()"
	case 3:
		return t() + ".upperAscii()"
	case 4:
		return t() + ".trim()"
	case 5:
		return t() + ".substring(" + c.of("0", "1", "1, 2", "0, 5") + ")"
	case 6:
		return t() + ".replace(" + c.of("''", "'a'", "'bc'", t()) + ", " + t() + c.of("", ", 2", ", -1", ", 0") + ")"
	case 7:
		return c.list(depth-1) + ".join(" + c.of("", "', '", t()) + ")"
	case 8:
		return "'%s and %s'.format([" + c.any(depth-1) + ", " + c.any(depth-1) + "])"
	case 9:
		return c.of("'%d'", "'%.3f'", "'%x'", "'%e'", "'%b'", "'%X'", "'%o'") + ".format([" + c.any(depth-1) + "])"
	case 10:
		return "strings.quote(" + t() + ")"
	case 11:
		return t() + ".charAt(" + c.number(depth-1) + ")"
	case 12:
		return t() + ".find(" + c.of("'a+'", "'[a-z]*'", "'(a|b)c'", t()) + ")"
	case 13:
		return "url(" + t() + ")" + c.of(".getHost()", ".getScheme()", ".getEscapedPath()", ".getPort()", ".getHostname()")
	case 14:
		return "jsonpatch.escapeKey(" + t() + ")"
	case 15:
		return "string(" + c.of("ip('10.0.0.1')", "cidr('10.0.0.0/8').masked()", "cidr(object.a).ip()", "ip(object.b)", "bytes("+t()+")") + ")"
	case 16:
		return c.path(depth)
	default:
		return "dyn(" + t() + ")"
	}
}

func (c *choices) number(depth int) string {
	if depth <= 0 {
		return c.of("1", "2", "object.c", c.local())
	}
	switch c.below(10) {
	case 0:
		return "size(" + c.any(depth-1) + ")"
	case 1:
		return c.list(depth-1) + ".size()"
	case 2:
		return "(" + c.number(depth-1) + c.of(" + ", " - ", " * ", " / ", " % ") + c.number(depth-1) + ")"
	case 3:
		return "int(" + c.any(depth-1) + ")"
	case 4:
		return c.list(depth-1) + c.of(".indexOf(", ".lastIndexOf(") + c.any(depth-1) + ")"
	case 5:
		return c.text(depth-1) + c.of(".indexOf(", ".lastIndexOf(") + c.text(depth-1) + ")"
	case 6:
		return c.list(depth-1) + c.of(".sum()", ".min()", ".max()")
	case 7:
		return c.of(
			"quantity(object.a).asInteger()", "sign(quantity('1Gi').add(quantity(object.b)))",
			"semver(object.a).major()", "semver('1.2.3').compareTo(semver(object.b))", "ip(object.a).family()",
			"cidr(object.b).prefixLength()", "timestamp(object.a).getFullYear()", "duration(object.b).getHours()",
		)
	case 8:
		return c.path(depth)
	default:
		return "-" + c.number(depth-1)
	}
}

func (c *choices) boolean(depth int) string {
	if depth <= 0 {
		return c.of("true", "false", "has(object.a)", "object.b == 1")
	}
	switch c.below(17) {
	case 0:
		return "(" + c.boolean(depth-1) + c.of(" && ", " || ") + c.boolean(depth-1) + ")"
	case 1:
		return "!" + c.boolean(depth-1)
	case 2:
		return "(" + c.any(depth-1) + c.of(" == ", " != ") + c.any(depth-1) + ")"
	case 3:
		return "(" + c.any(depth-1) + c.of(" < ", " <= ", " > ", " >= ") + c.any(depth-1) + ")"
	case 4:
		return "(" + c.text(depth-1) + c.of(" < ", " >= ", " == ") + c.text(depth-1) + ")"
	case 5:
		return "(" + c.any(depth-1) + " in " + c.of(c.list(depth-1), c.path(depth-1), c.mapping(depth-1)) + ")"
	case 6:
		return "has(" + c.of("object", "oldObject", "variables.v", c.local()) + "." + c.key() + c.of("", ".a", ".b") + ")"
	case 7:
		return c.text(depth-1) + c.of(".startsWith(", ".endsWith(", ".contains(", ".matches(") + c.text(depth-1) + ")"
	case 8:
		return c.text(depth-1) + ".matches(" + c.of("'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'", "'a'", "''") + ")"
	case 9, 10:
		return c.of(c.path(depth), c.list(depth-1), c.mapping(depth-1)) +
			c.bind(c.of(".all", ".exists", ".exists_one", ".all", ".exists"), depth, c.boolean)
	case 11:
		return c.of(c.path(depth), c.list(depth-1), c.mapping(depth-1)) +
			c.bindTwo(c.of(".all", ".exists", ".existsOne", ".exists_one"), depth, c.boolean)
	case 12:
		return "sets." + c.of("contains", "equivalent", "intersects") + "(" + c.list(depth-1) + ", " + c.list(depth-1) + ")"
	case 13:
		return c.of("isQuantity(", "isIP(", "isCIDR(", "isSemver(", "isURL(", "ip.isCanonical(") + c.text(depth-1) + ")"
	case 14:
		return c.of(
			"cidr('10.0.0.0/8').containsIP("+c.text(depth-1)+")", "cidr('10.0.0.0/8').containsCIDR("+c.text(depth-1)+")",
			"cidr('::/0').containsIP(ip(object.a))", "quantity(object.a).isGreaterThan(quantity('1'))",
			"ip(object.a).isLoopback()", "(ip(object.a) == ip('::1'))", "(url(object.a) == url(object.b))",
			"semver(object.a).isLessThan(semver('1.0.0'))", "(quantity('1') == quantity(object.a))", "object.?a.hasValue()",
		)
	case 15:
		return c.of(c.list(depth-1)+".isSorted()", "("+c.any(depth-1)+").includes("+c.any(depth-1)+")", "(type("+c.any(depth-1)+") == string)")
	default:
		return "format." + c.of("dns1123Label", "uri", "date", "qualifiedName", "named('uuid').value") +
			"().validate(" + c.text(depth-1) + ").hasValue()"
	}
}

func (c *choices) list(depth int) string {
	if depth <= 0 {
		return c.of("[1, 2, 3]", "['a', 'b']", "[]", "object.d", c.local())
	}
	switch c.below(17) {
	case 0:
		return "[" + c.any(depth-1) + ", " + c.any(depth-1) + "]"
	case 1:
		return "(" + c.list(depth-1) + " + " + c.list(depth-1) + ")"
	case 2, 3:
		return c.of(c.list(depth-1), c.path(depth), c.mapping(depth-1)) + c.bind(".map", depth, c.any)
	case 4:
		return c.of(c.list(depth-1), c.path(depth)) + c.bind(".filter", depth, c.boolean)
	case 5:
		return c.list(depth-1) + c.bind(".map", depth, func(depth int) string {
			return c.boolean(depth-1) + ", " + c.any(depth-1)
		})
	case 6:
		return c.of(c.list(depth-1), c.path(depth)) + c.bindTwo(".transformList", depth, c.any)
	case 7:
		return c.text(depth-1) + ".split(" + c.of("''", "','", c.text(depth-1)) + c.of("", ", 2", ", -1") + ")"
	case 8:
		return c.text(depth-1) + ".findAll(" + c.of("'a'", "''", "'[a-z]+'") + c.of("", ", 3") + ")"
	case 9:
		return c.list(depth-1) + ".flatten(" + c.of("", "1", "2", c.number(depth-1)) + ")"
	case 10:
		return "lists.range(" + c.of("3", "size("+c.any(depth-1)+")", "size(object) + 2", c.number(depth-1)) + ")"
	case 11:
		return c.list(depth-1) + ".slice(0, " + c.of("1", "0", "2") + ")"
	case 12:
		return c.list(depth-1) + ".reverse()"
	case 13:
		return c.list(depth-1) + c.of(".distinct()", ".sort()", ".sortBy(y, y)")
	case 14:
		return "[" + c.optional(depth-1) + "].unwrapOpt()"
	case 15:
		return "[?object.?a, " + c.any(depth-1) + "]"
	default:
		return c.path(depth)
	}
}

func (c *choices) mapping(depth int) string {
	if depth <= 0 {
		return c.of("{'a': 1, 'b': 2}", "{}", "object")
	}
	switch c.below(6) {
	case 0:
		return "{" + c.text(depth-1) + ": " + c.any(depth-1) + ", 'b': " + c.any(depth-1) + "}"
	case 1:
		return c.of(c.list(depth-1), c.path(depth), c.mapping(depth-1)) + c.bindTwo(".transformMap", depth, c.any)
	case 2:
		return c.of(c.list(depth-1), c.path(depth)) + c.bindTwo(".transformMapEntry", depth, func(depth int) string {
			return "{string(" + c.local() + "): " + c.any(depth) + "}"
		})
	case 3:
		return "url(" + c.text(depth-1) + ").getQuery()"
	case 4:
		return "{?'a': object.?a, 'c': " + c.any(depth-1) + "}"
	default:
		return c.path(depth)
	}
}
