// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import "testing"

const (
	benchPod = aPod + `"metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "front", "pod-template-hash": "5d4f8c7b9"}, "annotations": {"example.com/owner": "team-a", "example.com/revision": "17"}},
		"spec": {"serviceAccountName": "web", "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
		"volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "web", "defaultMode": 420}}],
		"initContainers": [{"name": "init", "image": "registry.local/team/init:1.2.3", "command": ["sh", "-c", "true"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
		"containers": [{"name": "web", "image": "registry.local/team/web:1.2.3", "imagePullPolicy": "IfNotPresent", "args": ["--port=8080", "--metrics=9090"], "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}, {"containerPort": 9090, "name": "metrics", "protocol": "TCP"}],
			"env": [{"name": "MODE", "value": "production"}, {"name": "LEVEL", "value": "info"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}], "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
			"volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/web", "readOnly": true}], "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "initialDelaySeconds": 5}},
			{"name": "proxy", "image": "registry.local/team/proxy:4.5.6", "ports": [{"containerPort": 15001, "protocol": "TCP"}], "securityContext": {"runAsUser": 1337, "runAsNonRoot": true}}]}`
	benchPatch = `"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "web", "imagePullPolicy": "Always", "env": [{"name": "LEVEL", "value": "debug"}]}], "volumes": [{"name": "cache", "emptyDir": {"medium": "Memory"}}]}`
)

func BenchmarkMerge(b *testing.B) {
	for name, patch := range map[string]string{
		"label":     `"metadata": {"labels": {"team": "a"}}`,
		"container": benchPatch,
		"nothing":   `"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "imagePullPolicy": "IfNotPresent"}]}`,
	} {
		object, patch := decode(b, benchPod), any(decode(b, patch))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Merge(object, patch); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/kyaml", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := upstream(object, patch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
