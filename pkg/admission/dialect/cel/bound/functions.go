// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

const (
	mapInsert = "cel.@mapInsert"
	addList   = overloads.AddList
)

// function is what is known of a function under all of its overloads.
type function struct {
	// cost bounds what CostEstimator.CallCost of k8s.io/apiserver/pkg/cel/library, or
	// CostTracker.costCall of cel-go where no overload is needed for it, counts. nil:
	// what overloadCosts says of the overload, or 1.
	cost func(*call) uint64
	// result bounds the result. nil: it has no size of its own.
	result func(*call) value
}

func (f function) price(c *call) uint64 {
	if cost, found := overloadCosts[c.overload]; found {
		return cost(c)
	}
	if f.cost != nil {
		return f.cost(c)
	}
	return 1
}

// functions are the functions that have a bound. Left out are those of the
// authorizer, where a single check costs a third of the budget of an expression,
// and distinct, sort and sortBy of cel-go's ext.Lists: their trackers assert the type
// of an argument (trackListSelfCompare) and panic where it is an error, so that
// tracking shows in the result.
//
//nolint:gochecknoglobals // A table, which is never written.
var functions = map[string]function{
	// Operators: costCall and Observe of cel-go's interpreter/runtimecost.go.
	operators.LogicalAnd:          {cost: free},
	operators.LogicalOr:           {cost: free},
	operators.LogicalNot:          {},
	operators.NotStrictlyFalse:    {},
	operators.Equals:              {cost: lesser},
	operators.NotEquals:           {cost: lesser},
	operators.Less:                {},
	operators.LessEquals:          {},
	operators.Greater:             {},
	operators.GreaterEquals:       {},
	operators.In:                  {},
	operators.Add:                 {result: sum},
	operators.Subtract:            {},
	operators.Multiply:            {},
	operators.Divide:              {},
	operators.Modulo:              {},
	operators.Negate:              {},
	mapInsert:                     {result: inserted},
	overloads.Size:                {result: length},
	overloads.TypeConvertType:     {},
	overloads.TypeConvertDyn:      {result: same},
	overloads.TypeConvertBool:     {},
	overloads.TypeConvertDouble:   {},
	overloads.TypeConvertInt:      {result: sameNumber},
	overloads.TypeConvertUint:     {},
	overloads.TypeConvertDuration: {},
	"timestamp":                   {},
	overloads.TypeConvertString:   {result: printed},
	overloads.TypeConvertBytes:    {result: same},

	// Times: no price of their own in cel-go.
	overloads.TimeGetFullYear:     {},
	overloads.TimeGetMonth:        {},
	overloads.TimeGetDayOfYear:    {},
	overloads.TimeGetDayOfMonth:   {},
	overloads.TimeGetDate:         {},
	overloads.TimeGetDayOfWeek:    {},
	overloads.TimeGetHours:        {},
	overloads.TimeGetMinutes:      {},
	overloads.TimeGetSeconds:      {},
	overloads.TimeGetMilliseconds: {},

	// Text of cel-go's standard library and of ext.Strings.
	overloads.Contains:   {},
	overloads.StartsWith: {},
	overloads.EndsWith:   {},
	overloads.Matches:    {},
	"charAt":             {result: character},
	"format":             {result: formatted},
	"strings.quote":      {result: rewritten},
	"lowerAscii":         {cost: scanOnce, result: rewritten},
	"upperAscii":         {cost: scanOnce, result: rewritten},
	"substring":          {cost: scanOnce, result: rewritten},
	"trim":               {cost: scanOnce, result: same},
	"replace":            {cost: scanTwice, result: replaced},
	"split":              {cost: scanTwice, result: split},
	"join":               {cost: scanResultTwice, result: joined},

	// Lists of k8s.io/apiserver/pkg/cel/library and of cel-go's ext.Lists and ext.Sets.
	"isSorted":        {cost: scanAll},
	"sum":             {cost: scanAll},
	"min":             {cost: scanAll, result: part},
	"max":             {cost: scanAll, result: part},
	"indexOf":         {cost: scanAll},
	"lastIndexOf":     {cost: scanAll},
	"includes":        {cost: scanAll},
	"slice":           {result: same},
	"reverse":         {result: same},
	"flatten":         {result: flattened},
	"lists.range":     {result: counted},
	"first":           {result: part},
	"last":            {result: part},
	"sets.contains":   {},
	"sets.equivalent": {},
	"sets.intersects": {},

	// Optionals of cel-go. A value has the bounds of the optional around it.
	"optional.none":           {},
	"optional.of":             {result: same},
	"optional.ofNonZeroValue": {result: same},
	"optional.unwrap":         {result: same},
	"unwrapOpt":               {result: same},
	"value":                   {result: same},
	"hasValue":                {},
	"or":                      {result: either},
	"orValue":                 {result: either},

	// Regular expressions of k8s.io/apiserver/pkg/cel/library.
	"find":    {cost: match, result: same},
	"findAll": {cost: match, result: matches},

	// URLs of k8s.io/apiserver/pkg/cel/library.
	"url":            {cost: scanOnce, result: parts},
	"isURL":          {},
	"getScheme":      {cost: fixed, result: part},
	"getHost":        {cost: fixed, result: part},
	"getHostname":    {cost: fixed, result: part},
	"getPort":        {cost: fixed, result: part},
	"getEscapedPath": {cost: fixed, result: part},
	"getQuery":       {cost: fixed, result: same},

	// Addresses of k8s.io/apiserver/pkg/cel/library.
	"ip":                   {cost: scanOnce, result: address},
	"cidr":                 {cost: scanOnce, result: address},
	"isIP":                 {cost: scanOnce},
	"isCIDR":               {cost: scanOnce},
	"ip.isCanonical":       {cost: scanTwice},
	"masked":               {cost: fixed, result: address},
	"prefixLength":         {cost: fixed},
	"family":               {cost: fixed},
	"isUnspecified":        {cost: fixed},
	"isLoopback":           {cost: fixed},
	"isLinkLocalMulticast": {cost: fixed},
	"isLinkLocalUnicast":   {cost: fixed},
	"isGlobalUnicast":      {cost: fixed},
	"containsIP":           {cost: contained},
	"containsCIDR":         {cost: contained},

	// Quantities and versions of k8s.io/apiserver/pkg/cel/library.
	"quantity":           {cost: scanOnce},
	"isQuantity":         {cost: scanOnce},
	"sign":               {cost: fixed},
	"asInteger":          {cost: fixed},
	"isInteger":          {cost: fixed},
	"asApproximateFloat": {cost: fixed},
	"isGreaterThan":      {cost: fixed},
	"isLessThan":         {cost: fixed},
	"compareTo":          {cost: fixed},
	"add":                {cost: fixed},
	"sub":                {cost: fixed},
	"semver":             {cost: scanOnce},
	"isSemver":           {cost: scanOnce},
	"major":              {cost: fixed},
	"minor":              {cost: fixed},
	"patch":              {cost: fixed},

	// Formats of k8s.io/apiserver/pkg/cel/library.
	"format.named":                  {cost: fixed},
	"format.byte":                   {},
	"format.date":                   {},
	"format.datetime":               {},
	"format.dns1035Label":           {},
	"format.dns1035LabelPrefix":     {},
	"format.dns1123Label":           {},
	"format.dns1123LabelPrefix":     {},
	"format.dns1123Subdomain":       {},
	"format.dns1123SubdomainPrefix": {},
	"format.labelValue":             {},
	"format.qualifiedName":          {},
	"format.uri":                    {},
	"format.uuid":                   {},
	"validate":                      {cost: validation, result: complaints},

	// Patches of k8s.io/apiserver/pkg/cel/library.
	"jsonpatch.escapeKey": {cost: scanOnce, result: rewritten},
}

