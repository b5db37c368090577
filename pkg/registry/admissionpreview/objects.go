// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

const (
	// maxSweptObjects bounds the existing objects of one preview, and maxSweptBytes what
	// is read of them, with the object with which it is passed.
	maxSweptObjects = 5000
	maxSweptBytes   = 256 << 20
	// maxFailures bounds the objects that are listed because they do not pass.
	maxFailures = 20
	// sweepBudget bounds the time of a preview of existing objects, however much its
	// request has left.
	sweepBudget = 10 * time.Second
	// sweepWeight is what such a preview counts for among those in flight.
	sweepWeight = 8
)

// existing answers a preview of existing objects.
func (r *REST) existing(ctx context.Context, asker caller, trial chain.Trial, what selection) (policyapi.AdmissionPreviewStatus, error) {
	ctx, cancel := withBudget(ctx, sweepBudget)
	defer cancel()
	s := sweep{judge: r.judge, trial: trial, asker: asker, failures: maxFailures}
	if err := s.checkStored(ctx, what); err != nil {
		return policyapi.AdmissionPreviewStatus{}, err
	}
	t, err := s.run(ctx, what)
	if err != nil {
		return policyapi.AdmissionPreviewStatus{}, err
	}
	return objectsStatus(what, t), nil
}

// checkStored demands of who brings candidates the rights to what stored policies read
// that may change the objects before: a candidate judges what they have made of an object,
// and how many it denies tells what they have read.
func (s *sweep) checkStored(ctx context.Context, what selection) error {
	if len(s.trial.Candidates) == 0 || s.trial.Alone || s.trial.Stored == nil {
		return nil
	}
	subject := match.NewSubject(s.request(what, &unstructured.Unstructured{}), s.trial.View)
	for _, bound := range s.trial.Stored.Candidates(subject, nil) {
		for i := range bound.Policy.Policy.Reads {
			why := fmt.Sprintf("the stored %s %q reads it, and candidates would judge what becomes of the objects: leave the stored policies out with storedPolicies: Ignore",
				bound.ID.Kind, bound.ID.Name)
			if err := s.asker.Need(ctx, rights.ToRead(&bound.Policy.Policy.Reads[i]), why); err != nil {
				return err
			}
		}
	}
	return nil
}

func objectsStatus(what selection, t *tally) policyapi.AdmissionPreviewStatus {
	out := &policyapi.ObjectsStatus{
		Judged:    number(t.judged()),
		Allowed:   number(t.allowed()),
		Denied:    number(t.counts[gradeDenied]),
		Error:     number(t.counts[gradeError]),
		Changed:   number(t.changed),
		Warned:    number(t.counts[gradeWarned]),
		Audited:   number(t.counts[gradeAudited]),
		Ignored:   number(t.counts[gradeIgnored]),
		Remaining: number(t.remaining),
		Truncated: t.truncated,
	}
	for _, kept := range t.kept() {
		out.Failures = append(out.Failures, policyapi.ObjectFailure{
			Object: policyapi.ObjectReference{
				APIVersion: what.mapping.GroupVersionKind.GroupVersion().String(),
				Kind:       what.mapping.GroupVersionKind.Kind,
				Namespace:  kept.namespace,
				Name:       kept.name,
			},
			Outcome:     outcomeOf(kept.grade),
			Message:     kept.message,
			Evaluations: kept.evaluations,
		})
	}
	return policyapi.AdmissionPreviewStatus{
		Allowed: out.Denied == 0 && out.Error == 0 && out.Remaining == 0,
		Objects: out,
	}
}

func number(of int) int32 { return int32(min(of, math.MaxInt32)) } //nolint:gosec // it fits

func outcomeOf(of grade) policyapi.EvaluationOutcome {
	switch of {
	case gradeDenied:
		return policyapi.OutcomeDenied
	case gradeWarned:
		return policyapi.OutcomeWarned
	case gradeAudited:
		return policyapi.OutcomeAudited
	case gradePassed:
		return policyapi.OutcomeAllowed
	case gradeError, gradeIgnored:
	}
	return policyapi.OutcomeError
}

