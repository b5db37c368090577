// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package kyverno_test

// slowness is how many times as long the race detector makes things take.
const slowness = 1
