// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"strings"

	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/cel/library"
)

// longestAddress is not below the size of an IP address or CIDR.
const longestAddress = 64

func free(*call) uint64 { return 0 }

func fixed(*call) uint64 { return 1 }

func scanOnce(c *call) uint64 { return traversal(c.arg(0).size()) }

func scanTwice(c *call) uint64 { return traversal(times(2, c.arg(0).size())) }

func scanSecond(c *call) uint64 { return traversal(c.arg(1).size()) }

func scanBoth(c *call) uint64 { return traversal(plus(c.arg(0).size(), c.arg(1).size())) }

func scanAll(c *call) uint64 { return c.arg(0).scan() }

func scanResultTwice(c *call) uint64 { return traversal(times(2, joined(c).size())) }

func scanEachOfOther(c *call) uint64 {
	return times(traversal(c.arg(0).size()), traversal(c.arg(1).size()))
}

func secondSize(c *call) uint64 { return c.arg(1).size() }

func lesser(c *call) uint64 { return traversal(min(c.arg(0).size(), c.arg(1).size())) }

func match(c *call) uint64 {
	return times(traversal(plus(1, c.arg(0).size())), pattern(c.arg(1).size()))
}

// allocated is the price of a list that is no longer than the first argument:
// trackAllocatingListCall of ext.Lists.
func allocated(c *call) uint64 { return allocation(c.arg(0).size()) }

func allocation(size uint64) uint64 { return plus(size, 1+common.ListCreateBaseCost) }

// flattening needs the depth as a number: the tracker panics where it is an error.
func flattening(c *call) uint64 {
	depth, ok := c.literalCount(1)
	if !ok {
		return unbounded
	}
	return allocation(times(max(depth, 1), c.arg(0).size()))
}

func ranging(c *call) uint64 { return allocation(counted(c).size()) }

// compareAll is trackSetsCost of ext.Sets.
func compareAll(c *call) uint64 { return plus(1, times(c.arg(0).size(), c.arg(1).size())) }

func compareAllTwice(c *call) uint64 { return plus(compareAll(c), compareAll(c)) }

// contained bounds containsIP and containsCIDR, which scan the first argument three
// times and the second one if it is text.
func contained(c *call) uint64 {
	return plus(traversal(times(3, c.arg(0).size())), plus(2, traversal(c.arg(1).size())))
}

// validation is the price of a regular expression as long as the format says.
func validation(c *call) uint64 {
	return times(traversal(plus(1, c.arg(1).size())), pattern(formatSize(c.argument(0))))
}

// formatSize returns MaxRegexSize of the format that expr names, or the largest one.
func formatSize(expr celast.Expr) uint64 {
	if expr != nil && expr.Kind() == celast.CallKind {
		name, _ := strings.CutPrefix(expr.AsCall().FunctionName(), "format.")
		if format, found := library.ConstantFormats[name]; found {
			return uint64(max(format.MaxRegexSize, 0))
		}
	}
	longest := 0
	for _, format := range library.ConstantFormats {
		longest = max(longest, format.MaxRegexSize)
	}
	return uint64(longest)
}
