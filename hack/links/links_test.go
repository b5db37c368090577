// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestRun(t *testing.T) {
	const guide = "# Guide\n## What is `x`, and why?\n## Twice\n## Twice\n```sh\n# no heading\n[a](no-link)\n```\n"
	tests := []struct{ name, content, want string }{
		{"files and folders", "[a](docs/guide.md) [b](docs) [c](docs/guide.md#guide)\n[d](https://example.com/x#y)", ""},
		{"headings", "# Here\n[a](#here) [b](docs/guide.md#what-is-x-and-why) [c](docs/guide.md#twice) [d](docs/guide.md#twice-1)", ""},
		{"code", "`[a](nowhere)`\n  ```\n[a](nowhere)\n  ```\n", ""},
		{"code as the text of a link", "[`a`](nowhere)", "page.md:1: the link to nowhere: there is no nowhere"},
		{"no file", "\n[a](docs/none.md)", "page.md:2: the link to docs/none.md: there is no docs/none.md"},
		{"out of the repository", "[a](../README.md)", "page.md:1: the link to ../README.md: there is no ../README.md"},
		{"no heading", "[a](#none)\n[b](docs/guide.md#no-heading)", "page.md:1: the link to #none: page.md has no heading for #none\npage.md:2: the link to docs/guide.md#no-heading: docs/guide.md has no heading for #no-heading"},
		{"a heading of a folder", "[a](docs#guide)", "page.md:1: the link to docs#guide: docs has no heading for #guide"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := run(fstest.MapFS{
				"page.md":       {Data: []byte(tc.content)},
				"docs/guide.md": {Data: []byte(guide + "[back](../page.md)\n")},
				".data/old.md":  {Data: []byte("[a](nowhere)")},
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestRepository finds no link that leads nowhere in the documents as they are.
func TestRepository(t *testing.T) {
	if err := run(os.DirFS("../..")); err != nil {
		t.Error(err)
	}
}
