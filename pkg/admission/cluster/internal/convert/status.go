// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// newMetricStatus follows the conversions of metric statuses in
// k8s.io/kubernetes/pkg/apis/autoscaling/v1.
func newMetricStatus(in *autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	out := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(in.Type)}
	if status := in.Object; status != nil {
		out.Object = &autoscalingv2.ObjectMetricStatus{
			Metric:          autoscalingv2.MetricIdentifier{Name: status.MetricName, Selector: status.Selector},
			Current:         autoscalingv2.MetricValueStatus{Value: &status.CurrentValue, AverageValue: status.AverageValue},
			DescribedObject: autoscalingv2.CrossVersionObjectReference(status.Target),
		}
	}
	if status := in.Pods; status != nil {
		out.Pods = &autoscalingv2.PodsMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: status.MetricName, Selector: status.Selector},
			Current: autoscalingv2.MetricValueStatus{AverageValue: &status.CurrentAverageValue},
		}
	}
	if status := in.Resource; status != nil {
		out.Resource = &autoscalingv2.ResourceMetricStatus{
			Name:    status.Name,
			Current: autoscalingv2.MetricValueStatus{AverageValue: &status.CurrentAverageValue, AverageUtilization: status.CurrentAverageUtilization},
		}
	}
	if status := in.ContainerResource; status != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: status.Name, Container: status.Container,
			Current: autoscalingv2.MetricValueStatus{AverageValue: &status.CurrentAverageValue, AverageUtilization: status.CurrentAverageUtilization},
		}
	}
	if status := in.External; status != nil {
		out.External = &autoscalingv2.ExternalMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: status.MetricName, Selector: status.MetricSelector},
			Current: autoscalingv2.MetricValueStatus{Value: &status.CurrentValue, AverageValue: status.CurrentAverageValue},
		}
	}
	return out
}

func oldMetricStatus(in *autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	out := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(in.Type)}
	none := resource.Quantity{}
	if status := in.Object; status != nil {
		out.Object = &autoscalingv1.ObjectMetricStatus{
			Target:       autoscalingv1.CrossVersionObjectReference(status.DescribedObject),
			MetricName:   status.Metric.Name,
			CurrentValue: ptr.Deref(status.Current.Value, none),
			Selector:     status.Metric.Selector,
			AverageValue: status.Current.AverageValue,
		}
	}
	if status := in.Pods; status != nil {
		out.Pods = &autoscalingv1.PodsMetricStatus{
			MetricName:          status.Metric.Name,
			CurrentAverageValue: ptr.Deref(status.Current.AverageValue, none),
			Selector:            status.Metric.Selector,
		}
	}
	if status := in.Resource; status != nil {
		out.Resource = &autoscalingv1.ResourceMetricStatus{
			Name:                      status.Name,
			CurrentAverageUtilization: status.Current.AverageUtilization,
			CurrentAverageValue:       ptr.Deref(status.Current.AverageValue, none),
		}
	}
	if status := in.ContainerResource; status != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
			Name: status.Name, Container: status.Container,
			CurrentAverageUtilization: status.Current.AverageUtilization,
			CurrentAverageValue:       ptr.Deref(status.Current.AverageValue, none),
		}
	}
	if status := in.External; status != nil {
		out.External = &autoscalingv1.ExternalMetricStatus{
			MetricName:          status.Metric.Name,
			MetricSelector:      status.Metric.Selector,
			CurrentValue:        ptr.Deref(status.Current.Value, none),
			CurrentAverageValue: status.Current.AverageValue,
		}
	}
	return out
}
