// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

var (
	_ admissionreview.Judge  = frankJudge{}
	_ admissionreview.Judge  = mutatingJudge{}
	_ admissionpreview.Judge = frankJudge{}
)

// frankJudge tells callers why it cannot judge yet.
type frankJudge struct {
	*plugin.Registered
	// ready returns why the policies are not complete, or the cluster is not known.
	ready func() error
}

// Run implements admissionreview.Judge.
func (j frankJudge) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	answer, err := j.Registered.Run(ctx, req, view)
	return answer, j.explain(err)
}

// Try implements admissionpreview.Judge.
func (j frankJudge) Try(ctx context.Context, trial chain.Trial) (verdict.Verdict, error) {
	answer, err := j.Registered.Try(ctx, trial)
	return answer, j.explain(err)
}

// mutatingJudge is a frankJudge that runs the other phase of the chain.
type mutatingJudge struct{ frankJudge }

// Run implements admissionreview.Judge.
func (j mutatingJudge) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	answer, err := j.Mutate(ctx, req, view)
	return answer, j.explain(err)
}

func (j frankJudge) explain(err error) error {
	if !errors.Is(err, chain.ErrNotReady) {
		return err
	}
	if cause := j.ready(); cause != nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err // it has become ready since
}

// both returns a check that passes when two others do.
func both(first, second func() error) func() error {
	return func() error {
		if err := first(); err != nil {
			return err
		}
		return second()
	}
}
