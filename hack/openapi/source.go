// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	module  = "k8s.io/kubernetes"
	version = "v1.36.3"
	// sum is that of the module, as go.sum would have it. The module is no
	// dependency of this one: nothing of it is compiled.
	sum = "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o="
)

// download returns the folder of the OpenAPI documents of the module, which it
// downloads into the module cache if needed.
func download(ctx context.Context) (string, error) {
	outside, err := os.MkdirTemp("", "openapi-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(outside) }()
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = outside // the go.mod of this repository stays as it is
	out, err := command.Output()
	var got struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil {
		return "", fmt.Errorf("go mod download: %w", errors.Join(err, jsonErr))
	}
	if err != nil || got.Error != "" {
		return "", fmt.Errorf("go mod download: %w: %s", err, got.Error)
	}
	if got.Sum != sum {
		return "", fmt.Errorf("%s %s has the sum %s, want %s", module, version, got.Sum, sum)
	}
	return filepath.Join(got.Dir, "api", "openapi-spec", "v3"), nil
}
