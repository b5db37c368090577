// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// judge answers what the test wants and keeps what it was asked.
type judge struct {
	answer verdict.Verdict
	err    error

	candidates []*policy.Unit
	stored     bool
	request    *request.Request
	view       cluster.View
	trial      chain.Trial
}

func (j *judge) Try(_ context.Context, trial chain.Trial) (verdict.Verdict, error) {
	j.candidates, j.stored, j.request, j.view = trial.Candidates, !trial.Alone, trial.Request, trial.View
	j.trial = trial
	return j.answer, j.err
}

// fixture is a door with a judge behind it, in a cluster without objects.
type fixture struct {
	*judge
	door    *admissionpreview.REST
	decoder runtime.Decoder
	// rights are what callers outside system:masters may do.
	rights grants
	// policies are the stored ones that bindings can be resolved against.
	policies *policy.Set
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{judge: &judge{answer: verdict.Allow()}}
	f.door, f.decoder = newDoor(t, f.judge, admissionpreview.Access{
		Authorizer: &f.rights,
		Stored:     func() *policy.Set { return f.policies },
	})
	return f
}

// newDoor returns a door in a cluster without objects, and what decodes a
// preview as the API server does.
func newDoor(t testing.TB, judge admissionpreview.Judge, access admissionpreview.Access) (*admissionpreview.REST, runtime.Decoder) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	manifests, err := stored.NewManifests(scheme)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return admissionpreview.NewREST(judge, func() cluster.View { return empty }, &admissionpreview.Candidates{
		Read:     manifests.DecodeNew,
		Compiler: catalog.New(dialect.All()),
	}, access), serializer.NewCodecFactory(scheme).UniversalDecoder(policyapi.SchemeGroupVersion())
}

// preview decodes the spec of a preview as the API server does.
func (f *fixture) preview(t *testing.T, spec string) *policyapi.AdmissionPreview {
	t.Helper()
	manifest := "apiVersion: policy.portcullis.dev/v1alpha1\nkind: AdmissionPreview\nspec:\n" + spec
	object, _, err := f.decoder.Decode([]byte(manifest), nil, nil)
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	preview, ok := object.(*policyapi.AdmissionPreview)
	if !ok {
		t.Fatalf("decoded %T", object)
	}
	return preview
}

// create asks as the user of ctx, or as one of system:masters.
func (f *fixture) create(ctx context.Context, t *testing.T, spec string) (*policyapi.AdmissionPreview, error) {
	t.Helper()
	if _, ok := genericapirequest.UserFrom(ctx); !ok {
		ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	}
	object, err := f.door.Create(ctx, f.preview(t, spec), nil, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	preview, ok := object.(*policyapi.AdmissionPreview)
	if !ok {
		t.Fatalf("answered with %T", object)
	}
	return preview, nil
}

// ask returns the answer to a preview that must be answered.
func (f *fixture) ask(t *testing.T, spec string) policyapi.AdmissionPreviewStatus {
	t.Helper()
	preview, err := f.create(t.Context(), t, spec)
	if err != nil {
		t.Fatal(err)
	}
	return preview.Status
}

// faults returns the field errors of a preview that must be refused with 422.
func (f *fixture) faults(t *testing.T, spec string) []string {
	t.Helper()
	_, err := f.create(t.Context(), t, spec)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got error %v, want field errors", err)
	}
	if f.request != nil {
		t.Error("the request was judged all the same")
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("got error %T", err)
	}
	var faults []string
	for _, cause := range status.ErrStatus.Details.Causes {
		faults = append(faults, cause.Field+": "+cause.Message)
	}
	return faults
}

func names(units []*policy.Unit) []string {
	var names []string
	for _, unit := range units {
		names = append(names, unit.ID.Kind+"/"+unit.ID.Name)
	}
	return names
}

func nameOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return object.GetName()
}
