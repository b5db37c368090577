// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

// manifest is a Deployment as a rollout sends it: 2.8 KB of JSON.
const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: storefront
  namespace: default
  labels: {app.kubernetes.io/name: storefront, app.kubernetes.io/part-of: shop, app.kubernetes.io/managed-by: helm, team: checkout}
  annotations:
    deployment.kubernetes.io/revision: "7"
    example.com/owner: checkout@example.com
spec:
  replicas: 3
  revisionHistoryLimit: 10
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app.kubernetes.io/name: storefront}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: storefront, app.kubernetes.io/part-of: shop, team: checkout}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090", prometheus.io/path: /metrics}
    spec:
      serviceAccountName: storefront
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 45
      securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: images.example.com/shop/storefront:2.31.0
        imagePullPolicy: IfNotPresent
        args: [--listen=:8080, --metrics=:9090, --backend=http://catalog.shop.svc:8080, --log-format=json]
        ports: [{name: http, containerPort: 8080, protocol: TCP}, {name: metrics, containerPort: 9090, protocol: TCP}]
        env:
        - {name: POD_NAME, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
        - {name: CACHE_SIZE, value: 256Mi}
        - {name: DATABASE_URL, valueFrom: {secretKeyRef: {name: storefront-database, key: url}}}
        resources: {requests: {cpu: 250m, memory: 512Mi}, limits: {memory: 1Gi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        readinessProbe: {httpGet: {path: /ready, port: http, scheme: HTTP}, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 3}
        livenessProbe: {httpGet: {path: /live, port: http, scheme: HTTP}, initialDelaySeconds: 10, periodSeconds: 10, failureThreshold: 6}
        volumeMounts: [{name: cache, mountPath: /var/cache/storefront}, {name: config, mountPath: /etc/storefront, readOnly: true}]
      - name: proxy
        image: images.example.com/platform/proxy:1.9.4
        imagePullPolicy: IfNotPresent
        ports: [{name: proxy, containerPort: 15001, protocol: TCP}]
        env: [{name: UPSTREAM, value: "127.0.0.1:8080"}, {name: LOG_LEVEL, value: warning}]
        resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 128Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumes: [{name: cache, emptyDir: {sizeLimit: 1Gi}}, {name: config, configMap: {name: storefront, defaultMode: 420}}]
`

func typedDeployment(t testing.TB) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(manifest), deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// deployment is the same as an AdmissionReview carries it.
func deployment(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typedDeployment(t))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	encoded, err := json.Marshal(content)
	if err != nil || len(encoded) < 2_700 || len(encoded) > 2_900 {
		t.Fatalf("the object has %d bytes and error %v, want 2.8 KB", len(encoded), err)
	}
	return object
}

func client() user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:ci:deployer", UID: "4711", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
}
