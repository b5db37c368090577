// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

const (
	apiServiceName = "v1alpha1.policy.portcullis.dev"
	webhooksName   = "portcullis-direct"
)

var (
	apiServices        = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	validatingWebhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingWebhooks   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
)

const apiServiceYAML = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.policy.portcullis.dev, uid: a, resourceVersion: "7"}
spec: {group: policy.portcullis.dev, version: v1alpha1, service: {namespace: portcullis-system, name: portcullis}}
`

// webhooksYAML has webhooks of ours first and last, and others between them.
const webhooksYAML = `
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: portcullis-direct, uid: w, resourceVersion: "7"}
webhooks:
- {name: one.portcullis.dev, clientConfig: {service: {namespace: portcullis-system, name: portcullis, path: /admission/v1/validate}}}
- {name: aggregated, clientConfig: {service: {namespace: default, name: kubernetes, path: /apis/policy.portcullis.dev/v1alpha1/validations}}}
- {name: same-name-elsewhere, clientConfig: {service: {namespace: other, name: portcullis}}}
- {name: by-url, clientConfig: {url: "https://elsewhere.example", caBundle: a2VwdA==}}
- {name: two.portcullis.dev, clientConfig: {caBundle: c3RhbGU=, service: {namespace: portcullis-system, name: portcullis}}}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func allTargets(t *testing.T) []runtime.Object {
	t.Helper()
	return []runtime.Object{object(t, apiServiceYAML), object(t, fmt.Sprintf(webhooksYAML, "Validating")), object(t, fmt.Sprintf(webhooksYAML, "Mutating"))}
}

func newObjects(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		apiServices: "APIServiceList", validatingWebhooks: "ValidatingWebhookConfigurationList", mutatingWebhooks: "MutatingWebhookConfigurationList",
	}, objects...)
}

func testTrust(objects *dynamicfake.FakeDynamicClient) *trust {
	return newTrust(ServingOptions{
		Objects: objects, Namespace: namespace, Service: "portcullis", Clock: clocktesting.NewFakeClock(testTime()),
		APIService: apiServiceName, ValidatingWebhooks: webhooksName, MutatingWebhooks: webhooksName,
	})
}

func get(t *testing.T, objects *dynamicfake.FakeDynamicClient, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := objects.Resource(resource).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// bundles returns what an object's places for a bundle hold, in order.
func bundles(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	configs := []any{o.Object["spec"]}
	if webhooks, ok := o.Object["webhooks"].([]any); ok {
		configs = nil
		for _, webhook := range webhooks {
			configs = append(configs, webhook.(map[string]any)["clientConfig"])
		}
	}
	var all []string
	for _, config := range configs {
		encoded, _ := config.(map[string]any)["caBundle"].(string)
		bundle, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(bundle))
	}
	return all
}

func (t *trust) tell(ctx *testing.T, bundle string) (wrote bool, err error) {
	present, readErr := t.read(ctx.Context())
	wrote, err = t.write(ctx.Context(), present, []byte(bundle))
	return wrote, errors.Join(readErr, err)
}

func patches(objects *dynamicfake.FakeDynamicClient) (all []string) {
	for _, action := range objects.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			all = append(all, string(patch.GetPatch()))
		}
		if verb := action.GetVerb(); !slices.Contains([]string{"get", "list", "watch", "patch"}, verb) {
			all = append(all, "unexpected: "+verb)
		}
	}
	return all
}

// TestTrustIsWrittenWhereTheServiceIsNamed pins which fields are ours.
func TestTrustIsWrittenWhereTheServiceIsNamed(t *testing.T) {
	objects := newObjects(allTargets(t)...)
	tr := testTrust(objects)
	if wrote, err := tr.tell(t, "new"); err != nil || !wrote {
		t.Fatalf("got wrote %t, error %v", wrote, err)
	}
	if got := bundles(t, get(t, objects, apiServices, apiServiceName)); !slices.Equal(got, []string{"new"}) {
		t.Errorf("APIService: got %q", got)
	}
	for _, resource := range []schema.GroupVersionResource{validatingWebhooks, mutatingWebhooks} {
		if got := bundles(t, get(t, objects, resource, webhooksName)); !slices.Equal(got, []string{"new", "", "", "kept", "new"}) {
			t.Errorf("%s: got %q", resource.Resource, got)
		}
	}
	for _, patch := range patches(objects) {
		if !strings.HasPrefix(patch, `[{"op":"add","path":"/metadata/resourceVersion","value":"7"},`) {
			t.Errorf("%s does not hold on to what was read", patch)
		}
	}
	objects.ClearActions()
	if wrote, err := tr.tell(t, "new"); err != nil || wrote {
		t.Errorf("got wrote %t, error %v, though nothing changed", wrote, err)
	}
	if got := patches(objects); len(got) > 0 {
		t.Errorf("got patches %v, want none", got)
	}
}

