#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds etcd, kube-apiserver, kube-controller-manager and kubectl of the versions in
# hack/controlplane/go.mod into bin/controlplane/. Does nothing when they are there,
# and were made of the same.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
module=hack/controlplane
bin=bin/controlplane
stamp=${bin}/stamp # what the binaries were made of

made_of() { go version && go env GOOS GOARCH && cat hack/controlplane.sh "${module}/go.mod" "${module}/go.sum"; }

current() {
  for binary in etcd kube-apiserver kube-controller-manager kubectl; do
    [[ -x ${bin}/${binary} ]] || return 1
  done
  made_of | cmp --quiet - "${stamp}"
}

if [[ -e ${stamp} ]] && current; then exit 0; fi
rm -f "${stamp}"
mkdir -p "${bin}"

# A binary that is not stamped says that it is v0.0.0-master, and then neither versioned
# features nor the checks of kubectl know what to expect of it.
version=$(go -C "${module}" list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=" -X ${package}.gitVersion=${version} -X ${package}.gitMajor=${major} -X ${package}.gitMinor=${minor}"
  ldflags+=" -X ${package}.gitTreeState=clean"
done

echo "Building the control plane of Kubernetes ${version} into ${bin}; without a build cache this takes some minutes."
output=${PWD}/${bin}
build() { CGO_ENABLED=0 nice go -C "${module}" build -trimpath -ldflags "${ldflags}" -o "$@"; }
build "${output}/" k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kubectl}
build "${output}/etcd" go.etcd.io/etcd/server/v3

made_of >"${stamp}.new"
mv "${stamp}.new" "${stamp}"
