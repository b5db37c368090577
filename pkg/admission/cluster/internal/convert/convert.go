// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert turns objects of the built-in kinds that kube-apiserver serves
// in more than one version into those other versions: Event and
// HorizontalPodAutoscaler. It adds no defaults and does not know custom resources.
package convert

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// To returns obj, which it does not modify, as a kind that serves the same
// objects. It returns false for a pair of kinds that it does not know. It fails
// when obj is not what its kind says.
func To(obj *unstructured.Unstructured, kind schema.GroupVersionKind) (*unstructured.Unstructured, bool, error) {
	var converted *unstructured.Unstructured
	var err error
	switch (pair{obj.GroupVersionKind(), kind}) {
	case pair{corev1.SchemeGroupVersion.WithKind("Event"), eventsv1.SchemeGroupVersion.WithKind("Event")}:
		converted, err = through(obj, kind, newEvent)
	case pair{eventsv1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithKind("Event")}:
		converted, err = through(obj, kind, oldEvent)
	case pair{autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")}:
		converted, err = through(obj, kind, newAutoscaler)
	case pair{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")}:
		converted, err = through(obj, kind, oldAutoscaler)
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("unable to convert %v to %v: %w", obj.GroupVersionKind(), kind, err)
	}
	return converted, true, nil
}

type pair struct{ from, to schema.GroupVersionKind }

// through converts by way of Go types, so that the result has the fields that the
// API server would write.
func through[From, To any](obj *unstructured.Unstructured, kind schema.GroupVersionKind, convert func(*From, *To) error) (*unstructured.Unstructured, error) {
	var from From
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &from); err != nil {
		return nil, err
	}
	var to To
	if err := convert(&from, &to); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&to)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(kind)
	return converted, nil
}
