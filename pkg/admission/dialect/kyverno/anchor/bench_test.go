// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// benchPod is a Pod of about 2 KB.
const benchPod = `
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
  labels: {app: web, tier: front, pod-template-hash: 5d4f8c7b9}
  annotations: {example.com/owner: team-a, example.com/revision: "17"}
spec:
  serviceAccountName: web
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: a, operator: Exists}, {key: b, operator: Equal, value: x, effect: NoSchedule}]
  volumes: [{name: data, emptyDir: {}}, {name: config, configMap: {name: web, defaultMode: 420}}]
  initContainers:
  - {name: init, image: "registry.local/team/init:1.2.3", command: [sh, -c, "true"], volumeMounts: [{name: data, mountPath: /data}]}
  containers:
  - name: web
    image: registry.local/team/web:latest
    imagePullPolicy: IfNotPresent
    args: [--port=8080, --metrics=9090]
    ports: [{containerPort: 8080, name: http, protocol: TCP}, {containerPort: 9090, name: metrics, protocol: TCP}]
    env: [{name: MODE, value: production}, {name: LEVEL, value: info}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
    resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
    volumeMounts: [{name: data, mountPath: /data}, {name: config, mountPath: /etc/web, readOnly: true}]
    livenessProbe: {httpGet: {path: /healthz, port: 8080}, initialDelaySeconds: 5}
  - name: proxy
    image: registry.local/team/proxy:4.5.6
    ports: [{containerPort: 15001, protocol: TCP}]
    securityContext: {runAsUser: 1337, runAsNonRoot: true}
`

func BenchmarkApply(b *testing.B) {
	pod := object(b, "Pod", benchPod)
	scope := variables{"element": map[string]any{"name": "web", "image": "x"}}
	for name, text := range map[string]string{
		"image":     `{spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}}`,
		"none":      `{spec: {containers: [{(image): "*:none", imagePullPolicy: Always}]}}`,
		"gate":      `{spec: {containers: [{<(image): "corp/*"}], imagePullSecrets: [{name: s}]}}`,
		"add":       `{metadata: {labels: {+(team): a, +(app): x}}, spec: {containers: [{(name): "*", securityContext: {+(runAsNonRoot): true}}]}}`,
		"element":   `{spec: {containers: [{(name): "{{ element.name }}", imagePullPolicy: Always}]}}`,
		"no anchor": `{metadata: {labels: {team: a}}}`,
	} {
		overlay := compile(b, text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := overlay.Apply(b.Context(), &jmespath.Run{Steps: 100_000, Bytes: 1 << 20}, scope, pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
