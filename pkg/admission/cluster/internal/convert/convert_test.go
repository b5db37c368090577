// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/convert"
)

// The wanted objects are what the conversions of k8s.io/kubernetes 1.36.3 make.
func TestTo(t *testing.T) {
	tests := []struct{ name, object, want string }{
		{
			name: "event",
			object: `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default, creationTimestamp: null}, involvedObject: {kind: Pod, name: p},
  reason: Started, message: it runs, source: {component: kubelet, host: node}, firstTimestamp: "2026-01-01T00:00:00Z", lastTimestamp: "2026-01-02T00:00:00Z", count: 3,
  type: Normal, eventTime: null, reportingComponent: kubelet, reportingInstance: node}`,
			want: `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e, namespace: default}, regarding: {kind: Pod, name: p},
  reason: Started, note: it runs, deprecatedSource: {component: kubelet, host: node}, deprecatedFirstTimestamp: "2026-01-01T00:00:00Z",
  deprecatedLastTimestamp: "2026-01-02T00:00:00Z", deprecatedCount: 3, type: Normal, eventTime: null, reportingController: kubelet, reportingInstance: node}`,
		},
		{
			name: "event back",
			object: `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e}, regarding: {kind: Pod, name: p}, related: {kind: Node, name: node},
  reason: Started, action: Start, note: it runs, eventTime: "2026-01-01T00:00:00.000000Z", series: {count: 2, lastObservedTime: "2026-01-02T00:00:00.000000Z"}, reportingController: c, reportingInstance: i}`,
			want: `{apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {kind: Pod, name: p}, related: {kind: Node, name: node}, reason: Started, action: Start,
  message: it runs, source: {}, firstTimestamp: null, lastTimestamp: null, eventTime: "2026-01-01T00:00:00.000000Z", series: {count: 2, lastObservedTime: "2026-01-02T00:00:00.000000Z"}, reportingComponent: c, reportingInstance: i}`,
		},
		{
			name:   "autoscaler without a metric",
			object: `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h, annotations: {a: b}}, spec: {scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}, minReplicas: 1, maxReplicas: 3}}`,
			want: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, annotations: {a: b}}, spec: {scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}, minReplicas: 1, maxReplicas: 3,
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}, status: {desiredReplicas: 0, currentMetrics: null}}`,
		},
		{
			name: "autoscaler with annotations",
			object: `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: h
  annotations:
    autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10"}}]'
    autoscaling.alpha.kubernetes.io/behavior: '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":30,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":50,"PeriodSeconds":15}],"Tolerance":null}}'
    autoscaling.alpha.kubernetes.io/conditions: not JSON
spec: {scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 3, targetCPUUtilizationPercentage: 50}
status: {currentReplicas: 1, desiredReplicas: 2, currentCPUUtilizationPercentage: 40}
`,
			want: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec:
  scaleTargetRef: {kind: Deployment, name: web}
  maxReplicas: 3
  metrics:
  - {type: Pods, pods: {metric: {name: qps}, target: {type: AverageValue, averageValue: "10"}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 30, selectPolicy: Max, policies: [{type: Percent, value: 50, periodSeconds: 15}]}}
status: {currentReplicas: 1, desiredReplicas: 2, currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 40}}}]}
`,
		},
		{
			name: "autoscaler back",
			object: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, annotations: {autoscaling.alpha.kubernetes.io/metrics: stale}}
spec:
  scaleTargetRef: {kind: Deployment, name: web}
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  - {type: External, external: {metric: {name: queue}, target: {type: Value, value: "5"}}}
  behavior: {scaleUp: {policies: [{type: Pods, value: 2, periodSeconds: 60}]}}
`,
			want: `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: h
  annotations:
    autoscaling.alpha.kubernetes.io/metrics: '[{"type":"External","external":{"metricName":"queue","targetValue":"5"}}]'
    autoscaling.alpha.kubernetes.io/behavior: '{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":2,"PeriodSeconds":60}],"Tolerance":null},"ScaleDown":null}'
spec: {scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 3, targetCPUUtilizationPercentage: 50}
status: {currentReplicas: 0, desiredReplicas: 0}
`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object, want := parse(t, test.object), parse(t, test.want)
			before := object.DeepCopy()
			got, known, err := convert.To(object, want.GroupVersionKind())
			if err != nil || !known {
				t.Fatalf("got %v, %v", known, err)
			}
			if !reflect.DeepEqual(object, before) {
				t.Error("it has modified its object")
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got.Object, want.Object)
			}
		})
	}
}

func TestToRefuses(t *testing.T) {
	autoscaler := schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	if _, known, err := convert.To(parse(t, `{apiVersion: v1, kind: Event}`), autoscaler); known || err != nil {
		t.Errorf("got %v, %v for kinds that have nothing in common", known, err)
	}
	if _, known, err := convert.To(parse(t, `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: 5}`), autoscaler); !known || err == nil {
		t.Errorf("got %v, %v for an object that is none", known, err)
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}
