// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package differential_test

// raceDetector says that everything takes about ten times as long.
const raceDetector = true
