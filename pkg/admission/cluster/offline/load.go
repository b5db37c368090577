// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// maxFaults is how many faults are reported.
const maxFaults = 100

// limits bound what Load reads.
type limits struct {
	fileBytes  int64
	totalBytes int64
	files      int
	objects    int
	depth      int // of directories
}

func defaultLimits() limits {
	return limits{fileBytes: 16 << 20, totalBytes: 256 << 20, files: 10_000, objects: 100_000, depth: 32}
}

// Load returns a cluster with the objects of all manifests below dir: the files
// *.yaml, *.yml and *.json, in the order of their paths. Files and directories
// whose names begin with a dot are passed over, which makes a mounted ConfigMap
// a valid dir. With an empty dir the cluster has no objects of its own.
//
// All faults, up to a hundred, are reported at once, one a line, with file,
// document and line. A file has at most 16 MiB, and all together have at most 256 MiB, 10,000 files
// and 100,000 objects.
func Load(dir string) (*View, error) {
	if dir == "" {
		return New(nil)
	}
	return load(dir, defaultLimits())
}

func load(dir string, bounds limits) (*View, error) {
	result := bounds.load(dir, bounds.list(dir))
	return result.view, result.err
}

// outcome is what became of loading a directory.
type outcome struct {
	view    *View // nil when err is set
	objects int
	// held is the number of objects of each file that has any, and blank are the
	// files without content, both by their paths.
	held  map[string]int
	blank []string
	// digest is that of the contents of the files, as far as they were read.
	digest [sha256.Size]byte
	// unread says that the system has refused to list or to read something,
	// which may pass without a change of any file.
	unread bool
	err    error
}

// load reads the files of a listing of dir.
func (bounds limits) load(dir string, found *listing) *outcome {
	if found.err != nil {
		return &outcome{unread: true, err: found.err}
	}
	l := &loader{limits: bounds, digest: sha256.New(), held: map[string]int{}}
	view, err := l.load(dir, found.files)
	result := &outcome{view: view, objects: len(l.objects), held: l.held, blank: l.blank, unread: l.unread, err: err}
	l.digest.Sum(result.digest[:0])
	return result
}

type loader struct {
	limits
	bytesRead int64
	digest    hash.Hash
	objects   []*unstructured.Unstructured
	origins   []origin // of objects
	held      map[string]int
	blank     []string
	faults    []error
	unread    bool
}

func (l *loader) load(dir string, files []entry) (*View, error) {
	for _, file := range files {
		if err := l.readFile(file.path); err != nil {
			return nil, err
		}
	}
	view, err := New(l.objects)
	if err != nil {
		l.report(err)
	}
	if err := join(dir, l.faults); err != nil {
		return nil, err
	}
	return view, nil
}

// join returns one error of the faults of dir, of which it names the first ones,
// or nil when there are none.
func join(dir string, faults []error) error {
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults:maxFaults], fmt.Errorf("%s: and %d more faults", dir, more))
	}
	return errors.Join(faults...)
}

// origin is where an object was found.
type origin struct {
	file string
	manifest.Position
}

func (o origin) String() string { return o.file + ": " + o.Position.String() }

// readFile reads the objects of one file. Its error ends loading; what is wrong
// with the file alone is a fault.
func (l *loader) readFile(file string) error {
	data, err := l.contents(file)
	if err != nil {
		l.faults = append(l.faults, err)
		return nil
	}
	fmt.Fprintf(l.digest, "%d\n", len(data))
	l.digest.Write(data)
	if l.bytesRead += int64(len(data)); l.bytesRead > l.totalBytes {
		return fmt.Errorf("%s: the manifests up to here have more than %d bytes; remove what no policy reads", file, l.totalBytes)
	}
	objects, err := manifest.Read(data)
	for _, fault := range flatten(err) {
		l.faults = append(l.faults, fmt.Errorf("%s: %w", file, fault))
	}
	for _, object := range objects {
		l.objects = append(l.objects, object.Content)
		l.origins = append(l.origins, origin{file: file, Position: object.Position})
	}
	switch {
	case len(objects) > 0:
		l.held[file] = len(objects)
	case err == nil && isBlank(data):
		l.blank = append(l.blank, file)
	}
	if len(l.objects) > l.limits.objects {
		return fmt.Errorf("%s: the manifests up to here have more than %d objects; remove what no policy reads", file, l.limits.objects)
	}
	return nil
}

func (l *loader) contents(file string) ([]byte, error) {
	// Opening a pipe would wait for a writer.
	info, err := os.Stat(file)
	if err != nil {
		l.unread = true
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file; only files are read, and links to files", file)
	}
	opened, err := os.Open(file)
	if err != nil {
		l.unread = true
		return nil, err
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, l.fileBytes+1))
	if err != nil {
		l.unread = true
		return nil, err
	}
	if int64(len(data)) > l.fileBytes {
		return nil, fmt.Errorf("%s: the file has more than %d bytes; split it", file, l.fileBytes)
	}
	return data, nil
}

// report adds the errors of New to the faults, each with the place of its
// object.
func (l *loader) report(err error) {
	var errs overlay.Errors
	if !errors.As(err, &errs) {
		l.faults = append(l.faults, err)
		return
	}
	unread := len(l.faults) > 0
	for _, one := range errs {
		switch {
		case one.Err.Type == field.ErrorTypeNotFound && unread:
			// The definition of the kind may be in a file with a fault.
		case one.Err.Type == field.ErrorTypeDuplicate && one.Err.Field == "metadata.name":
			l.faults = append(l.faults, fmt.Errorf("%s: %w: the first is in %s", l.origins[one.Index], one.Err, l.origins[one.SameAs]))
		default:
			l.faults = append(l.faults, fmt.Errorf("%s: %w", l.origins[one.Index], one.Err))
		}
	}
}

// flatten returns the errors that errors.Join has joined. Errors that are
// wrapped in another one are not taken out of it.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}
