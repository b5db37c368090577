#!/usr/bin/env bash
# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates everything under pkg that carries "DO NOT EDIT". The output root
# is the checkout, or $1 for hack/verify-codegen.sh.
set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=${1:-.}
module=github.com/portcullis-dev/portcullis
hub=${module}/pkg/apis/policy
served=${hub}/v1alpha1
# The specs of the kinds that come from Kyverno.
kyverno=${module}/pkg/apis/kyverno/v1
generated=${module}/pkg/generated
header=$(pwd)/hack/boilerplate.go.txt
bin=$(pwd)/bin/codegen

mkdir -p "${bin}"
go -C hack/tools build -o "${bin}/" \
  k8s.io/code-generator/cmd/{deepcopy,defaulter,conversion,client,lister,informer,applyconfiguration}-gen \
  k8s.io/kube-openapi/cmd/openapi-gen

cd "${root}"
find pkg/apis -name 'zz_generated.*.go' -delete
rm -rf pkg/generated

"${bin}/deepcopy-gen" --go-header-file "${header}" --output-file zz_generated.deepcopy.go "${kyverno}" "${hub}" "${served}"
"${bin}/defaulter-gen" --go-header-file "${header}" --output-file zz_generated.defaults.go "${served}"
"${bin}/openapi-gen" --go-header-file "${header}" --output-file zz_generated.openapi.go \
  --output-dir pkg/generated/openapi --output-pkg "${generated}/openapi" \
  --output-model-name-file zz_generated.model_name.go --report-filename /dev/null \
  k8s.io/api/admissionregistration/v1 k8s.io/api/authentication/v1 k8s.io/api/rbac/v1 \
  k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 k8s.io/apimachinery/pkg/apis/meta/v1 \
  k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version "${kyverno}" "${served}"
"${bin}/conversion-gen" --go-header-file "${header}" --output-file zz_generated.conversion.go "${served}"
"${bin}/applyconfiguration-gen" --go-header-file "${header}" \
  --output-dir pkg/generated/applyconfiguration --output-pkg "${generated}/applyconfiguration" \
  --external-applyconfigurations "$(printf 'k8s.io/api/admissionregistration/v1.%s:k8s.io/client-go/applyconfigurations/admissionregistration/v1,' \
    ValidatingAdmissionPolicySpec ValidatingAdmissionPolicyStatus ValidatingAdmissionPolicyBindingSpec | sed 's/,$//')" \
  "${kyverno}" "${served}"
"${bin}/client-gen" --go-header-file "${header}" --clientset-name versioned --input-base "" --input "${served}" \
  --output-dir pkg/generated/clientset --output-pkg "${generated}/clientset" \
  --apply-configuration-package "${generated}/applyconfiguration"
"${bin}/lister-gen" --go-header-file "${header}" \
  --output-dir pkg/generated/listers --output-pkg "${generated}/listers" "${served}"
"${bin}/informer-gen" --go-header-file "${header}" --versioned-clientset-package "${generated}/clientset/versioned" \
  --listers-package "${generated}/listers" \
  --output-dir pkg/generated/informers --output-pkg "${generated}/informers" "${served}"
