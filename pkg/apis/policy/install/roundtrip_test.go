// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/fuzzer"
)

func TestRoundTrip(t *testing.T) {
	add := func(scheme *runtime.Scheme) {
		if err := AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
	}
	roundtrip.RoundTripTestForAPIGroup(t, add, fuzzer.Funcs)
}
