// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// perMille is the share of a file that passes as a whole. Shares are counted in
// tenths of a percent and rounded down, so that a share is never below itself.
const perMille = 1000

// floor is what a floor file says, line by line.
type floor []line

// line is a comment, or a file of cases with the share of it that must pass.
type line struct {
	text  string // of a comment
	file  string // empty for a comment
	share int
}

// parseFloor reads lines such as "cel/seed.yaml 96.3".
func parseFloor(text string) (floor, error) {
	shares := regexp.MustCompile(`^(\S+) (\d{1,3})\.(\d)$`)
	var f floor
	for i, text := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" || strings.HasPrefix(text, "#") {
			f = append(f, line{text: text})
			continue
		}
		fields := shares.FindStringSubmatch(text)
		if fields == nil {
			return nil, fmt.Errorf("line %d: %q is not a file and a percentage with one decimal, such as cel/seed.yaml 96.3", i+1, text)
		}
		share, err := strconv.Atoi(fields[2] + fields[3])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if share > perMille {
			return nil, fmt.Errorf("line %d: %s percent is more than all", i+1, percent(share))
		}
		f = append(f, line{file: fields[1], share: share})
	}
	if len(f.files()) == 0 {
		return nil, errors.New("names no file of cases")
	}
	return f, nil
}

func (f floor) files() []string {
	var files []string
	for _, l := range f {
		if l.file != "" {
			files = append(files, l.file)
		}
	}
	return files
}

// check fails when a file is below its floor, or was not measured.
func (f floor) check(measured map[string]int) error {
	var errs []error
	for _, l := range f {
		if l.file == "" {
			continue
		}
		switch share, ok := measured[l.file]; {
		case !ok:
			errs = append(errs, fmt.Errorf("%s: no case was judged", l.file))
		case share < l.share:
			errs = append(errs, fmt.Errorf("%s: %s percent pass, at least %s must", l.file, percent(share), percent(l.share)))
		}
	}
	return errors.Join(errs...)
}

// raisedTo is the text of the floor with what has become better. It lowers nothing.
func (f floor) raisedTo(measured map[string]int) string {
	var text strings.Builder
	for _, l := range f {
		if l.file == "" {
			fmt.Fprintln(&text, l.text)
			continue
		}
		fmt.Fprintf(&text, "%s %s\n", l.file, percent(max(l.share, measured[l.file])))
	}
	return text.String()
}

func percent(share int) string {
	return fmt.Sprintf("%d.%d", share/10, share%10)
}
