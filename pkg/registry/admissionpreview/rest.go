// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionpreview is the preview door: a virtual resource that is
// answered on create and stored nowhere. It translates the question into a
// request, candidate policies and a cluster view, and the verdict into a
// status; what it says is what enforcement does, because both call the same
// chain. It does not know how policies judge.
package admissionpreview

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	maxPolicies = 1000
	maxObjects  = 10000
	// maxInFlight bounds the previews that are answered at the same time: each
	// may compile many policies and hold many objects.
	maxInFlight = 32
)

// Judge judges a request as enforcement does, with candidates laid over the
// stored policies, or with the candidates alone.
type Judge interface {
	Try(ctx context.Context, trial chain.Trial) (verdict.Verdict, error)
}

var _ interface {
	rest.Storage
	rest.Scoper
	rest.Creater
	rest.SingularNameProvider
} = (*REST)(nil)

// REST answers previews. It is safe for concurrent use.
type REST struct {
	judge      Judge
	view       func() cluster.View
	candidates *Candidates
	access     Access
	room       *semaphore.Weighted // of maxInFlight
}

// NewREST returns the resource. It reads the cluster through what view returns
// for each preview, and asks access what its callers may do.
func NewREST(judge Judge, view func() cluster.View, candidates *Candidates, access Access) *REST {
	return &REST{judge: judge, view: view, candidates: candidates, access: access, room: semaphore.NewWeighted(maxInFlight)}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &policyapi.AdmissionPreview{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "admissionpreview" }

// Create implements rest.Creater: it answers the preview. Faults of the
// question are 422 with all field errors; a request that would be denied is an
// answer and no error.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	preview, ok := obj.(*policyapi.AdmissionPreview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not an AdmissionPreview: %T", obj))
	}
	if createValidation != nil {
		if err := createValidation(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	weight := int64(1)
	if preview.Spec.Objects != nil {
		weight = sweepWeight
	}
	if !r.room.TryAcquire(weight) {
		return nil, apierrors.NewTooManyRequests("too many previews are being answered: try again later", 1)
	}
	defer r.room.Release(weight)
	asker := r.access.caller(ctx)
	if err := asker.judgeAs(ctx, preview); err != nil {
		return nil, err
	}
	question, errs := r.translate(ctx, &preview.Spec)
	if len(errs) > 0 {
		return nil, invalid(preview, errs)
	}
	stored := r.access.stored()
	reading := paramRights{caller: asker, mapper: question.view.Mapper()}
	err := reading.check(ctx, question.candidates, stored)
	if err != nil {
		return nil, err
	}
	trial := chain.Trial{
		Request: question.request, View: question.view, Stored: stored,
		Candidates: question.candidates,
		Alone:      preview.Spec.StoredPolicies == policyapi.IgnoreStoredPolicies,
	}
	if len(question.candidates) > 0 {
		trial.CandidateView = newCandidateView(question.view, asker, question.user(asker))
	}
	if question.request == nil {
		preview.Status, err = r.existing(ctx, asker, trial, question.objects)
	} else {
		preview.Status, err = r.one(ctx, asker, trial)
	}
	if err != nil {
		return nil, err
	}
	return preview, nil
}

// one answers a preview of one request.
func (r *REST) one(ctx context.Context, asker caller, trial chain.Trial) (policyapi.AdmissionPreviewStatus, error) {
	trial.Explain = &policy.Explain{MayRead: newReader(asker, trial.View.Mapper()).MayRead}
	answer, err := r.judge.Try(ctx, trial)
	if err != nil {
		return policyapi.AdmissionPreviewStatus{}, apierrors.NewServiceUnavailable(err.Error())
	}
	return status(trial.Request, &answer), nil
}

func invalid(preview *policyapi.AdmissionPreview, errs field.ErrorList) error {
	return apierrors.NewInvalid(policyapi.SchemeGroupVersion().WithKind("AdmissionPreview").GroupKind(), preview.Name, errs)
}

// question is a preview, translated.
type question struct {
	request    *request.Request // nil when it is about existing objects
	objects    selection
	candidates []*policy.Unit
	view       cluster.View
}

// user is who makes the request, or the requests, that are judged.
func (q *question) user(asker caller) user.Info {
	if q.request == nil {
		return asker.User
	}
	return q.request.User
}

// translate returns the question with all its faults at once.
func (r *REST) translate(ctx context.Context, spec *policyapi.AdmissionPreviewSpec) (*question, field.ErrorList) {
	path := field.NewPath("spec")
	view, errs := r.clusterView(spec.Cluster, path.Child("cluster"))
	q := &question{view: view}

	switch spec.StoredPolicies {
	case policyapi.IncludeStoredPolicies, policyapi.IgnoreStoredPolicies:
	default:
		errs = append(errs, field.NotSupported(path.Child("storedPolicies"), spec.StoredPolicies,
			[]policyapi.StoredPolicies{policyapi.IncludeStoredPolicies, policyapi.IgnoreStoredPolicies}))
	}
	units, unitErrs := r.candidates.decode(ctx, spec.Policies, path.Child("policies"))
	q.candidates = units
	errs = append(errs, unitErrs...)

	switch {
	case spec.Objects != nil && spec.Request != nil:
		return q, append(errs, field.Forbidden(path.Child("objects"), "ask about one request, or about existing objects"))
	case spec.Objects != nil:
		objects, objectsErrs := translateObjects(spec.Objects, q.view, path.Child("objects"))
		q.objects = objects
		return q, append(errs, objectsErrs...)
	case spec.Request == nil:
		return q, append(errs, field.Required(path.Child("request"), "say which request to judge, an object at least; or with objects, which existing ones"))
	}
	req, requestErrs := translateRequest(ctx, spec.Request, q.view, path.Child("request"))
	if req != nil {
		q.request, q.view = req, withExisting(ctx, q.view, req)
	}
	return q, append(errs, requestErrs...)
}

// withExisting returns view with the object that the request changes or
// deletes: it exists in the cluster at that time, so policies may find it as
// the namespace or a param. What view holds already stays.
func withExisting(ctx context.Context, view cluster.View, req *request.Request) cluster.View {
	existing := req.OldObject
	if existing == nil || req.SubResource != "" || req.Name == "" {
		return view
	}
	selection := cluster.Selection{Kind: existing.GroupVersionKind(), Namespace: existing.GetNamespace(), Name: req.Name}
	held, err := view.Objects(ctx, selection)
	if err != nil || len(held) > 0 {
		return view // not of a kind that the view can hold
	}
	next, err := overlay.New(view, []*unstructured.Unstructured{existing.DeepCopy()})
	if err != nil {
		return view
	}
	return next
}

// clusterView returns the cluster of one preview, or nil where raw has faults.
func (r *REST) clusterView(raw []runtime.RawExtension, path *field.Path) (cluster.View, field.ErrorList) {
	base := r.view()
	if len(raw) == 0 {
		return base, nil
	}
	if len(raw) > maxObjects {
		return nil, field.ErrorList{field.TooMany(path, len(raw), maxObjects)}
	}
	objects, errs := decodeObjects(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	view, err := overlay.New(base, objects)
	if err != nil {
		var faults overlay.Errors
		if errors.As(err, &faults) {
			return nil, faults.At(path)
		}
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return view, nil
}
