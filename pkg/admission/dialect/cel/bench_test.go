// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"encoding/json"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// uniqueSpec returns the i-th policy of many, no two of which have an expression, a
// name or a text in common.
func uniqueSpec(i int) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return &admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: fmt.Sprintf("condition-%d", i), Expression: fmt.Sprintf("request.operation == 'CREATE' && request.name != 'exempt-%d'", i),
		}},
		Variables: []admissionregistrationv1.Variable{{
			Name: fmt.Sprintf("containers%d", i), Expression: fmt.Sprintf("object.spec.template.spec.containers.filter(c, c.name != 'ignored-%d')", i),
		}},
		Validations: []admissionregistrationv1.Validation{
			{
				Expression:        fmt.Sprintf("variables.containers%d.all(c, c.image.startsWith('registry.example.com/') && !c.image.endsWith(':bad-%d'))", i, i),
				MessageExpression: fmt.Sprintf("'%d: images must come from our registry: ' + variables.containers%d.map(c, c.image).join(', ')", i, i),
			},
			{Expression: fmt.Sprintf("object.spec.replicas <= %d", 1000+i), Message: fmt.Sprintf("too many replicas for %d", i)},
			{Expression: fmt.Sprintf("has(object.metadata.labels) && object.metadata.labels.exists(k, k == 'app' || k == 'app-%d')", i)},
		},
	}
}

// deploymentJSON has about 2.8 KB.
const deploymentJSON = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default","labels":{"app":"web","team":"shop","tier":"frontend","app.kubernetes.io/managed-by":"helm"},"annotations":{"deployment.kubernetes.io/revision":"3","description":"The front end of the shop, which customers see first when they come."}},"spec":{"replicas":3,"revisionHistoryLimit":10,"progressDeadlineSeconds":600,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}},"template":{"metadata":{"labels":{"app":"web","team":"shop","tier":"frontend"},"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"8080"}},"spec":{"serviceAccountName":"web","automountServiceAccountToken":false,"securityContext":{"runAsNonRoot":true,"runAsUser":10001,"fsGroup":10001,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"web","image":"registry.example.com/shop/web:1.27.3","imagePullPolicy":"IfNotPresent","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"BACKEND","value":"http://backend.default.svc:8080"},{"name":"REGION","value":"eu-central-1"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"256Mi"}},"livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"initialDelaySeconds":5,"periodSeconds":10,"failureThreshold":3},"readinessProbe":{"httpGet":{"path":"/readyz","port":8080},"initialDelaySeconds":5,"periodSeconds":10,"failureThreshold":3},"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}},"volumeMounts":[{"name":"tmp","mountPath":"/tmp"},{"name":"config","mountPath":"/etc/web","readOnly":true}]},{"name":"proxy","image":"registry.example.com/mesh/proxy:2.4.1","imagePullPolicy":"IfNotPresent","args":["--upstream=127.0.0.1:8080","--listen=0.0.0.0:8443","--log-level=warning"],"ports":[{"name":"https","containerPort":8443,"protocol":"TCP"}],"resources":{"requests":{"cpu":"50m","memory":"64Mi"},"limits":{"cpu":"200m","memory":"128Mi"}},"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}},"volumeMounts":[{"name":"certs","mountPath":"/etc/certs","readOnly":true}]}],"volumes":[{"name":"tmp","emptyDir":{}},{"name":"config","configMap":{"name":"web"}},{"name":"certs","secret":{"secretName":"web-tls"}}],"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}}]}},"terminationGracePeriodSeconds":30,"restartPolicy":"Always","dnsPolicy":"ClusterFirst"}}}}`

// measureCPU reports the time that the process has had for each operation, whatever
// else the machine does meanwhile.
func measureCPU(b *testing.B) (done func()) {
	b.Helper()
	used := func() int64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	begin := used()
	return func() { b.ReportMetric(float64(used()-begin)/float64(b.N), "cpu-ns/op") }
}

func benchInput(t testing.TB) func() policy.Input {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal([]byte(deploymentJSON), &object); err != nil {
		t.Fatal(err)
	}
	fields := request.Fields{
		UID: "u", Name: "web", Namespace: "default", Operation: admission.Create,
		Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Object:   &unstructured.Unstructured{Object: object},
	}
	return func() policy.Input {
		return policy.Input{Request: request.New(fields), Matched: cluster.Equivalent{Resource: fields.Resource, Kind: fields.Kind}, View: view}
	}
}

// BenchmarkEvaluate judges one request by ten policies.
func BenchmarkEvaluate(b *testing.B) {
	input := benchInput(b)
	b.Run("upstream", func(b *testing.B) {
		engines := make([]upstream, 10)
		for i := range engines {
			engines[i] = compileUpstream(b, uniqueSpec(i))
		}
		b.ReportAllocs()
		defer measureCPU(b)()
		for b.Loop() {
			in := input()
			attributes := attributesOf(b, in)
			for i := range engines {
				engines[i].judge(b.Context(), in, attributes, nil)
			}
		}
	})
	programs := make([]*program, 10)
	compiler := newCompiler()
	for i := range programs {
		p, errs := compiler.compile(uniqueSpec(i))
		if len(errs) > 0 {
			b.Fatal(errs.ToAggregate())
		}
		programs[i] = p
	}
	b.Run("as it comes", func(b *testing.B) {
		b.ReportAllocs()
		defer measureCPU(b)()
		for b.Loop() {
			in := input()
			for _, p := range programs {
				p.evaluate(b.Context(), in)
			}
		}
	})
	for name, fit := range map[string]parts{"counting": 0, "lean": everything()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			defer measureCPU(b)()
			for b.Loop() {
				in := input()
				for _, p := range programs {
					p.judgeAs(b, in, fit)
				}
			}
		})
	}
}

// BenchmarkCompile compiles policies that have nothing in common.
func BenchmarkCompile(b *testing.B) {
	b.Run("upstream", func(b *testing.B) {
		b.ReportAllocs()
		defer measureCPU(b)()
		i := 0
		for b.Loop() {
			compileUpstream(b, uniqueSpec(i))
			i++
		}
	})
	b.Run("ours", func(b *testing.B) {
		compiler := newCompiler()
		b.ReportAllocs()
		defer measureCPU(b)()
		i := 0
		for b.Loop() {
			if _, errs := compiler.compile(uniqueSpec(i)); len(errs) > 0 {
				b.Fatal(errs.ToAggregate())
			}
			i++
		}
	})
}

// BenchmarkHeap reports what a compiled policy keeps.
func BenchmarkHeap(b *testing.B) {
	const policies = 2_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	report := func(b *testing.B, n int, compile func(i int) any) {
		b.Helper()
		for b.Loop() {
			compile(n)
			before := heap()
			kept := make([]any, n)
			for i := range kept {
				kept[i] = compile(i)
			}
			b.ReportMetric(float64(heap()-before)/float64(n)/1024, "KiB/policy")
			runtime.KeepAlive(kept)
		}
	}
	b.Run("upstream", func(b *testing.B) {
		report(b, policies/10, func(i int) any { return compileUpstream(b, uniqueSpec(i)) })
	})
	b.Run("ours", func(b *testing.B) {
		compiler := newCompiler()
		report(b, policies, func(i int) any {
			p, _ := compiler.compile(uniqueSpec(i))
			return p
		})
	})
}
