// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

const (
	damagedBy   = "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: the stored object cannot be decoded: "
	goodDenial  = "ValidatingAdmissionPolicy 'good' with binding 'good' denied request: good says no"
	wholeDenial = "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no"
)

// wholePolicy is the policy x as it is stored: it is about ConfigMaps of the name
// x, and ignores its failures.
func wholePolicy(t *testing.T) string {
	t.Helper()
	p := configMapPolicy("x", "x", "no")
	p.UID, p.Generation = "uid-of-x", 3
	ignore := admissionregistrationv1.Ignore
	p.Spec.FailurePolicy = &ignore
	return string(encode(t, p))
}

func secretReview(t *testing.T) []byte {
	t.Helper()
	return newReview(t, "Secret", "secrets", "x", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"test"}}`)
}

// settle waits until all that was stored before is in force.
func (a *api) settle(t *testing.T) {
	t.Helper()
	mark := newPolicy("")
	mark.GenerateName = "mark-"
	name := a.createPolicy(t, mark).Name
	a.waitForCondition(t, name, "Ready", unbound)
	if err := a.policies().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPolicies puts into etcd, in place of a policy, what cannot be
// decoded: it fails the requests that it may match, by its failurePolicy if that
// can be read, and nothing else.
func TestDamagedPolicies(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	a.createBinding(t, newBinding("x", "x"))
	a.createBinding(t, newBinding("good", "good"))
	a.createPolicy(t, configMapPolicy("good", "good", "good says no"))
	whole := wholePolicy(t)
	closed := strings.Replace(whole, `"failurePolicy":"Ignore"`, `"failurePolicy":"Fail"`, 1)
	replace := func(text, part, by string) string {
		if !strings.Contains(text, part) {
			t.Fatalf("%s is not in %s", part, text)
		}
		return strings.Replace(text, part, by, 1)
	}
	tests := []struct {
		name, value string
		// matched and other say whether a ConfigMap x and a Secret are denied.
		matched, other bool
	}{
		{"garbage", "\x00\x01garbage", true, true},
		{"nothing", "", true, true},
		{"cut in the middle of the spec", whole[:len(whole)/2], true, true},
		{"cut before the failurePolicy", whole[:strings.Index(whole, `"validations"`)], true, false},
		{"an unknown version, failurePolicy Ignore", replace(whole, "v1alpha1", "v9"), false, false},
		{"an unknown version, failurePolicy Fail", replace(closed, "v1alpha1", "v9"), true, false},
		{"an unknown kind", replace(closed, `"kind":"ValidatingAdmissionPolicy"`, `"kind":"Other"`), true, false},
		{"a binding", string(encode(t, newBinding("x", "x"))), true, true},
		{"validations that are no list", replace(closed, `"validations":[`, `"validations":7,"v":[`), true, false},
		{"matchConstraints that are no object", replace(closed, `"matchConstraints":{`, `"matchConstraints":7,"m":{`), true, true},
		{"matchConstraints that are no object, failurePolicy Ignore", replace(whole, `"matchConstraints":{`, `"matchConstraints":7,"m":{`), false, false},
		{"a failurePolicy that is no text", replace(whole, `"Ignore"`, `7`), true, false},
		{"a spec that is no object", replace(whole, `"spec":{`, `"spec":7,"s":{`), true, true},
		{"metadata that are no object", replace(closed, `"metadata":{`, `"metadata":7,"m":{`), true, false},
		{"the name of another policy", replace(closed, `"name":"x"`, `"name":"good"`), true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			put(t, etcd, policyKeys+"x", whole)
			a.settle(t)
			if got := verdict(a.review(t, configMapReview(t, "x"))); got != wholeDenial {
				t.Fatalf("before the damage: %q", got)
			}
			put(t, etcd, policyKeys+"x", test.value)
			a.settle(t)
			for _, asked := range []struct {
				what   string
				review []byte
				denied bool
			}{{"ConfigMap", configMapReview(t, "x"), test.matched}, {"Secret", secretReview(t), test.other}} {
				got := verdict(a.review(t, asked.review))
				if (got != "") != asked.denied || (got != "" && !strings.HasPrefix(got, damagedBy)) {
					t.Errorf("%s: %q, denied should be %t", asked.what, got, asked.denied)
				}
			}
			if got := verdict(a.review(t, configMapReview(t, "good"))); !strings.Contains(got, "good says no") && !strings.HasPrefix(got, damagedBy) {
				t.Errorf("the good policy does not judge any more: %q", got)
			}
			shown := a.getPolicy(t, "x")
			if stored.Damage(shown) == nil || shown.UID == "" {
				t.Errorf("it is shown as %+v", shown)
			}
			if got, want := condition(shown, "Compiled"), "False CannotDecode the stored object cannot be decoded: "; !strings.HasPrefix(got, want) {
				t.Errorf("condition Compiled is %q, want %q", got, want)
			}
			if got, want := condition(shown, "Ready"), "False NotCompiled "; !strings.HasPrefix(got, want) {
				t.Errorf("condition Ready is %q, want %q", got, want)
			}
			if got := a.policyNames(t, metav1.ListOptions{}); !slices.Equal(got, []string{"good", "x"}) {
				t.Errorf("listed are %v", got)
			}
			if got := inEtcd(t, etcd, policyKeys+"x"); got != test.value {
				t.Errorf("somebody has written over what is stored: %q", got)
			}
			if err := a.policies().Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			a.settle(t)
			for _, review := range [][]byte{configMapReview(t, "x"), secretReview(t)} {
				if got := verdict(a.review(t, review)); got != "" {
					t.Errorf("after the deletion: %q", got)
				}
			}
		})
	}
}

func inEtcd(t *testing.T, etcd *clientv3.Client, key string) string {
	t.Helper()
	answer, err := etcd.Get(t.Context(), key)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%s: %v", key, err)
	}
	return string(answer.Kvs[0].Value)
}

// TestDamagedBindings does the same to a binding. One that still says what it
// binds puts that in force, with Deny; one that does not binds all policies.
func TestDamagedBindings(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	a.createPolicy(t, configMapPolicy("x", "x", "no"))
	unbound := configMapPolicy("y", "y", "y says no")
	a.createPolicy(t, unbound)
	wanting := configMapPolicy("z", "z", "z says no")
	wanting.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	wanting.Spec.Validations[0].Expression = "params == null"
	a.createPolicy(t, wanting)
	binding := newBinding("x", "x")
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	whole := string(encode(t, binding))
	const (
		wanted = "ValidatingAdmissionPolicy 'z' with binding 'x' denied request: failed to configure binding: the stored object cannot be decoded: "
		ofY    = "ValidatingAdmissionPolicy 'y' with binding 'x' denied request: y says no"
	)
	tests := []struct {
		name, value string
		x, y, z     string // how the verdicts begin
	}{
		{"whole, for other objects", whole, "", "", ""},
		{"garbage", "garbage", wholeDenial, ofY, wanted},
		{"an unknown version", strings.Replace(whole, "v1alpha1", "v9", 1), "", "", ""},
		{"an unknown version, and matchResources that are no object", strings.NewReplacer("v1alpha1", "v9", `"matchResources":{`, `"matchResources":7,"m":{`).Replace(whole), wholeDenial, "", ""},
		{"cut after the policyName", whole[:strings.Index(whole, `,"matchResources"`)], wholeDenial, "", ""},
		{"a policyName that is no text", strings.NewReplacer(`"policyName":"x"`, `"policyName":7`, `"matchResources":{`, `"matchResources":7,"m":{`).Replace(whole), wholeDenial, ofY, wanted},
		{"a policy", wholePolicy(t), wholeDenial, ofY, wanted},
		{"the name of another binding", strings.Replace(whole, `"name":"x"`, `"name":"w"`, 1), "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			put(t, etcd, bindingKeys+"x", test.value)
			a.settleBindings(t)
			for name, want := range map[string]string{"x": test.x, "y": test.y, "z": test.z} {
				if got := verdict(a.review(t, configMapReview(t, name))); !strings.HasPrefix(got, want) || (want == "" && got != "") {
					t.Errorf("ConfigMap %s: %q, want %q", name, got, want)
				}
			}
			b, err := a.bindings().Get(t.Context(), "x", metav1.GetOptions{})
			if err != nil || (stored.Damage(b) != nil) != (test.value != whole) {
				t.Errorf("it is shown as %+v, %v", b, err)
			}
			if err := a.bindings().Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			a.settleBindings(t)
			for _, name := range []string{"x", "y", "z"} {
				if got := verdict(a.review(t, configMapReview(t, name))); got != "" {
					t.Errorf("after the deletion, ConfigMap %s: %q", name, got)
				}
			}
		})
	}
}

// settleBindings waits until all bindings that were stored before are in force.
func (a *api) settleBindings(t *testing.T) {
	t.Helper()
	// It has a new name each time: a binding of before may still be in force.
	name := "mark-" + rand.String(8)
	a.createPolicy(t, newPolicy(name))
	b := newBinding(name, name)
	b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"nowhere": "true"}}}
	a.createBinding(t, b)
	a.waitForCondition(t, name, "Ready", inForce)
	if err := a.bindings().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.policies().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
