// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/controller/registration"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

const breakGlassHook = "portcullis-follow-break-glass"

// breakGlassAnnotation is the key of the audit annotation of what was not judged.
const breakGlassAnnotation = "break-glass"

// registrations are the names of the webhook configurations that lead to the doors:
// those of artifacts/deploy.
func registrations() []string { return []string{"portcullis", "portcullis-direct"} }

// emergency says whether requests are to be admitted without being judged. The zero
// value never does.
type emergency struct{ glass *registration.BreakGlass }

// addBreakGlass has the server follow the webhook configurations of the cluster. One
// that runs on its own is in no cluster.
func (c *Config) addBreakGlass() (emergency, error) {
	if c.Replica == nil {
		return emergency{}, nil
	}
	objects, err := dynamic.NewForConfig(c.Replica.Client)
	if err != nil {
		return emergency{}, fmt.Errorf("client of kube-apiserver: %w", err)
	}
	glass := registration.NewBreakGlass(registration.Options{Objects: objects, Names: registrations(), Clock: clock.RealClock{}})
	c.Extra.Hooks = with(c.Extra.Hooks, breakGlassHook, followBreakGlass(glass))
	return emergency{glass}, nil
}

func followBreakGlass(glass *registration.BreakGlass) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go glass.Run(hook)
		return nil
	}
}

// open says whether it is an emergency. There must be a glass.
func (e emergency) open() bool {
	_, open := e.glass.Open()
	return open
}

// unless returns judge, but for emergencies; count hears of each review that is
// admitted without being judged.
func (e emergency) unless(judge admissionreview.Judge, count func()) admissionreview.Judge {
	if e.glass == nil {
		return judge
	}
	return emergencyJudge{Judge: judge, open: e.glass.Open, count: count}
}

// emergencyJudge admits everything while a window is open, and tells everybody.
type emergencyJudge struct {
	admissionreview.Judge
	open  func() (registration.Window, bool)
	count func()
}

// Run implements admissionreview.Judge.
func (j emergencyJudge) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	window, open := j.open()
	if !open {
		return j.Judge.Run(ctx, req, view)
	}
	j.count()
	until := window.Until.Format(time.RFC3339)
	return verdict.Verdict{
		Allowed:          true,
		Warnings:         []string{"Portcullis does not judge until " + until + " (break-glass): " + window.Reason},
		AuditAnnotations: map[string]string{breakGlassAnnotation: "until " + until + ": " + window.Reason},
	}, nil
}
