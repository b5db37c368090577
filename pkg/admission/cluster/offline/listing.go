// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// listing is what can be seen of a directory of manifests without reading them.
type listing struct {
	files   []entry // the manifests, in the order of their paths
	folders []entry // the directory itself is the first
	err     error   // ended the search
}

// entry is a file or a folder. Of a link it is what the link leads to.
type entry struct {
	path string
	info fs.FileInfo // nil when err is set
	err  error
}

// list looks for the manifests below dir. It goes no deeper, and finds no more
// files and folders, than the limits allow.
func (bounds limits) list(dir string) *listing {
	l := &listing{}
	l.err = l.search(dir, 0, bounds)
	return l
}

func (l *listing) search(dir string, depth int, bounds limits) error {
	if depth > bounds.depth {
		return fmt.Errorf("%s: directories are nested more than %d levels deep; move the manifests up", dir, bounds.depth)
	}
	children, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("directory of manifests: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("directory of manifests: %w", err)
	}
	if l.folders = append(l.folders, entry{path: dir, info: info}); len(l.folders) > bounds.files {
		return fmt.Errorf("%s: more than %d directories; put several manifests into one", dir, bounds.files)
	}
	for _, child := range children {
		name := filepath.Join(dir, child.Name())
		switch {
		case isHidden(name):
		case child.IsDir():
			if err := l.search(name, depth+1, bounds); err != nil {
				return err
			}
		case isManifest(name):
			info, err := os.Stat(name)
			if l.files = append(l.files, entry{path: name, info: info, err: err}); len(l.files) > bounds.files {
				return fmt.Errorf("%s: more than %d manifests; put several objects into a file", dir, bounds.files)
			}
		case child.Type()&fs.ModeSymlink != 0:
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				return fmt.Errorf("%s: links to directories are not followed; copy the directory or name it itself", name)
			}
		}
	}
	return nil
}

func isHidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

func isManifest(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

// equal says that nothing can be seen to have changed between two listings.
func (l *listing) equal(other *listing) bool {
	return text(l.err) == text(other.err) &&
		slices.EqualFunc(l.files, other.files, entry.sameFile) &&
		slices.EqualFunc(l.folders, other.folders, entry.sameFolder)
}

func (e entry) sameFile(other entry) bool {
	return e.path == other.path && text(e.err) == text(other.err) && (e.err != nil ||
		os.SameFile(e.info, other.info) && e.info.Size() == other.info.Size() && e.info.ModTime().Equal(other.info.ModTime()))
}

// sameFolder does not compare times: what else is in a folder may come and go.
func (e entry) sameFolder(other entry) bool {
	return e.path == other.path && os.SameFile(e.info, other.info)
}

// changedSince says that a manifest was written after a time, and not after now.
func (l *listing) changedSince(then, now time.Time) bool {
	return slices.ContainsFunc(l.files, func(file entry) bool {
		return file.err == nil && file.info.ModTime().After(then) && !file.info.ModTime().After(now)
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
