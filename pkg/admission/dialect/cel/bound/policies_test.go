// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

const containerJSON = `{"name": "web-%d", "image": "registry.example.com/team/web:1.2.3", "imagePullPolicy": "IfNotPresent",
	"command": ["/bin/web", "--config=/etc/web/config.yaml", "--verbose"],
	"ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
	"env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
		{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "web", "key": "password"}}}],
	"resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
	"livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "initialDelaySeconds": 5, "periodSeconds": 10},
	"readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
	"volumeMounts": [{"name": "config", "mountPath": "/etc/web"}, {"name": "tmp", "mountPath": "/tmp"}],
	"securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true, "runAsNonRoot": true}}`

const deploymentJSON = `{"apiVersion": "apps/v1", "kind": "Deployment",
	"metadata": {"name": "web", "namespace": "team-a", "uid": "0e0a1c3e-6a0d-4b4d-9d6e-1c7d6c1b2f3a", "generation": 1,
		"creationTimestamp": "2026-01-01T00:00:00Z",
		"labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/version": "1.2.3", "team": "a"},
		"annotations": {"deployment.kubernetes.io/revision": "1", "note": "%s"}},
	"spec": {"replicas": 3, "revisionHistoryLimit": 10, "selector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
		"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%%", "maxUnavailable": "25%%"}},
		"template": {"metadata": {"labels": {"app.kubernetes.io/name": "web", "team": "a"}},
			"spec": {"serviceAccountName": "web", "automountServiceAccountToken": false, "restartPolicy": "Always",
				"containers": [%s], "nodeSelector": {"kubernetes.io/os": "linux"},
				"volumes": [{"name": "config", "configMap": {"name": "web"}}, {"name": "tmp", "emptyDir": {}}]}}}}`

// deployment returns a Deployment with that many containers and an annotation that
// long.
func deployment(t testing.TB, containers, note int) map[string]any {
	t.Helper()
	var list []string
	for i := range containers {
		list = append(list, fmt.Sprintf(containerJSON, i))
	}
	text := fmt.Sprintf(deploymentJSON, strings.Repeat("x", note), strings.Join(list, ", "))
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("decode the Deployment: %v", err)
	}
	return object
}

var policyCases = []struct {
	source string
	// most is the order of the bound on a Deployment of 2.8 KB, mostLarge on one that
	// was applied with kubectl and has 20 containers.
	most, mostLarge uint64
}{
	{"object.spec.replicas <= 5", 10, 10},
	{"has(object.metadata.labels) && 'team' in object.metadata.labels", 10, 10},
	{"object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/') && has(c.resources))", 500, 2_000},
	{"object.spec.template.spec.containers.all(c, has(c.resources.limits) && 'cpu' in c.resources.limits)", 500, 2_000},
	{"object.metadata.labels.exists(k, k == 'team')", 200, 1_000},
	{"object.metadata.labels.all(k, object.metadata.labels[k].size() < 64)", 500, 1_000},
	{"object.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')", 500, 10_000},
	{"object.spec.template.spec.containers.all(c, c.image.matches('^registry[.]example[.]com/.*:[0-9.]+$'))", 5_000, 300_000},
	{"object.spec.template.spec.containers.all(c, !has(c.env) || c.env.all(e, !has(e.value) || !e.value.contains('secret')))", 10_000, 500_000},
	{"object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1024))", 2_000, 50_000},
	{"(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).all(c, !has(c.securityContext) || c.securityContext.runAsNonRoot == true)", 1_000, 5_000},
	{"object.spec.template.spec.containers.filter(c, c.image.endsWith(':latest')).map(c, c.name).size() == 0", 1_000, 5_000},
	{"object.spec.template.spec.containers.all(c, quantity(c.resources.limits.memory).isLessThan(quantity('1Gi')))", 1_000, 50_000},
	{"sets.contains(['a', 'b', 'c'], object.spec.template.spec.containers.map(c, c.name))", 500, 2_000},
	{"'Deployment ' + object.metadata.name + ' has ' + string(object.spec.replicas) + ' replicas'", 500, 5_000},
	{"'%s has %d replicas'.format([object.metadata.name, object.spec.replicas])", 100, 100},
	{"'images: ' + object.spec.template.spec.containers.map(c, c.image).join(', ')", 2_000, 200_000},
	{"object.spec.template.spec.containers.all(c, object.spec.template.spec.containers.all(d, c.name == d.name || c.image != d.image))", 10_000, 500_000},
	{"oldObject == null || object.metadata.labels['team'] == oldObject.metadata.labels['team']", 100, 1_000},
	{"variables.containers.all(c, c.name in variables.names)", 500, 5_000},
}

func TestTypicalPolicies(t *testing.T) {
	small, big := deployment(t, 2, 100), deployment(t, 20, 3000)
	variables := map[string]*bound.Expression{}
	variables["containers"] = analyzed(t, "object.spec.template.spec.containers", nil)
	variables["names"] = analyzed(t, "variables.containers.map(c, c.name)", variables)
	for _, test := range policyCases {
		e := analyzed(t, test.source, variables)
		if limit, ok := e.Cost(bound.Measure(small, nil)); !ok || limit > test.most {
			t.Errorf("%s: bound %d, %v on a small object, want at most %d", test.source, limit, ok, test.most)
		}
		if limit, ok := e.Cost(bound.Measure(big, nil)); !ok || limit > test.mostLarge {
			t.Errorf("%s: bound %d, %v on a large object, want at most %d", test.source, limit, ok, test.mostLarge)
		}
	}
}

