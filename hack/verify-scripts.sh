#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every script stops at the first error, is executable, and is short
# enough to be read at sight; what is longer belongs into a Go program.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
max_lines=80

status=0
complain() { echo "$1" >&2 && status=1; }
for script in hack/*.sh .ci/*; do
  bash -n "${script}" || status=1
  [[ $(head -n 1 "${script}") == '#!/usr/bin/env bash' ]] || complain "${script}: does not begin with #!/usr/bin/env bash"
  [[ -x ${script} ]] || complain "${script}: is not executable"
  [[ $(wc -l <"${script}") -le ${max_lines} ]] || complain "${script}: has more than ${max_lines} lines: write a Go program"
  for option in errexit nounset pipefail; do
    grep -q "^set -o ${option}\$" "${script}" || complain "${script}: lacks set -o ${option}"
  done
done
exit "${status}"
