// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin_test runs our admission plugins in another API server and
// compares what they answer there with what the chain alone says.
package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	auditpolicy "k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
	"github.com/portcullis-dev/portcullis/pkg/standalone"
)

const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {environment: test}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: default}
data: {size: "5"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}
          status: {type: object, properties: {phase: {type: string}}}
`

// world is another API server with our plugins, beside the chain alone.
type world struct {
	widgets dynamic.ResourceInterface
	view    cluster.View
	judge   *chain.Chain
	decoder runtime.Decoder
	current atomic.Pointer[policy.Set]
	seen    lastRequest
	events  events
	headers headers
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env, err := standalone.Start(t.Context(), standalone.Options{DataDir: t.TempDir(), BindAddress: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { env.Close() })
	existing, err := manifest.Decode([]byte(objects))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(existing[2].DeepCopy().Object, definition); err != nil {
		t.Fatal(err)
	}
	if w.view, err = offline.New(existing); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.decoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(policyapi.SchemeGroupVersion())
	w.judge = chain.New(w.current.Load, clock.RealClock{})
	w.current.Store(&policy.Set{})

	plugins := admission.NewPlugins()
	names := plugin.Register(plugins, dialect.All(), w.judge, func() cluster.View { return w.view })
	handlers := []admission.Interface{&w.seen}
	for _, name := range names {
		handler, err := plugins.InitPlugin(name, nil, admission.PluginInitializers{})
		if err != nil {
			t.Fatal(err)
		}
		handlers = append(handlers, handler)
	}
	config := start(t, foreign{
		Etcd: env.Etcd, Admission: admission.NewChainHandler(handlers...),
		Audit: &w.events, Policy: auditpolicy.NewFakePolicyRuleEvaluator(auditinternal.LevelMetadata, nil),
	}, definition)
	config = rest.CopyConfig(config)
	config.WarningHandler = &w.headers
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w.widgets = client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	return w
}

// enforce puts policies in force, and nothing else.
func (w *world) enforce(t *testing.T, manifests string) {
	t.Helper()
	var units []*policy.Unit
	for _, text := range strings.Split(manifests, "\n---\n") {
		internal, _, err := w.decoder.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		unit, errs := dialect.All()[0].Compile(t.Context(), internal)
		if unit == nil {
			t.Fatal(errs.ToAggregate())
		}
		units = append(units, unit)
	}
	w.current.Store((&policy.Set{}).Edit(nil, units))
}

// answer is what a client and the audit log get.
type answer struct {
	Status      metav1.Status
	Warnings    []string
	Annotations map[string]string
}

func (w *world) ask(ctx context.Context, do func(context.Context, dynamic.ResourceInterface) error) answer {
	w.headers.reset()
	w.events.reset()
	var got answer
	err := do(ctx, w.widgets)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		got.Status = status.Status()
		got.Status.TypeMeta = metav1.TypeMeta{} // as decoded
	} else if err != nil {
		got.Status = metav1.Status{Message: err.Error()}
	}
	got.Warnings, got.Annotations = w.headers.get(), w.events.annotations()
	return got
}

// alone is what the chain says about the request that the plugins saw last.
func (w *world) alone(t *testing.T) answer {
	t.Helper()
	req := w.seen.get(t)
	v, err := w.judge.Run(t.Context(), chain.Trial{Request: req, View: w.view})
	if err != nil {
		t.Fatal(err)
	}
	var got answer
	if status := v.ForbiddenStatus(req.RequestResource.GroupResource(), req.Name); status != nil {
		got.Status = *status
	}
	got.Warnings, got.Annotations = v.Warnings, v.AuditAnnotations
	return got
}

const policyHead = `apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: ["*"], resources: [widgets, widgets/status]}]
`

const bindingHead = `
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sizes}
spec:
  policyName: sizes