func TestTrustOfWhatIsNotThereOrNotOurs(t *testing.T) {
	another := object(t, apiServiceYAML)
	another.SetName("v1.apps")
	elsewhere := object(t, apiServiceYAML)
	if err := unstructured.SetNestedField(elsewhere.Object, "other", "spec", "service", "namespace"); err != nil {
		t.Fatal(err)
	}
	local := object(t, apiServiceYAML)
	unstructured.RemoveNestedField(local.Object, "spec", "service")
	insecure := object(t, apiServiceYAML)
	if err := unstructured.SetNestedField(insecure.Object, true, "spec", "insecureSkipTLSVerify"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		refused string
	}{
		"nothing":                {},
		"another APIService":     {objects: []runtime.Object{another}},
		"a Service elsewhere":    {objects: []runtime.Object{elsewhere}},
		"served by the cluster":  {objects: []runtime.Object{local}},
		"nobody asks who we are": {objects: []runtime.Object{insecure}, refused: "apiservices.apiregistration.k8s.io " + apiServiceName + ": remove spec.insecureSkipTLSVerify"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := newObjects(tc.objects...)
			_, err := testTrust(objects).tell(t, "new")
			if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("got error %v, want %q", err, tc.refused)
			}
			if got := patches(objects); len(got) > 0 {
				t.Errorf("got patches %v, want none", got)
			}
		})
	}
}

// TestOneRefusalDoesNotStopTheOthers also pins the rule that an error names.
func TestOneRefusalDoesNotStopTheOthers(t *testing.T) {
	for _, verb := range []string{"get", "patch"} {
		t.Run(verb, func(t *testing.T) {
			objects := newObjects(allTargets(t)...)
			objects.PrependReactor(verb, "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(apiServices.GroupResource(), apiServiceName, errors.New("no rule"))
			})
			_, err := testTrust(objects).tell(t, "new")
			want := "{apiGroups: [apiregistration.k8s.io], resources: [apiservices], resourceNames: [v1alpha1.policy.portcullis.dev], verbs: [get, list, watch, patch]}"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want the missing rule in it", err)
			}
			if got := bundles(t, get(t, objects, validatingWebhooks, webhooksName)); got[0] != "new" {
				t.Errorf("got %q, want the webhooks told all the same", got)
			}
		})
	}
}

func TestTrusting(t *testing.T) {
	authority, err := pki.Spec{CommonName: "ca", Lifetime: year}.Issue(nil, testTime())
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.Spec{CommonName: "ca", Lifetime: year}.Issue(nil, testTime())
	if err != nil {
		t.Fatal(err)
	}
	both := slices.Concat(other.CertPEM, authority.CertPEM)
	for name, tc := range map[string]struct {
		bundles [][]byte
		want    bool
	}{
		"no slots":          {want: true},
		"all":               {bundles: [][]byte{authority.CertPEM, both}, want: true},
		"all but one":       {bundles: [][]byte{both, other.CertPEM}},
		"one holds nothing": {bundles: [][]byte{nil, both}},
		"one is damaged":    {bundles: [][]byte{both, []byte("damaged")}},
	} {
		f := found{}
		for _, bundle := range tc.bundles {
			f.slots = append(f.slots, slot{bundle: bundle})
		}
		if got := trusting([]found{{}, f})(authority.Cert); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestAlarm has somebody else change what is trusted.
func TestAlarm(t *testing.T) {
	objects := newObjects(allTargets(t)...)
	tr := testTrust(objects)
	clock, ok := tr.clock.(*clocktesting.FakeClock)
	if !ok {
		t.Fatal("not a fake clock")
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	buffer, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the log cannot be read")
	}
	ctx := klog.NewContext(t.Context(), logger)
	tell := func(bundle string) {
		t.Helper()
		present, err := tr.read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.write(ctx, present, []byte(bundle)); err != nil {
			t.Fatal(err)
		}
	}
	change := func(uid types.UID, bundle string) {
		t.Helper()
		o := get(t, objects, apiServices, apiServiceName)
		o.SetUID(uid)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "kubectl-replace", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:caBundle":{}}}`)},
			{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:service":{}}}`)},
		})
		if err := unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString([]byte(bundle)), "spec", "caBundle"); err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Resource(apiServices).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	alarmed := func() int { return strings.Count(buffer.GetBuffer().String(), "Somebody else has changed") }

	tell("first")
	tell("second") // by ourselves
	change("a", "third")
	tell("third") // by another replica
	if got := alarmed(); got != 0 {
		t.Errorf("got %d alarms, want none for what replicas do", got)
	}
	change("a", "foreign")
	tell("third")
	change("a", "")
	tell("third")
	if got := alarmed(); got != 1 {
		t.Errorf("got %d alarms within an hour, want 1", got)
	}
	clock.Step(alarmPeriod)
	change("a", "foreign")
	tell("third")
	if got := alarmed(); got != 2 {
		t.Errorf("got %d alarms after an hour, want 2", got)
	}
	clock.Step(alarmPeriod)
	change("b", "")
	tell("third")
	if got := alarmed(); got != 2 {
		t.Errorf("got %d alarms, want none for an object made anew", got)
	}
	if log := buffer.GetBuffer().String(); !strings.Contains(log, `managers=["kubectl-replace"]`) {
		t.Errorf("the log does not say who it was: %s", log)
	}
}
