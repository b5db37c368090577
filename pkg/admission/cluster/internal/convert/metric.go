// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// newMetric follows the conversions of metric sources in
// k8s.io/kubernetes/pkg/apis/autoscaling/v1.
func newMetric(in *autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	out := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(in.Type)}
	if source := in.Object; source != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &source.TargetValue}
		if source.AverageValue != nil {
			target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: source.AverageValue}
			if !source.TargetValue.IsZero() { // 0 is what a v1 without a value has
				target.Value = &source.TargetValue
			}
		}
		out.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(source.Target),
			Target:          target,
			Metric:          autoscalingv2.MetricIdentifier{Name: source.MetricName, Selector: source.Selector},
		}
	}
	if source := in.Pods; source != nil {
		out.Pods = &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: source.MetricName, Selector: source.Selector},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &source.TargetAverageValue},
		}
	}
	if source := in.Resource; source != nil {
		out.Resource = &autoscalingv2.ResourceMetricSource{
			Name: source.Name, Target: resourceTarget(source.TargetAverageUtilization, source.TargetAverageValue),
		}
	}
	if source := in.ContainerResource; source != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: source.Name, Container: source.Container,
			Target: resourceTarget(source.TargetAverageUtilization, source.TargetAverageValue),
		}
	}
	if source := in.External; source != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: source.TargetValue, AverageValue: source.TargetAverageValue}
		if source.TargetValue == nil {
			target.Type = autoscalingv2.AverageValueMetricType
		}
		out.External = &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: source.MetricName, Selector: source.MetricSelector},
			Target: target,
		}
	}
	return out
}

func resourceTarget(utilization *int32, average *resource.Quantity) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: utilization, AverageValue: average}
	if utilization == nil {
		target.Type = autoscalingv2.AverageValueMetricType
	}
	return target
}

func oldMetric(in *autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	out := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(in.Type)}
	if source := in.Object; source != nil {
		out.Object = &autoscalingv1.ObjectMetricSource{
			Target:       autoscalingv1.CrossVersionObjectReference(source.DescribedObject),
			MetricName:   source.Metric.Name,
			TargetValue:  ptr.Deref(source.Target.Value, resource.Quantity{}),
			Selector:     source.Metric.Selector,
			AverageValue: source.Target.AverageValue,
		}
	}
	if source := in.Pods; source != nil {
		out.Pods = &autoscalingv1.PodsMetricSource{
			MetricName:         source.Metric.Name,
			TargetAverageValue: ptr.Deref(source.Target.AverageValue, resource.Quantity{}),
			Selector:           source.Metric.Selector,
		}
	}
	if source := in.Resource; source != nil {
		out.Resource = &autoscalingv1.ResourceMetricSource{
			Name:                     source.Name,
			TargetAverageUtilization: source.Target.AverageUtilization,
			TargetAverageValue:       source.Target.AverageValue,
		}
	}
	if source := in.ContainerResource; source != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: source.Name, Container: source.Container,
			TargetAverageUtilization: source.Target.AverageUtilization,
			TargetAverageValue:       source.Target.AverageValue,
		}
	}
	if source := in.External; source != nil {
		out.External = &autoscalingv1.ExternalMetricSource{
			MetricName:         source.Metric.Name,
			MetricSelector:     source.Metric.Selector,
			TargetValue:        source.Target.Value,
			TargetAverageValue: source.Target.AverageValue,
		}
	}
	return out
}
