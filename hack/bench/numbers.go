// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// numbers are how many policies that do not match are installed, in one server each.
type numbers []int

// String implements flag.Value.
func (n *numbers) String() string { return strings.Trim(fmt.Sprint([]int(*n)), "[]") }

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 {
			return errors.New("want numbers with commas between them, such as 10,1000")
		}
		*n = append(*n, number)
	}
	return nil
}
