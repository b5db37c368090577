// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// emptied returns the files that held objects in the state in force and have no
// content any more, each as a fault, or nil. Whoever writes a file by a shell
// redirection truncates it first: as long as nothing has been written, it must
// not look as if the objects had been removed.
func (d *Directory) emptied(result *outcome) error {
	var faults []error
	for _, file := range result.blank {
		switch held := d.held[file]; held {
		case 0:
		case 1:
			faults = append(faults, fmt.Errorf("%s: the file is empty: it held 1 object; remove the file to remove its object", file))
		default:
			faults = append(faults, fmt.Errorf("%s: the file is empty: it held %d objects; remove the file to remove its objects", file, held))
		}
	}
	return join(d.path, faults)
}

// unfinished says that files were emptied a short while ago, so that their
// content may be on its way. When they stay empty for longer, that is an error of
// result, next to those that it has: what it lacks may be what was in the files.
func (d *Directory) unfinished(result *outcome) bool {
	err := d.emptied(result)
	if err == nil {
		d.emptySince = time.Time{}
		return false
	}
	if d.emptySince.IsZero() {
		d.emptySince = d.clock.Now()
	}
	if d.patienceLeft() > 0 {
		return true
	}
	result.view, result.err = nil, errors.Join(err, result.err)
	return false
}

// patienceLeft is how long the content of emptied files is waited for, and 0
// when nothing is waited for.
func (d *Directory) patienceLeft() time.Duration {
	if d.emptySince.IsZero() {
		return 0
	}
	return max(0, patience-d.clock.Since(d.emptySince))
}

// isBlank says that a manifest has no content: white space, comments, and the
// marks and directives of YAML at most. A list without items is content.
func isBlank(data []byte) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
		line = bytes.TrimSpace(line)
		for _, mark := range []string{"---", "..."} {
			line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(mark)))
		}
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}
