#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates into a copy of pkg and compares it with the checkout.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
copy=$(mktemp -d)
trap 'rm -rf "${copy}"' EXIT

cp -R go.mod go.sum pkg "${copy}/"
cp -R "${copy}/pkg" "${copy}/checkout"
hack/update-codegen.sh "${copy}"
cd "${copy}"
diff -Naupr checkout pkg || { echo "The generated code is out of date: run make update-codegen" >&2 && exit 1; }
