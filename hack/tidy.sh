#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Tidies the go.mod of every module of this repository. With -diff it changes
# nothing, and fails when there is something to change.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
for module in . hack/controlplane hack/tools hack/tools/lint; do
  go -C "${module}" mod tidy "$@" || { echo "${module}/go.mod: run make update-tidy" >&2 && status=1; }
done
exit "${status}"
