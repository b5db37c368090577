// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command links checks the documents of the repository: each relative link leads to a
// file or folder that is there, and each anchor to a heading. It reads no address of
// the web.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

func main() {
	if err := run(os.DirFS(".")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run returns an error that has all links that lead nowhere, one a line.
func run(root fs.FS) error {
	documents, err := readDocuments(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range documents.names {
		for _, link := range documents.byName[name].links {
			if fault := documents.follow(root, name, link.target); fault != "" {
				errs = append(errs, fmt.Errorf("%s:%d: the link to %s: %s", name, link.line, link.target, fault))
			}
		}
	}
	return errors.Join(errs...)
}

// documents are those of a repository.
type documents struct {
	names  []string // in the order of the alphabet
	byName map[string]document
}

// readDocuments reads all documents below root, but those of folders that begin with a
// dot, as the data of make run does.
func readDocuments(root fs.FS) (documents, error) {
	found := documents{byName: map[string]document{}}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && len(name) > 1 && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		found.names = append(found.names, name)
		found.byName[name] = parse(string(content))
		return nil
	})
	return found, err
}

// follow says why a link of a document leads nowhere, or nothing.
func (d documents) follow(root fs.FS, from, target string) string {
	if strings.Contains(target, "://") {
		return ""
	}
	file, anchor, anchored := strings.Cut(target, "#")
	name := from
	if file != "" {
		name = path.Join(path.Dir(from), file)
	}
	if _, err := fs.Stat(root, name); err != nil {
		return "there is no " + name
	}
	if anchored && !d.byName[name].anchors[anchor] {
		return name + " has no heading for #" + anchor
	}
	return ""
}
