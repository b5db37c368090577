// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// phases is a chain that notes which of its phases is asked. The validating one
// denies.
type phases struct {
	asked []string
	err   error
}

func (*phases) Handles(admission.Operation) bool { return true }

func (p *phases) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	p.asked = append(p.asked, "mutating")
	return p.err
}

func (p *phases) Validate(ctx context.Context, _ admission.Attributes, _ admission.ObjectInterfaces) error {
	p.asked = append(p.asked, "validating")
	if err := verdict.RecorderFrom(ctx).Add(&verdict.Origin{}, 0, verdict.Finding{Kind: verdict.Fail}); err != nil {
		return err
	}
	return p.err
}

// hearing is an Observer that notes what it hears.
type hearing struct{ heard []string }

func (h *hearing) Judged(v *verdict.Verdict) {
	if v.Allowed {
		h.heard = append(h.heard, "allowed")
		return
	}
	h.heard = append(h.heard, "denied")
}

func (h *hearing) Failed(error) { h.heard = append(h.heard, "failed") }

// TestPhases: each question is for the plugins of one phase, is asked only once the
// policies are complete, and is heard of.
func TestPhases(t *testing.T) {
	type ask func(*Registered, context.Context, *request.Request, cluster.View) (verdict.Verdict, error)
	tests := []struct {
		name    string
		ask     ask
		phase   string
		allowed bool
		heard   string
	}{
		{name: "Run", ask: (*Registered).Run, phase: "validating", heard: "denied"},
		{name: "Mutate", ask: (*Registered).Mutate, phase: "mutating", allowed: true, heard: "allowed"},
	}
	broken := errors.New("broken")
	req := request.New(request.Fields{Operation: admission.Create})
	exempt := request.New(request.Fields{
		Operation: admission.Create,
		Resource:  schema.GroupVersionResource{Group: "policy.portcullis.dev", Version: "v1alpha1", Resource: "validatingadmissionpolicies"},
	})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var set *policy.Set
			plugins, observer := &phases{}, &hearing{}
			r := &Registered{chain: chain.New(func() *policy.Set { return set }, clock.RealClock{}), plugins: plugins, observer: observer}
			check := func(req *request.Request, allowed bool, wantErr error, asked int, heard string) {
				t.Helper()
				plugins.asked, observer.heard = nil, nil
				answer, err := test.ask(r, t.Context(), req, nil)
				if answer.Allowed != allowed || !errors.Is(err, wantErr) {
					t.Errorf("got %+v and error %v, want allowed: %v and error %v", answer, err, allowed, wantErr)
				}
				if !slices.Equal(plugins.asked, slices.Repeat([]string{test.phase}, asked)) || !slices.Equal(observer.heard, []string{heard}) {
					t.Errorf("%v was asked, %v heard; want the %s plugins asked %d times, %s heard", plugins.asked, observer.heard, test.phase, asked, heard)
				}
			}
			check(req, false, chain.ErrNotReady, 0, "failed")
			check(exempt, test.allowed, nil, 1, test.heard)
			set = &policy.Set{}
			check(req, test.allowed, nil, 1, test.heard)
			plugins.err = broken
			check(req, false, broken, 1, "failed")
		})
	}
}
