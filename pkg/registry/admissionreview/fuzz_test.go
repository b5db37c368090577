// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

// denyAll is a set with one policy, which denies whatever it is asked about, and
// beside it one that looks at everything.
func denyAll(f *testing.F) *policy.Set {
	f.Helper()
	everything := &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
			},
		}},
	}
	ignore := admissionregistrationv1.Ignore
	objects := []runtime.Object{
		&policyapi.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "deny-all"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: everything,
				Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: "refused"}},
			},
		},
		&policyapi.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "look"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: everything, FailurePolicy: &ignore,
				Variables: []admissionregistrationv1.Variable{{Name: "o", Expression: "request.operation == 'DELETE' ? oldObject : object"}},
				Validations: []admissionregistrationv1.Validation{
					{Expression: "has(variables.o.metadata) && size(variables.o.metadata.name) < 10", MessageExpression: "'name: ' + variables.o.metadata.name"},
					{Expression: "variables.o.spec.all(k, type(k) == string) && request.userInfo.groups.exists(g, g.startsWith('system:'))"},
				},
				AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "k", ValueExpression: "string(request.name) + string(object)"}},
			},
		},
	}
	for _, name := range []string{"deny-all", "look"} {
		objects = append(objects, &policyapi.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})
	}
	units := make([]*policy.Unit, 0, len(objects))
	languages := dialect.All()
	for _, object := range objects {
		unit, _ := languages[0].Compile(f.Context(), object)
		units = append(units, unit)
	}
	return (&policy.Set{}).Edit(nil, units)
}

// FuzzReview posts anything to the door behind which everything is denied. It
// must not crash, must give a reason for each refusal, and must admit nothing
// but what no policy may judge.
func FuzzReview(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "artifacts", "examples", "quickstart", "review.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	const head = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},`
	for _, seed := range []string{
		head + `"operation":"CREATE","name":"n","namespace":"default","object":{"metadata":{"name":"n"}}}}`,
		head + `"operation":"DELETE","name":"n","namespace":"default","oldObject":{"metadata":{"name":"n"}}}}`,
		head + `"operation":"UPDATE","subResource":"scale","object":{},"oldObject":{},"dryRun":true,"options":{"kind":"UpdateOptions"}}}`,
		head + `"operation":"CONNECT","requestKind":{"version":"v1","kind":"K"},"requestResource":{"version":"v1","resource":"r"},"requestSubResource":"s"}}`,
		head + `"operation":"CREATE","object":{"metadata":{"labels":{"a":null},"annotations":[]},"a":1,"a":2,"A":3}}}`,
		head + `"operation":"CREATE","userInfo":{"username":"a","groups":["g",null],"extra":{"k":["v"]}},"object":{"\ud800":1e308}}}`,
	} {
		f.Add([]byte(seed))
	}
	door := closedDoor(f)
	f.Fuzz(func(t *testing.T, body []byte) { refused(t, door, body) })
}

// FuzzReviewParts fills the fields of a well-formed review with anything.
func FuzzReviewParts(f *testing.F) {
	f.Add("CREATE", "apps", "v1", "deployments", "", "Deployment", "n", "default", "system:masters", []byte(`{"metadata":{"name":"n"},"spec":{"a":"b"}}`), []byte(`null`))
	f.Add("UPDATE", "", "v1", "pods", "ephemeralcontainers", "Pod", "n", "default", "g", []byte(`{"metadata":{"labels":{"a":"b"}}}`), []byte(`{"spec":[1,1.5,null,true]}`))
	f.Add("DELETE", "", "v1", "namespaces", "", "Namespace", "n", "n", "", []byte(`null`), []byte(`{}`))
	f.Add("CONNECT", "policy.portcullis.dev", "v1", "x", "exec", "Y", "", "", "", []byte(`{"a":{"b":{"c":[[[]]]}}}`), []byte(`1`))
	door := closedDoor(f)
	f.Fuzz(func(t *testing.T, operation, group, version, resource, subresource, kind, name, namespace, userGroup string, object, oldObject []byte) {
		asked := &admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{
				UID: "u", Operation: admissionv1.Operation(operation), Name: name, Namespace: namespace, SubResource: subresource,
				Kind:     metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
				Resource: metav1.GroupVersionResource{Group: group, Version: version, Resource: resource},
				UserInfo: authenticationv1.UserInfo{Username: name, Groups: []string{userGroup}},
				Object:   runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: oldObject},
			},
		}
		body, err := json.Marshal(asked)
		if err != nil {
			return // an object that is no JSON
		}
		refused(t, door, body)
	})
}

// closedDoor is a door behind which everything is denied.
func closedDoor(f *testing.F) *admissionreview.Handler {
	f.Helper()
	empty, err := offline.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	set := denyAll(f)
	judge, err := plugin.NewRegistered(dialect.All(), chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		f.Fatal(err)
	}
	return admissionreview.NewHandler(judge, func() cluster.View { return empty }, admissionreview.NewRoom())
}

// refused fails the test when the door crashes, gives no reason, or admits what
// a policy may judge.
func refused(t *testing.T, door http.Handler, body []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	door.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Message == "" || status.Reason == "" || int(status.Code) != w.Code {
			t.Errorf("HTTP %d without a reason: %s", w.Code, w.Body)
		}
		return
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("no response in %s: %v", w.Body, err)
	}
	var asked admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &asked); err != nil || asked.Request == nil {
		t.Fatalf("answered %s to what is no review: %v", w.Body, err)
	}
	if answer.Response.UID != asked.Request.UID {
		t.Errorf("answered to %q, asked by %q", answer.Response.UID, asked.Request.UID)
	}
	if answer.Response.Allowed && !exemptGroup(asked.Request) {
		t.Errorf("admitted: %s", body)
	}
	if !answer.Response.Allowed && (answer.Response.Result == nil || answer.Response.Result.Message == "") {
		t.Errorf("denied without a reason: %s", w.Body)
	}
}

// exemptGroup says whether the request is about a group of which some resources
// are judged by no policy.
func exemptGroup(asked *admissionv1.AdmissionRequest) bool {
	group := asked.Resource.Group
	if asked.RequestResource != nil {
		group = asked.RequestResource.Group
	}
	return slices.Contains([]string{policyapi.GroupName, "admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}, group)
}
