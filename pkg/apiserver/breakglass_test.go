// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	"github.com/portcullis-dev/portcullis/pkg/controller/registration"
)

// judgeFunc is an admissionreview.Judge.
type judgeFunc func() (verdict.Verdict, error)

func (f judgeFunc) Run(context.Context, *request.Request, cluster.View) (verdict.Verdict, error) {
	return f()
}

// TestEmergencyJudge: while the window is open everything is admitted, also when
// nothing can be judged; before and after, everything is judged.
func TestEmergencyJudge(t *testing.T) {
	open, unjudged := false, 0
	judge := emergencyJudge{
		Judge: judgeFunc(func() (verdict.Verdict, error) { return verdict.Verdict{}, chain.ErrNotReady }),
		open: func() (registration.Window, bool) {
			return registration.Window{Until: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Reason: "INC-1"}, open
		},
		count: func() { unjudged++ },
	}
	for range 2 {
		open = false
		if answer, err := judge.Run(t.Context(), nil, nil); !errors.Is(err, chain.ErrNotReady) || answer.Allowed {
			t.Errorf("closed: got %+v and error %v, want that it is not ready", answer, err)
		}
		open = true
		want := verdict.Verdict{
			Allowed:          true,
			Warnings:         []string{"Portcullis does not judge until 2026-03-01T12:00:00Z (break-glass): INC-1"},
			AuditAnnotations: map[string]string{"break-glass": "until 2026-03-01T12:00:00Z: INC-1"},
		}
		if answer, err := judge.Run(t.Context(), nil, nil); err != nil || !reflect.DeepEqual(answer, want) {
			t.Errorf("open: got %+v and error %v, want %+v", answer, err, want)
		}
	}
	if unjudged != 2 {
		t.Errorf("counted %d, want 2", unjudged)
	}
}

// TestNoEmergency: a server that runs on its own has no break-glass.
func TestNoEmergency(t *testing.T) {
	glass, err := (&Config{}).addBreakGlass()
	if err != nil {
		t.Fatal(err)
	}
	judge := judgeFunc(func() (verdict.Verdict, error) { return verdict.Verdict{}, nil })
	if _, ok := glass.unless(judge, ReviewPath, nil).(judgeFunc); !ok {
		t.Error("something stands before the judge")
	}
}