// translateObjects returns the selection of a preview with all its faults. Without
// a view it only looks for those that need none.
func translateObjects(in *policyapi.PreviewObjects, view cluster.View, path *field.Path) (selection, field.ErrorList) {
	what := selection{namespace: in.Namespace, selector: labels.Everything(), limit: int(in.Limit), bytes: maxSweptBytes, operation: admission.Operation(in.Operation)}
	var errs field.ErrorList
	if in.Limit < 1 || in.Limit > maxSweptObjects {
		errs = append(errs, field.Invalid(path.Child("limit"), in.Limit, fmt.Sprintf("must be between 1 and %d", maxSweptObjects)))
	}
	switch what.operation {
	case admission.Create, admission.Update, admission.Delete:
	default:
		errs = append(errs, field.NotSupported(path.Child("operation"), in.Operation,
			[]admission.Operation{admission.Create, admission.Update, admission.Delete}))
	}
	if in.Namespace != "" {
		for _, fault := range validation.ValidateNamespaceName(in.Namespace, false) {
			errs = append(errs, field.Invalid(path.Child("namespace"), in.Namespace, fault))
		}
	}
	if in.LabelSelector != nil {
		selectorErrs := metav1validation.ValidateLabelSelector(in.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))
		errs = append(errs, selectorErrs...)
		selector, err := metav1.LabelSelectorAsSelector(in.LabelSelector)
		if err != nil && len(selectorErrs) == 0 {
			errs = append(errs, field.Invalid(path.Child("labelSelector"), field.OmitValueType{}, err.Error()))
		}
		what.selector = selector
	}
	resource := schema.GroupVersionResource(in.Resource)
	if resource.Resource == "" {
		return what, append(errs, field.Required(path.Child("resource", "resource"), "name the resource of the objects, for example deployments, and its group"))
	}
	if view == nil {
		return what, errs
	}
	mapping, err := listed(view.Mapper(), resource)
	if err != nil {
		return what, append(errs, field.Invalid(path.Child("resource"), describe(resource), err.Error()))
	}
	what.mapping = mapping
	if in.Namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		errs = append(errs, field.Invalid(path.Child("namespace"), in.Namespace, describe(resource)+" are in no namespace: leave it out"))
	}
	return what, errs
}

// listed returns the mapping of a resource whose objects can be listed and are
// judged; without a version, that of the preferred one. The error says why there is
// none.
func listed(mapper meta.RESTMapper, resource schema.GroupVersionResource) (*meta.RESTMapping, error) {
	name := describe(resource)
	if match.Exempt(request.New(request.Fields{Resource: resource})) {
		return nil, fmt.Errorf("no policy judges %s: they are exempt", name)
	}
	if parent, subresource, found := strings.Cut(resource.Resource, "/"); found {
		return nil, fmt.Errorf("the subresource %s has no objects of its own: name %s", subresource, parent)
	}
	found, err := mapper.ResourcesFor(resource)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("look up %s: %w", name, err)
	}
	i := slices.IndexFunc(found, func(one schema.GroupVersionResource) bool {
		return one.Group == resource.Group && one.Resource == resource.Resource // a mapper takes no group for any, and singular names
	})
	if i < 0 {
		return nil, notServed(name, found)
	}
	mapping, err := mappingOf(mapper, found[i])
	if err != nil {
		return nil, fmt.Errorf("kind of %s: %w", name, err)
	}
	if !cluster.Lists(mapping.GroupVersionKind.GroupKind()) {
		return nil, fmt.Errorf("%s are answered and not stored: there are no existing ones", name)
	}
	return mapping, nil
}

// mappingOf returns the mapping of a resource that is served.
func mappingOf(mapper meta.RESTMapper, resource schema.GroupVersionResource) (*meta.RESTMapping, error) {
	kinds, err := mapper.KindsFor(resource)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if kind.GroupVersion() != resource.GroupVersion() {
			continue // the core group is any group to a mapper
		}
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && mapping.Resource == resource {
			return mapping, nil
		}
	}
	return nil, &meta.NoResourceMatchError{PartialResource: resource}
}

func notServed(name string, similar []schema.GroupVersionResource) error {
	if len(similar) > 0 {
		return fmt.Errorf("the cluster has no %s: is it %s?", name, similar[0].GroupResource())
	}
	return fmt.Errorf("the cluster has no %s", name)
}

// describe writes a resource as kubectl does.
func describe(resource schema.GroupVersionResource) string {
	if resource.Version == "" {
		return resource.GroupResource().String()
	}
	return strings.TrimSuffix(resource.Resource+"."+resource.Version+"."+resource.Group, ".")
}
