// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	typedv1alpha1 "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	groupPath    = "/apis/policy.portcullis.dev/v1alpha1"
	policiesPath = groupPath + "/validatingadmissionpolicies"

	jsonType = "application/json"
)

// api is a server with the clients that the tests speak to it.
type api struct {
	*harness.Server
	client versioned.Interface
	http   *http.Client
}

// TestAPI runs every test below on one server, each on an empty store.
func TestAPI(t *testing.T) {
	a := newAPI(t, withoutConditions())
	tests := []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"CreateAndGet", testCreateAndGet},
		{"CreateRefused", testCreateRefused},
		{"Bindings", testBindings},
		{"UpdateConflict", testUpdateConflict},
		{"Generation", testGeneration},
		{"Status", testStatus},
		{"Delete", testDelete},
		{"DeleteCollection", testDeleteCollection},
		{"ListPages", testListPages},
		{"ListSelectors", testListSelectors},
		{"Watch", testWatch},
		{"WatchList", testWatchList},
		{"PatchTypes", testPatchTypes},
		{"Apply", testApply},
		{"ApplyStatus", testApplyStatus},
		{"DryRun", testDryRun},
		{"FieldValidation", testFieldValidation},
		{"Discovery", testDiscovery},
		{"Tables", testTables},
		{"OpenAPI", testOpenAPI},
		{"MediaTypes", testMediaTypes},
		{"Access", testAccess},
		{"Parameters", testParameters},
		{"Codes", testCodes},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.reset(t)
			test.run(t, a)
		})
	}
}

func newAPI(t *testing.T, opts ...harness.Option) *api {
	t.Helper()
	a := &api{Server: harness.Start(t, opts...)}
	a.connect(t)
	return a
}

// connect makes the clients of the server as it is configured now.
func (a *api) connect(t *testing.T) {
	t.Helper()
	var err error
	if a.client, err = versioned.NewForConfig(a.Config); err != nil {
		t.Fatal(err)
	}
	if a.http, err = rest.HTTPClientFor(a.Config); err != nil {
		t.Fatal(err)
	}
}

// stranger returns a client that has no credentials of its own.
func (a *api) stranger(t *testing.T) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(a.Anonymous())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (a *api) policies() typedv1alpha1.ValidatingAdmissionPolicyInterface {
	return a.client.PolicyV1alpha1().ValidatingAdmissionPolicies()
}

func (a *api) bindings() typedv1alpha1.ValidatingAdmissionPolicyBindingInterface {
	return a.client.PolicyV1alpha1().ValidatingAdmissionPolicyBindings()
}

func (a *api) reset(t *testing.T) {
	t.Helper()
	if err := a.policies().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.bindings().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (a *api) createPolicy(t *testing.T, p *v1alpha1.ValidatingAdmissionPolicy) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	created, err := a.policies().Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (a *api) getPolicy(t *testing.T, name string) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	p, err := a.policies().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (a *api) policyNames(t *testing.T, options metav1.ListOptions) []string {
	t.Helper()
	list, err := a.policies().List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// request is one HTTP request, as a client without any library would make it.
type request struct {
	method, path               string
	contentType, accept, token string
	body                       []byte
	// client is the one to connect with; the administrator's when nil.
	client *http.Client
}

type response struct {
	code   int
	header http.Header
	body   []byte
}

func (a *api) do(t *testing.T, r request) response {
	t.Helper()
	answer := a.open(t, r)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{code: answer.StatusCode, header: answer.Header, body: body}
}

// open leaves the body to be read, and closed, by the caller.
func (a *api) open(t *testing.T, r request) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, a.Config.Host+r.path, bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.body) > 0 {
		contentType := r.contentType
		if contentType == "" {
			contentType = jsonType
		}
		req.Header.Set("Content-Type", contentType)
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	client := r.client
	if client == nil {
		client = a.http
	}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// decode reads the body of an answer into an object.
func (r response) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(r.body, into); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

func encode(t *testing.T, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newPolicy returns a policy that validation accepts.
func newPolicy(name string) *v1alpha1.ValidatingAdmissionPolicy {
	return &v1alpha1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.replicas <= 5", Message: "too many"}},
		},
	}
}

func labelledPolicy(name, team string) *v1alpha1.ValidatingAdmissionPolicy {
	p := newPolicy(name)
	p.Labels = map[string]string{"team": team}
	return p
}

// newBinding returns a binding that validation accepts.
func newBinding(name, policyName string) *v1alpha1.ValidatingAdmissionPolicyBinding {
	return &v1alpha1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policyName,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

func wantReason(t *testing.T, err error, want metav1.StatusReason) {
	t.Helper()
	if got := apierrors.ReasonForError(err); err == nil || got != want {
		t.Errorf("error %v with reason %q, want reason %q", err, got, want)
	}
}
