// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// TestRestPolicies: once a period, until the server stops.
func TestRestPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		rests := 0
		if err := restPolicies(func() { rests++ })(genericapiserver.PostStartHookContext{Context: ctx}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*restPeriod + time.Second)
		synctest.Wait()
		if rests != 11 {
			t.Errorf("%d rests in ten periods, want one at the begin and one after each", rests)
		}
		stop()
		time.Sleep(2 * restPeriod)
		if rests != 11 {
			t.Error("a server that has stopped goes on")
		}
	})
}
