#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs go test with the checks that Kubernetes libraries offer: caches that must
# not be modified, and watches whose events must decode. Takes flags of go test.
# REQUIRE_RACE=true makes a machine that cannot run the race detector an error.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export KUBE_CACHE_MUTATION_DETECTOR=true
export KUBE_PANIC_WATCH_DECODE_ERROR=true

flags=()
for flag in "$@"; do
  # The race detector is linked by a C compiler, except on macOS.
  if [[ ${flag} == -race && $(go env GOOS) != darwin ]] && ! type -P "$(go env CC)" >/dev/null; then
    echo "There is no C compiler ($(go env CC)): the tests run without the race detector." >&2
    if [[ ${REQUIRE_RACE:-false} == true ]]; then exit 1; fi
    continue
  fi
  flags+=("${flag}")
done
exec go test -timeout 20m "${flags[@]}"
