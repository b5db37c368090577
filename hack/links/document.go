// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// document is what links lead from and to.
type document struct {
	links   []link
	anchors map[string]bool
}

type link struct {
	line   int
	target string
}

// parse reads Markdown, of which it knows headings with #, links in a line, and blocks
// and pieces of code, in which nothing is a link.
func parse(content string) document {
	target := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code := regexp.MustCompile("`+[^`]*`+")
	heading := regexp.MustCompile(`^#+ +(.*)$`)

	d := document{anchors: map[string]bool{}}
	fenced := false
	for i, text := range strings.Split(content, "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if found := heading.FindStringSubmatch(text); found != nil {
			d.add(anchor(found[1]))
		}
		// The text of a link may be code, its target is not.
		for _, found := range target.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			d.links = append(d.links, link{i + 1, found[1]})
		}
	}
	return d
}

// add adds the anchor of a heading. Those of equal headings are numbered.
func (d document) add(anchor string) {
	name := anchor
	for i := 1; d.anchors[name]; i++ {
		name = fmt.Sprintf("%s-%d", anchor, i)
	}
	d.anchors[name] = true
}

// anchor is the name that GitHub gives to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
