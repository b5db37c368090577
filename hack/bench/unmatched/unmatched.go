// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unmatched makes policies with strategic merge patches that do not match the
// reviews with which others are measured. They are to show what policies cost that are
// only there.
package unmatched

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// Prefix is that of the names of the policies.
	Prefix = "unmatched-"

	apiVersion = "policy.portcullis.dev/v1alpha1"
)

// Policy returns the policy with a number. Six of ten are about other kinds, and the
// others about Pods, but of another namespace, name or label. None has the patch of
// another.
func Policy(i int) *unstructured.Unstructured {
	name := fmt.Sprintf("%s%04d", Prefix, i)
	other := fmt.Sprintf("other-%04d", i)
	object := map[string]any{
		"apiVersion": apiVersion, "kind": "ClusterPolicy", "metadata": map[string]any{"name": name},
	}
	var resources map[string]any
	kinds := func(names ...any) map[string]any { return map[string]any{"kinds": names} }
	switch i % 10 {
	case 0, 1:
		resources = kinds("Deployment")
	case 2:
		resources = kinds("StatefulSet", "DaemonSet")
	case 3:
		resources = kinds("Service")
	case 4:
		resources = kinds("networking.k8s.io/v1/Ingress")
	case 5:
		resources = kinds("ConfigMap", "Secret")
	case 6:
		resources = kinds("Pod")
		object["kind"], object["metadata"] = "Policy", map[string]any{"name": name, "namespace": other}
	case 7:
		resources = kinds("Pod")
		resources["namespaces"] = []any{other}
	case 8:
		resources = kinds("Pod")
		resources["names"] = []any{other + "-*"}
	case 9:
		resources = kinds("Pod")
		resources["selector"] = map[string]any{"matchLabels": map[string]any{"team": other}}
	}
	object["spec"] = map[string]any{"rules": []any{map[string]any{
		"name":  "label",
		"match": map[string]any{"any": []any{map[string]any{"resources": resources}}},
		"mutate": map[string]any{"patchStrategicMerge": map[string]any{"metadata": map[string]any{"labels": map[string]any{
			"+(owner)": "{{ request.namespace }}-" + other,
		}}}},
	}}}
	return &unstructured.Unstructured{Object: object}
}
