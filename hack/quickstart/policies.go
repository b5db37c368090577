// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/hack/internal/objects"
)

// storePolicies makes the server hold the objects of file as they are written
// there, whatever it held before. It returns the name of a binding among them.
func storePolicies(ctx context.Context, config *rest.Config, file string, out io.Writer) (binding string, err error) {
	found, err := objects.Read(file)
	if err != nil {
		return "", err
	}
	store, err := objects.Open(config)
	if err != nil {
		return "", err
	}
	for _, object := range found {
		if err := store.Put(ctx, object); err != nil {
			return "", fmt.Errorf("store %s %s of %s: %w", object.GetKind(), object.GetName(), file, err)
		}
		fmt.Fprintf(out, "Stored   %s %s\n", object.GetKind(), object.GetName())
		if strings.HasSuffix(object.GetKind(), "Binding") {
			binding = object.GetName()
		}
	}
	return binding, nil
}
