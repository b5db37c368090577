// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mergekeys writes which lists of the built-in kinds a strategic merge
// merges, and by which keys, as Go code. It takes that from the OpenAPI document that
// kyaml embeds, which is that of Kubernetes 1.21.2: Kyverno merges with kyaml, so newer
// lists and kinds must not be merged here either. It knows nothing of merging.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mergekeys:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("mergekeys", flag.ContinueOnError)
	file := flags.String("file", "", "where the code is")
	verify := flags.Bool("verify", false, "change nothing; fail when the file is not up to date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() > 0 {
		return errors.New("give --file, and no arguments")
	}
	kinds, err := read()
	if err != nil {
		return err
	}
	code, err := encode(number(kinds))
	if err != nil {
		return err
	}
	current, err := os.ReadFile(*file)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case bytes.Equal(current, code):
		return nil
	case *verify:
		return fmt.Errorf("%s is not what kyaml's schemas give; run make update-mergekeys", *file)
	default:
		return os.WriteFile(*file, code, 0o644)
	}
}
