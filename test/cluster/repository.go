// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/portcullis-dev/portcullis/test/controlplane"
)

// FromRepository returns options for a cluster of what the repository that holds the
// working directory has built, with its files in dir.
func FromRepository(dir string) (Options, error) {
	root, err := Root()
	if err != nil {
		return Options{}, err
	}
	o := Options{
		ControlPlane: controlplane.Options{BinDir: filepath.Join(root, "bin", "controlplane"), Dir: dir},
		Server:       filepath.Join(root, "bin", "portcullis-apiserver"),
		Manifests:    filepath.Join(root, "artifacts", "deploy"),
	}
	if _, err := os.Stat(o.Server); err != nil {
		return Options{}, fmt.Errorf("%w: run make build", err)
	}
	return o, nil
}

// Root is the folder of the repository that holds the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: run this within the repository")
		}
		dir = parent
	}
}
