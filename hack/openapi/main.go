// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi writes the schemas of the built-in kinds, which the server
// embeds. It takes them from the OpenAPI documents that the module
// k8s.io/kubernetes carries, those of the stable versions, and leaves out what is
// not about types: descriptions, and all about paths. It starts no API server, and
// does not know which kinds the server looks up.
//
// The documents have no enumerations: upstream publishes them without any.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("openapi", flag.ContinueOnError)
	file := flags.String("file", "", "where the schemas are")
	verify := flags.Bool("verify", false, "change nothing; fail when the file is not up to date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() > 0 {
		return errors.New("give --file, and no arguments")
	}
	folder, err := download(ctx)
	if err != nil {
		return err
	}
	return bring(*file, folder, *verify)
}

// bring brings the file in step with the documents of a folder, or with verify
// fails when it is not.
func bring(file, folder string, verify bool) error {
	found, err := read(folder)
	if err != nil {
		return err
	}
	content, err := found.encode()
	if err != nil {
		return err
	}
	current, err := readCompressed(file)
	switch {
	case err == nil && bytes.Equal(current, content):
		return nil
	case verify:
		return errors.Join(err, fmt.Errorf("%s is not what %s %s gives; run make update-openapi", file, module, version))
	default:
		return writeCompressed(file, content)
	}
}