// overloadCosts bounds what costs something only under one overload: costCall of
// cel-go's interpreter/runtimecost.go and the trackers of ext.Lists and ext.Sets.
//
//nolint:gochecknoglobals // A table, which is never written.
var overloadCosts = map[string]func(*call) uint64{
	overloads.StartsWithString:    scanSecond,
	overloads.EndsWithString:      scanSecond,
	overloads.StringToBytes:       scanOnce,
	overloads.BytesToString:       scanOnce,
	overloads.ExtQuoteString:      scanOnce,
	overloads.ExtFormatString:     scanOnce,
	overloads.InList:              secondSize,
	overloads.LessString:          lesser,
	overloads.LessEqualsString:    lesser,
	overloads.GreaterString:       lesser,
	overloads.GreaterEqualsString: lesser,
	overloads.LessBytes:           lesser,
	overloads.LessEqualsBytes:     lesser,
	overloads.GreaterBytes:        lesser,
	overloads.GreaterEqualsBytes:  lesser,
	overloads.AddString:           scanBoth,
	overloads.AddBytes:            scanBoth,
	overloads.Matches:             match,
	overloads.MatchesString:       match,
	overloads.ContainsString:      scanEachOfOther,

	"list_slice":                allocated,
	"list_reverse":              allocated,
	"list_flatten":              allocated,
	"list_flatten_int":          flattening,
	"lists_range":               ranging,
	"list_sets_contains_list":   compareAll,
	"list_sets_intersects_list": compareAll,
	"list_sets_equivalent_list": compareAllTwice,
}
