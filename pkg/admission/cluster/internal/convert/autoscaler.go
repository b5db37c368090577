// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Annotations in which autoscaling/v1 keeps what its fields have no place for;
// see k8s.io/kubernetes/pkg/apis/autoscaling/annotations.go.
const (
	metricsAnnotation            = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation     = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation         = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation           = "autoscaling.alpha.kubernetes.io/behavior"
	scaleDownToleranceAnnotation = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
	scaleUpToleranceAnnotation   = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
)

// defaultUtilization is what autoscaling/v1 means when it names no metric at all,
// in percent.
const defaultUtilization = 80

// newAutoscaler follows Convert_v1_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler
// of k8s.io/kubernetes/pkg/apis/autoscaling/v1: an annotation that cannot be read
// counts as absent.
func newAutoscaler(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) error {
	*out = autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
			Metrics:        newSpecMetrics(in),
			Behavior:       newBehavior(in.Annotations[behaviorAnnotation]),
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
			CurrentMetrics:     newStatusMetrics(in),
		},
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if decode(in.Annotations[conditionsAnnotation], &conditions) {
		for _, condition := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, newCondition(condition))
		}
	}
	out.Annotations = withoutKept(in.Annotations)
	return nil
}

// newSpecMetrics puts those of the annotation first, as upstream does.
func newSpecMetrics(in *autoscalingv1.HorizontalPodAutoscaler) []autoscalingv2.MetricSpec {
	var metrics []autoscalingv2.MetricSpec
	var others []autoscalingv1.MetricSpec
	if decode(in.Annotations[metricsAnnotation], &others) {
		for i := range others {
			metrics = append(metrics, newMetric(&others[i]))
		}
	}
	if utilization := in.Spec.TargetCPUUtilizationPercentage; utilization != nil {
		metrics = append(metrics, cpuMetric(*utilization))
	}
	if len(metrics) == 0 {
		metrics = []autoscalingv2.MetricSpec{cpuMetric(defaultUtilization)}
	}
	return metrics
}

func cpuMetric(utilization int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{
				Type:               autoscalingv2.UtilizationMetricType,
				AverageUtilization: &utilization,
			},
		},
	}
}

// newStatusMetrics prefers the annotation, which says more than the field.
func newStatusMetrics(in *autoscalingv1.HorizontalPodAutoscaler) []autoscalingv2.MetricStatus {
	var current []autoscalingv1.MetricStatus
	if decode(in.Annotations[currentMetricsAnnotation], &current) {
		metrics := make([]autoscalingv2.MetricStatus, len(current))
		for i := range current {
			metrics[i] = newMetricStatus(&current[i])
		}
		return metrics
	}
	if in.Status.CurrentCPUUtilizationPercentage == nil {
		return nil
	}
	return []autoscalingv2.MetricStatus{{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricStatus{
			Name:    corev1.ResourceCPU,
			Current: autoscalingv2.MetricValueStatus{AverageUtilization: in.Status.CurrentCPUUtilizationPercentage},
		},
	}}
}

// newBehavior reads what autoscaling/v1 keeps in the form of an internal Go type,
// whose keys are names of fields; case does not matter to the decoder.
func newBehavior(text string) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	var behavior autoscalingv2.HorizontalPodAutoscalerBehavior
	if !decode(text, &behavior) || behavior == (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		return nil
	}
	return &behavior
}

func newCondition(in autoscalingv1.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscalerCondition {
	return autoscalingv2.HorizontalPodAutoscalerCondition{
		Type:               autoscalingv2.HorizontalPodAutoscalerConditionType(in.Type),
		Status:             in.Status,
		LastTransitionTime: in.LastTransitionTime,
		Reason:             in.Reason,
		Message:            in.Message,
		ObservedGeneration: in.ObservedGeneration,
	}
}

// oldAutoscaler follows Convert_autoscaling_HorizontalPodAutoscaler_To_v1_HorizontalPodAutoscaler
// of the same package.
func oldAutoscaler(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) error {
	*out = autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	kept := map[string]any{}
	var others []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		if utilization := cpuUtilization(&in.Spec.Metrics[i]); utilization == nil {
			others = append(others, oldMetric(&in.Spec.Metrics[i]))
		} else if out.Spec.TargetCPUUtilizationPercentage == nil {
			out.Spec.TargetCPUUtilizationPercentage = ptr.To(*utilization)
		}
	}
	if len(others) > 0 {
		kept[metricsAnnotation] = others
	}
	if len(in.Status.CurrentMetrics) > 0 {
		kept[currentMetricsAnnotation] = oldStatusMetrics(in.Status.CurrentMetrics, &out.Status)
	}
	if in.Spec.Behavior != nil {
		kept[behaviorAnnotation] = oldBehavior(in.Spec.Behavior)
	}
	if len(in.Status.Conditions) > 0 {
		kept[conditionsAnnotation] = oldConditions(in.Status.Conditions)
	}
	return keep(out, withoutKept(in.Annotations), kept)
}

