// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"errors"
	"fmt"
	"strings"

	upstream "github.com/kyverno/go-jmespath"
)

const (
	// maxText is the length of the longest expression.
	maxText = 16 << 10
	// maxDepth is how deep expressions, their literals, and the values that they make
	// or compare may be nested.
	maxDepth = 512
)

// parse returns the syntax tree of an expression.
func parse(text string) (tree upstream.ASTNode, err error) {
	if len(text) > maxText {
		return tree, fmt.Errorf("the expression has %d bytes, more than the %d that are allowed", len(text), maxText)
	}
	if nesting(text) > maxDepth {
		return tree, errTooDeep()
	}
	defer func() {
		// The parser indexes its tokens without asking how many there are.
		if recover() != nil {
			err = fmt.Errorf("at character %d: the expression ends too early", len(text)+1)
		}
	}()
	tree, err = upstream.NewParser().Parse(text)
	if err == nil {
		return tree, nil
	}
	if mistake, ok := errors.AsType[upstream.SyntaxError](err); ok {
		message := strings.TrimPrefix(mistake.Error(), "SyntaxError: ")
		if message == "Error" {
			message = "Unexpected token"
		}
		return tree, fmt.Errorf("at character %d: %s", mistake.Offset+1, readable(message))
	}
	return tree, fmt.Errorf("a literal, a number or a quoted name in it: %w", err)
}

func errTooDeep() error {
	return fmt.Errorf("the expression is nested deeper than %d", maxDepth)
}

// readable puts the characters of the text where the parser names its tokens.
func readable(message string) string {
	return strings.NewReplacer(
		"tUnknown", "an unknown token", "tEOF", "the end",
		"tUnquotedIdentifier", "a name", "tQuotedIdentifier", "a quoted name",
		"tJSONLiteral", "a literal", "tStringLiteral", "a string", "tNumber", "a number",
		"tStar", `"*"`, "tDot", `"."`, "tFilter", `"[?"`, "tFlatten", `"[]"`,
		"tLparen", `"("`, "tRparen", `")"`, "tLbracket", `"["`, "tRbracket", `"]"`,
		"tLbrace", `"{"`, "tRbrace", `"}"`, "tOr", `"||"`, "tPipe", `"|"`,
		"tComma", `","`, "tColon", `":"`, "tLTE", `"<="`, "tLT", `"<"`, "tGTE", `">="`, "tGT", `">"`,
		"tEQ", `"=="`, "tNE", `"!="`, "tCurrent", `"@"`, "tExpref", `"&"`, "tAnd", `"&&"`, "tNot", `"!"`,
	).Replace(message)
}

// nesting returns how deep the parser may have to recurse for a text, or more: brackets
// that are open at once, and all that opens something without closing it.
func nesting(text string) int {
	open, deepest, prefixes := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'', '"', '`':
			i = endOfQuote(text, i)
		case '(', '[', '{':
			open++
			deepest = max(deepest, open)
		case ')', ']', '}':
			open--
		case '*', '?':
			prefixes++
		case ':':
			// Of a slice: those of objects do not nest.
			if i+1 < len(text) && (text[i+1] == ']' || text[i+1] == ':' || text[i+1] == '-') {
				prefixes++
			}
		case '!', '&':
			if i+1 < len(text) && (text[i+1] == '=' || text[i+1] == '&') {
				i++
				continue
			}
			prefixes++
		}
	}
	return deepest + prefixes
}

// endOfQuote returns the place of the quote that closes the one at start, as the lexer
// finds it, or the end of the text.
func endOfQuote(text string, start int) int {
	quote := text[start]
	for i := start + 1; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && (quote != '\'' || i+1 < len(text) && text[i+1] == quote):
			i++
		}
	}
	return len(text)
}
