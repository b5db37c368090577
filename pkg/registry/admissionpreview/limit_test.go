// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"context"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

// slowJudge says when it was asked, and answers when it is let go.
type slowJudge struct{ asked, letGo chan struct{} }

func (j slowJudge) Try(context.Context, chain.Trial) (verdict.Verdict, error) {
	j.asked <- struct{}{}
	<-j.letGo
	return verdict.Allow(), nil
}

// TestPreviewsInFlight: one preview more than fit is turned away at once.
func TestPreviewsInFlight(t *testing.T) {
	const fit = 32
	empty, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	judge := slowJudge{asked: make(chan struct{}), letGo: make(chan struct{})}
	door := admissionpreview.NewREST(judge, func() cluster.View { return empty }, &admissionpreview.Candidates{}, admissionpreview.Access{})
	ask := func() error {
		_, err := door.Create(t.Context(), &policyapi.AdmissionPreview{Spec: policyapi.AdmissionPreviewSpec{
			StoredPolicies: policyapi.IgnoreStoredPolicies,
			Request:        &policyapi.PreviewRequest{Object: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`)}},
		}}, nil, &metav1.CreateOptions{})
		return err
	}

	var group sync.WaitGroup
	for range fit {
		group.Go(func() {
			if err := ask(); err != nil {
				t.Errorf("a preview that fits: %v", err)
			}
		})
	}
	for range fit {
		<-judge.asked
	}
	if err := ask(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("one too many: got %v, want TooManyRequests", err)
	}
	close(judge.letGo)
	group.Wait()
}