func keep(out *autoscalingv1.HorizontalPodAutoscaler, annotations map[string]string, kept map[string]any) error {
	out.Annotations = annotations
	if len(kept) == 0 {
		return nil
	}
	out.Annotations = maps.Clone(annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	for key, value := range kept {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		out.Annotations[key] = string(text)
	}
	return nil
}

func cpuUtilization(metric *autoscalingv2.MetricSpec) *int32 {
	if metric.Type != autoscalingv2.ResourceMetricSourceType || metric.Resource == nil || metric.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return metric.Resource.Target.AverageUtilization
}

func oldStatusMetrics(metrics []autoscalingv2.MetricStatus, status *autoscalingv1.HorizontalPodAutoscalerStatus) []autoscalingv1.MetricStatus {
	old := make([]autoscalingv1.MetricStatus, len(metrics))
	for i := range metrics {
		metric := &metrics[i]
		old[i] = oldMetricStatus(metric)
		if metric.Type == autoscalingv2.ResourceMetricSourceType && metric.Resource != nil && metric.Resource.Name == corev1.ResourceCPU &&
			metric.Resource.Current.AverageUtilization != nil {
			status.CurrentCPUUtilizationPercentage = ptr.To(*metric.Resource.Current.AverageUtilization)
		}
	}
	return old
}

func oldConditions(conditions []autoscalingv2.HorizontalPodAutoscalerCondition) []autoscalingv1.HorizontalPodAutoscalerCondition {
	old := make([]autoscalingv1.HorizontalPodAutoscalerCondition, len(conditions))
	for i, condition := range conditions {
		old[i] = autoscalingv1.HorizontalPodAutoscalerCondition{
			Type:               autoscalingv1.HorizontalPodAutoscalerConditionType(condition.Type),
			Status:             condition.Status,
			LastTransitionTime: condition.LastTransitionTime,
			Reason:             condition.Reason,
			Message:            condition.Message,
			ObservedGeneration: condition.ObservedGeneration,
		}
	}
	return old
}

// oldBehavior has the keys under which autoscaling/v1 keeps it: upstream writes an
// internal Go type, which has no JSON names.
func oldBehavior(in *autoscalingv2.HorizontalPodAutoscalerBehavior) any {
	type policy struct {
		Type                 autoscalingv2.HPAScalingPolicyType
		Value, PeriodSeconds int32
	}
	type rules struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []policy
		Tolerance                  any
	}
	named := func(in *autoscalingv2.HPAScalingRules) *rules {
		if in == nil {
			return nil
		}
		out := &rules{StabilizationWindowSeconds: in.StabilizationWindowSeconds, SelectPolicy: in.SelectPolicy}
		if in.Tolerance != nil {
			out.Tolerance = in.Tolerance
		}
		for _, p := range in.Policies {
			out.Policies = append(out.Policies, policy{p.Type, p.Value, p.PeriodSeconds})
		}
		return out
	}
	return struct{ ScaleUp, ScaleDown *rules }{named(in.ScaleUp), named(in.ScaleDown)}
}

// withoutKept returns annotations without those that only carry fields from one
// version to another; it does not modify them.
func withoutKept(annotations map[string]string) map[string]string {
	rest := annotations
	for _, key := range []string{
		metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation,
		scaleDownToleranceAnnotation, scaleUpToleranceAnnotation,
	} {
		if _, ok := annotations[key]; !ok {
			continue
		}
		if len(rest) == len(annotations) {
			rest = maps.Clone(annotations)
		}
		delete(rest, key)
	}
	return rest
}

func decode(text string, into any) bool {
	return text != "" && json.Unmarshal([]byte(text), into) == nil
}
