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

// registrations are the webhook configurations that lead to the doors: those of
// artifacts/deploy. Each speaks for its own doors.
func registrations() []registration.Configuration {
	const validating, mutating = "validatingwebhookconfigurations", "mutatingwebhookconfigurations"
	const aggregated, direct = "portcullis", "portcullis-direct"
	validations, mutations := resourcePath(validationsResource), resourcePath(mutationsResource)
	return []registration.Configuration{
		{Resource: validating, Name: aggregated, Door: validations, Opens: []string{validations, mutations}},
		{Resource: mutating, Name: aggregated, Door: mutations, Opens: []string{mutations}},
		{Resource: validating, Name: direct, Door: ReviewPath, Opens: []string{ReviewPath, MutationPath}},
		{Resource: mutating, Name: direct, Door: MutationPath, Opens: []string{MutationPath}},
	}
}

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
	glass := registration.NewBreakGlass(registration.Options{Objects: objects, Configurations: registrations(), Clock: clock.RealClock{}})
	c.Extra.Hooks = with(c.Extra.Hooks, breakGlassHook, followBreakGlass(glass))
	return emergency{glass}, nil
}

func followBreakGlass(glass *registration.BreakGlass) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go glass.Run(hook)
		return nil
	}
}

// open says whether it is an emergency at any door. There must be a glass.
func (e emergency) open() bool {
	for _, configuration := range registrations() {
		if _, open := e.glass.Open(configuration.Door); open {
			return true
		}
	}
	return false
}

// unless returns judge, but for emergencies at the door of that path; count hears of
// each review that is admitted without being judged.
func (e emergency) unless(judge admissionreview.Judge, door string, count func()) admissionreview.Judge {
	if e.glass == nil {
		return judge
	}
	open := func() (registration.Window, bool) { return e.glass.Open(door) }
	return emergencyJudge{Judge: judge, open: open, count: count}
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