func TestInnerLoopsShareTheElementsOfOuterOnes(t *testing.T) {
	object := map[string]any{"a": []any{}}
	for range 200 {
		object["a"] = append(object["a"].([]any), map[string]any{"b": []any{map[string]any{"c": []any{int64(1), int64(2)}}}})
	}
	sizes := bound.Measure(object)
	nested, _ := analyzed(t, "object.a.all(x, x.b.all(y, y.c.all(z, z > 0)))", nil).Cost(sizes)
	if nested == 0 || nested > 100_000 {
		t.Errorf("three nested loops have the bound %d, want at most 100,000", nested)
	}
	crossed, _ := analyzed(t, "object.a.all(x, object.a.all(y, x != y))", nil).Cost(sizes)
	if crossed < 200*200 {
		t.Errorf("two loops over the same list have the bound %d, want at least 40,000", crossed)
	}
	again, _ := analyzed(t, "object.a.all(x, object.a.all(y, x.b.all(z, y.b.all(w, w != z))))", nil).Cost(sizes)
	if again < 200*200 {
		t.Errorf("four loops over two elements have the bound %d, want at least 40,000", again)
	}
}

func TestVariables(t *testing.T) {
	known := map[string]*bound.Expression{"a": analyzed(t, "object.a", nil), "b": analyzed(t, "object.b", nil), "c": nil}
	for _, test := range []struct {
		source string
		want   []string
	}{
		{"object.a == 1", nil},
		{"variables.b == variables.a && variables.b", []string{"a", "b"}},
		{"object.all(x, x == variables.c)", []string{"c"}},
		{"has(variables.a)", []string{"a"}},
		{"variables.d", []string{"d"}},
		{"variables == object", []string{"a", "b", "c"}},
		{"variables['a'] == variables.d", []string{"a", "b", "c", "d"}},
	} {
		if got := analyzed(t, test.source, known).Variables(); !slices.Equal(got, test.want) {
			t.Errorf("%s reads the variables %q, want %q", test.source, got, test.want)
		}
	}
}

// TestVariablesOfVariables makes a chain in which each variable reads the one before
// twice: its values grow without a bound, the work to see that must not.
func TestVariablesOfVariables(t *testing.T) {
	known := map[string]*bound.Expression{"v0": analyzed(t, "string(object.a)", nil)}
	sizes := bound.Measure(map[string]any{"a": "abc"})
	var last *bound.Expression
	for i := range 40 {
		last = analyzed(t, fmt.Sprintf("string(variables.v%d) + string(variables.v%d)", i, i), known)
		known[fmt.Sprintf("v%d", i+1)] = last
	}
	if limit, ok := last.Cost(sizes); !ok || limit < 1<<36 {
		t.Errorf("the 40th variable costs at most %d, %v, want the cost of a text that doubled 40 times", limit, ok)
	}
	if limit, ok := known["v3"].Cost(sizes); !ok || limit > 200 {
		t.Errorf("the third variable costs at most %d, %v, want at most 200", limit, ok)
	}
	for i := range 200 {
		last = analyzed(t, fmt.Sprintf("string(variables.v%d) + string(variables.v%d)", 40+i, 40+i), known)
		known[fmt.Sprintf("v%d", 41+i)] = last
	}
	if limit, ok := last.Cost(sizes); ok {
		t.Errorf("a chain of 240 variables has the bound %d, want none", limit)
	}
}

func TestNothingKnownHasNoBound(t *testing.T) {
	var none *bound.Expression
	sizes := bound.Measure(map[string]any{})
	for name, e := range map[string]*bound.Expression{
		"nil": none, "zero": {}, "no expression": bound.Analyze(nil, nil),
		"missing variable": analyzed(t, "variables.a + 'x' + string(variables.a)", nil),
	} {
		if limit, ok := e.Cost(sizes); ok {
			t.Errorf("%s: bound %d, want none", name, limit)
		}
	}
	if limit, ok := analyzed(t, "object.all(x, x == 1)", nil).Cost(bound.Sizes{}); ok {
		t.Errorf("the bound is %d on data of unknown size, want none", limit)
	}
}

func BenchmarkMeasure(b *testing.B) {
	object := deployment(b, 2, 100)
	text, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		bound.Measure(object)
	}
	b.ReportMetric(float64(len(text)), "bytes/object")
}

func BenchmarkCost(b *testing.B) {
	sizes := bound.Measure(deployment(b, 2, 100))
	e := analyzed(b, policyCases[8].source, nil)
	b.ReportAllocs()
	for b.Loop() {
		e.Cost(sizes)
	}
}

func BenchmarkAnalyze(b *testing.B) {
	ast, err := checked(b, policyCases[8].source)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		bound.Analyze(ast.NativeRep(), nil)
	}
}