`

const deny = "  validationActions: [Deny]\n"

func TestPluginsAnswerAsTheChainDoes(t *testing.T) {
	w := newWorld(t)
	if err := create("old", 3)(t.Context(), w.widgets); err != nil {
		t.Fatal(err)
	}
	const prefix = `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'sizes' with binding 'sizes' denied request: `
	tests := []struct {
		name            string
		policy, binding string
		do              func(context.Context, dynamic.ResourceInterface) error
		want            string // message; empty for an admission
		warnings        int
		annotations     []string // keys
	}{
		{name: "denied", policy: "  validations: [{expression: object.spec.size < 5}]\n", binding: deny, do: create("w", 7), want: prefix + "failed expression: object.spec.size < 5"},
		{name: "admitted", policy: "  validations: [{expression: object.spec.size < 5}]\n", binding: deny, do: dryRun("w", 3)},
		{
			name: "reason and message", policy: "  validations: [{expression: object.spec.size < 5, messageExpression: \"'size is ' + string(object.spec.size)\", reason: Forbidden}]\n",
			binding: deny, do: create("w", 7), want: prefix + "size is 7",
		},
		{
			name: "several denials", policy: "  validations: [{expression: 'false', message: one}, {expression: object.spec.colour == 'blue', message: two}]\n",
			binding: deny, do: create("w", 7), want: prefix + "one",
		},
		{name: "warned", policy: "  validations: [{expression: object.spec.size < 5}]\n", binding: "  validationActions: [Warn]\n", do: dryRun("w", 7), warnings: 1},
		{
			name: "audited", policy: "  validations: [{expression: object.spec.size < 5}]\n  auditAnnotations: [{key: size, valueExpression: string(object.spec.size)}]\n",
			binding: "  validationActions: [Audit]\n", do: dryRun("w", 7), annotations: []string{"sizes/size", verdict.ValidationFailureKey},
		},
		{
			name: "params", policy: "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: object.spec.size < int(params.data.size)}]\n",
			binding: "  paramRef: {name: limits, parameterNotFoundAction: Deny}\n" + deny, do: create("w", 7), want: prefix + "failed expression: object.spec.size < int(params.data.size)",
		},
		{
			name: "absent params", policy: "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'true'}]\n",
			binding: "  paramRef: {name: absent, parameterNotFoundAction: Deny}\n" + deny, do: create("w", 7),
			want: prefix + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
		},
		{
			name: "an error fails closed", policy: "  validations: [{expression: object.spec.absent == 1}]\n", binding: deny, do: create("w", 1),
			want: prefix + "expression 'object.spec.absent == 1' resulted in error: no such key: absent",
		},
		{name: "an error is ignored", policy: "  failurePolicy: Ignore\n  validations: [{expression: object.spec.absent == 1}]\n", binding: deny, do: dryRun("w", 1)},
		{name: "match condition", policy: "  matchConditions: [{name: big, expression: object.spec.size > 10}]\n  validations: [{expression: 'false'}]\n", binding: deny, do: dryRun("w", 7)},
		{
			name: "namespace", policy: "  validations: [{expression: 'namespaceObject.metadata.labels.environment != \"test\"'}]\n",
			binding: "  matchResources: {namespaceSelector: {matchLabels: {environment: test}}}\n" + deny, do: create("w", 7),
			want: prefix + `failed expression: namespaceObject.metadata.labels.environment != "test"`,
		},
		{
			name: "update", policy: "  validations: [{expression: 'oldObject == null || object.spec.size == oldObject.spec.size', message: fixed}]\n", binding: deny,
			do: patch("old", `{"spec":{"size":4}}`), want: strings.Replace(prefix, `"w"`, `"old"`, 1) + "fixed",
		},
		{
			name: "status", policy: "  validations: [{expression: 'request.subResource != \"status\"', message: no status}]\n", binding: deny,
			do: patch("old", `{"status":{"phase":"Done"}}`, "status"), want: strings.Replace(prefix, `"w"`, `"old"`, 1) + "no status",
		},
		{
			name: "delete", policy: "  validations: [{expression: 'oldObject.spec.size > 3', message: too small to be deleted}]\n", binding: deny,
			do: remove("old"), want: strings.Replace(prefix, `"w"`, `"old"`, 1) + "too small to be deleted",
		},
		{name: "dry run", policy: "  validations: [{expression: '!request.dryRun', message: for real only}]\n", binding: deny, do: dryRun("w", 7), want: prefix + "for real only"},
		{name: "who asks", policy: "  validations: [{expression: '\"system:masters\" in request.userInfo.groups'}]\n", binding: deny, do: dryRun("w", 7)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w.enforce(t, policyHead+test.policy+bindingHead+test.binding)
			got := w.ask(t.Context(), test.do)
			w.check(t, got)
			if got.Status.Message != test.want || len(got.Warnings) != test.warnings {
				t.Errorf("got message %q and warnings %q, want %q and %d", got.Status.Message, got.Warnings, test.want, test.warnings)
			}
			if keys := slices.Sorted(maps.Keys(got.Annotations)); !slices.Equal(keys, test.annotations) {
				t.Errorf("got annotations %q, want %q", keys, test.annotations)
			}
		})
	}
}

func (w *world) check(t *testing.T, got answer) {
	t.Helper()
	if diff := cmp.Diff(normal(t, w.alone(t)), normal(t, got)); diff != "" {
		t.Errorf("the plugins in another server answer otherwise (-chain alone +plugins):\n%s", diff)
	}
}

// TestPluginsAreNotReady: no request is admitted before the policies are there.
func TestPluginsAreNotReady(t *testing.T) {
	w := newWorld(t)
	w.current.Store(nil)
	got := w.ask(t.Context(), create("w", 1))
	if want := `widgets.example.com "w" is forbidden: not yet ready to handle request`; got.Status.Message != want {
		t.Errorf("got %q, want %q", got.Status.Message, want)
	}
}

func normal(t *testing.T, a answer) string {
	t.Helper()
	data, err := yaml.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"size": size},
	}}
}

func create(name string, size int64) func(context.Context, dynamic.ResourceInterface) error {
	return func(ctx context.Context, widgets dynamic.ResourceInterface) error {
		_, err := widgets.Create(ctx, widget(name, size), metav1.CreateOptions{})
		return err
	}
}

func dryRun(name string, size int64) func(context.Context, dynamic.ResourceInterface) error {
	return func(ctx context.Context, widgets dynamic.ResourceInterface) error {
		_, err := widgets.Create(ctx, widget(name, size), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

func patch(name, merge string, subresources ...string) func(context.Context, dynamic.ResourceInterface) error {
	return func(ctx context.Context, widgets dynamic.ResourceInterface) error {
		_, err := widgets.Patch(ctx, name, types.MergePatchType, []byte(merge), metav1.PatchOptions{}, subresources...)
		return err
	}
}

func remove(name string) func(context.Context, dynamic.ResourceInterface) error {
	return func(ctx context.Context, widgets dynamic.ResourceInterface) error {
		return widgets.Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// lastRequest is an admission plugin that keeps what it sees.
type lastRequest struct {
	mu sync.Mutex
	a  admission.Attributes
}

var _ admission.ValidationInterface = (*lastRequest)(nil)

func (l *lastRequest) Handles(admission.Operation) bool { return true }

func (l *lastRequest) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.GetKind().Kind == "Widget" {
		l.a = a
	}
	return nil
}

func (l *lastRequest) get(t *testing.T) *request.Request {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	custom := func(obj runtime.Object) *unstructured.Unstructured {
		own, _ := obj.(*unstructured.Unstructured)
		return own
	}
	var options *unstructured.Unstructured
	if l.a.GetOperationOptions() != nil {
		data, err := json.Marshal(l.a.GetOperationOptions())
		if err != nil {
			t.Fatal(err)
		}
		options = &unstructured.Unstructured{}
		if err := json.Unmarshal(data, &options.Object); err != nil {
			t.Fatal(err)
		}
	}
	return request.New(request.Fields{
		Kind: l.a.GetKind(), Resource: l.a.GetResource(), SubResource: l.a.GetSubresource(),
		Name: l.a.GetName(), Namespace: l.a.GetNamespace(), Operation: l.a.GetOperation(), User: l.a.GetUserInfo(), DryRun: l.a.IsDryRun(),
		Object: custom(l.a.GetObject()), OldObject: custom(l.a.GetOldObject()), Options: options,
	})
}

// headers collects warnings.
type headers struct {
	mu    sync.Mutex
	texts []string
}

func (h *headers) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
}

func (h *headers) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = nil
}

func (h *headers) get() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.texts
}

// events is an audit backend that keeps the annotations on widgets.
type events struct {
	mu   sync.Mutex
	last map[string]string
}

var _ audit.Backend = (*events)(nil)

func (e *events) Run(<-chan struct{}) error { return nil }
func (e *events) Shutdown()                 {}
func (e *events) String() string            { return "events" }

func (e *events) ProcessEvents(all ...*auditinternal.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range all {
		if event.Stage != auditinternal.StageResponseComplete || event.ObjectRef == nil || event.ObjectRef.Resource != "widgets" {
			continue
		}
		for key, value := range event.Annotations {
			if strings.HasPrefix(key, "authorization.k8s.io/") {
				continue
			}
			if e.last == nil {
				e.last = map[string]string{}
			}
			e.last[key] = value
		}
	}
	return true
}

func (e *events) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = nil
}

func (e *events) annotations() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}
