// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailBytes = 16 << 10
	tailLines = 25
)

// Tail is the end of the log.
func (c *Component) Tail() string {
	file, err := os.Open(c.config.LogFile)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd) // the whole log is as good
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

func (c *Component) withTail(err error) error {
	return fmt.Errorf("%w\nThe end of %s:\n%s", err, c.config.LogFile, c.Tail())
}
