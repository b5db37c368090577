// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// limits bound what is read each time.
type limits struct {
	fileBytes  int64
	totalBytes int64
	files      int
	objects    int
}

func defaultLimits() limits {
	return limits{fileBytes: 4 << 20, totalBytes: 8 << 20, files: 1000, objects: 1000}
}

// contents is what was read of a directory.
type contents struct {
	files   []file
	faults  []error // of what could not be read
	objects int     // how many there may be
	digest  digest
}

type file struct {
	path string
	data []byte
}

// read reads the manifests right in dir, in alphabetical order. Two readings have
// the same digest when they have the same files with the same content, and the same
// faults.
func (bounds limits) read(dir string) *contents {
	c := &contents{objects: bounds.objects}
	sum := sha256.New()
	if err := bounds.readAll(dir, c, sum); err != nil {
		c.faults = append(c.faults, err)
	}
	for _, fault := range c.faults {
		fmt.Fprintf(sum, "fault %q\n", fault)
	}
	sum.Sum(c.digest[:0])
	return c
}

// readAll returns an error when the rest is not read.
func (bounds limits) readAll(dir string, c *contents, sum hash.Hash) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("directory of bootstrap policies: %w", err)
	}
	var total int64
	for _, entry := range entries {
		if entry.IsDir() || !isManifest(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if len(c.files)+len(c.faults) == bounds.files {
			return fmt.Errorf("%s: more than %d manifests; put several objects into a file", dir, bounds.files)
		}
		data, err := bounds.readFile(path)
		if err != nil {
			c.faults = append(c.faults, err)
			continue
		}
		if total += int64(len(data)); total > bounds.totalBytes {
			return fmt.Errorf("%s: the manifests up to here have more than %d bytes; remove what no bootstrap policy needs", path, bounds.totalBytes)
		}
		fmt.Fprintf(sum, "%q %d\n", entry.Name(), len(data))
		sum.Write(data)
		c.files = append(c.files, file{path: path, data: data})
	}
	return nil
}

// isManifest passes over hidden files, so that a mounted ConfigMap is a valid
// directory.
func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

func (bounds limits) readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, fmt.Errorf("%s: not a regular file; only files are read, and links to files", path)
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, bounds.fileBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > bounds.fileBytes {
		return nil, fmt.Errorf("%s: the file has more than %d bytes; split it", path, bounds.fileBytes)
	}
	return data, nil
}
