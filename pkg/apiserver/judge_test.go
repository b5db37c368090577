// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"testing"

	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// TestFrankJudge: why nothing is judged is told, and all else is left as it is.
func TestFrankJudge(t *testing.T) {
	var set *policy.Set
	registered, err := plugin.NewRegistered(dialect.All(), chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	var cause error
	judge := frankJudge{Registered: registered, ready: func() error { return cause }}
	req := request.New(request.Fields{Operation: "CREATE"})
	check := func(want string) {
		t.Helper()
		_, ran := judge.Run(t.Context(), req, nil)
		_, mutated := mutatingJudge{judge}.Run(t.Context(), req, nil)
		_, tried := judge.Try(t.Context(), chain.Trial{Request: req})
		for door, err := range map[string]error{"Run": ran, "Run to mutate": mutated, "Try": tried} {
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != want || (err != nil) != errors.Is(err, chain.ErrNotReady) || err != nil && cause != nil && !errors.Is(err, cause) {
				t.Errorf("%s: got error %q, want %q", door, got, want)
			}
		}
	}
	check("not yet ready to handle request")
	cause = errors.New("etcd does not answer")
	check("not yet ready to handle request: etcd does not answer")
	set = &policy.Set{}
	check("")
}
