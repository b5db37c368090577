// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// AutogenControllersAnnotation names the controllers of Pods for which rules are made of
// the rules about Pods: none, or kinds with commas between them; all seven when absent.
const AutogenControllersAnnotation = "pod-policies.kyverno.io/autogen-controllers"
