#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every file of code begins with the license header, in the comments
# of its language: // in Go, # in scripts (after the shebang), Makefile and YAML.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
header=$(<hack/boilerplate.go.txt)

status=0
while IFS= read -r file; do
  want=${header}
  [[ ${file} == *.go ]] || want=${header//\/\//#}
  # A shebang and a build constraint come first, each with what follows it.
  got=$(awk '/^#!/ || /^\/\/ ?(go:|\+)build / || !NF {next} {print; if (++n == 2) exit}' "${file}")
  if [[ ${got} != "${want}" ]]; then
    echo "${file}: does not begin with the header of hack/boilerplate.go.txt" >&2
    status=1
  fi
done < <(find . \( -path ./.git -o -path ./bin -o -path ./.portcullis \) -prune -o \
  -type f \( -name '*.go' -o -name '*.sh' -o -name Makefile -o -path './.ci/*' -o -name .golangci.yaml \) -print)
exit "${status}"
