#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every fuzz target for $1, one after the other. An input that fails is kept
# by go test in testdata/fuzz beside the target, where it belongs to the tests.
# Coverage differs from run to run where goroutines and caches take part, so what
# is new is not minimized for long.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
fuzztime=$1

targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd hack pkg test artifacts | sort)
while IFS=: read -r file declaration; do
  echo "== ${declaration#func } in $(dirname "${file}")"
  go test -run '^$' -fuzz "^${declaration#func }\$" -fuzztime "${fuzztime}" -fuzzminimizetime 20x "./$(dirname "${file}")"
done <<<"${targets}"
