// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	wholePolicy = `{"kind":"ValidatingAdmissionPolicy","apiVersion":"policy.portcullis.dev/v1alpha1",` +
		`"metadata":{"name":"p","uid":"u","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"}},` +
		`"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},` +
		`"validations":[{"expression":"false"}],"failurePolicy":"Ignore"},"status":{}}`
	wholeBinding = `{"kind":"ValidatingAdmissionPolicyBinding","apiVersion":"policy.portcullis.dev/v1alpha1","metadata":{"name":"b"},` +
		`"spec":{"policyName":"p","paramRef":{"name":"c","parameterNotFoundAction":"Deny"},"matchResources":{"namespaceSelector":{"matchLabels":{"a":"b"}}},"validationActions":["Audit"]}}`
)

func newSalvager(t *testing.T, kind Kind) *salvager {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	return &salvager{kind: kind, codec: codec, root: "/prefix/" + kind.Resource + "/"}
}

// read returns what is read under the name, and whether it is what is stored.
func (s *salvager) read(t *testing.T, name, stored string) (obj runtime.Object, same bool) {
	t.Helper()
	data, stale, err := s.TransformFromStorage(t.Context(), []byte(stored), value.DefaultContext(s.root+name))
	if err != nil {
		t.Fatal(err)
	}
	if obj, err = runtime.Decode(s.codec, data); err != nil {
		t.Fatalf("what replaces a damaged object cannot be decoded: %v: %s", err, data)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	if accessor.GetName() != name || accessor.GetUID() == "" {
		t.Errorf("it has the name %q and the uid %q, want name %q and a uid", accessor.GetName(), accessor.GetUID(), name)
	}
	if same = bytes.Equal(data, []byte(stored)); same == stale {
		t.Errorf("stale is %t", stale)
	}
	return obj, same
}

func change(whole string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(whole)
}

func TestSalvagePolicy(t *testing.T) {
	const (
		all, pods = "all", "pods"
		rules     = `{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}`
	)
	tests := []struct {
		name, stored string
		// matches is what the object that is read matches, failure its failurePolicy.
		matches, failure string
		says             string
	}{
		{"garbage", "\x00\xff\x1b[31m", all, "Fail", "control characters are not allowed"},
		{"something encrypted", "k8s:enc:aescbc:v1:key:xyz", all, "Fail", "it is encrypted, and this server has no keys"},
		{"nothing", "", all, "Fail", ""},
		{"null", "null", all, "Fail", ""},
		{"an array", `[1]`, all, "Fail", ""},
		{"no kind", `{}`, all, "Fail", "Kind"},
		{"another kind", change(wholeBinding, `"b"`, `"p"`), all, "Fail", "it is a ValidatingAdmissionPolicyBinding and not a ValidatingAdmissionPolicy"},
		{"an unknown kind", change(wholePolicy, "AdmissionPolicy", "Policy"), pods, "Ignore", `no kind "ValidatingPolicy" is registered`},
		{"an unknown version", change(wholePolicy, "v1alpha1", "v9"), pods, "Ignore", `no kind "ValidatingAdmissionPolicy" is registered for version "policy.portcullis.dev/v9"`},
		{"an unknown group", change(wholePolicy, "policy.portcullis.dev", "example.com"), pods, "Ignore", "example.com"},
		{"a list in place of an object", change(wholePolicy, `"labels":{"a":"b"}`, `"labels":[]`), pods, "Ignore", "metadata.labels"},
		{"a text in place of the metadata", change(wholePolicy, `"status"`, `"metadata":"m","status"`), pods, "Ignore", "metadata"},
		{"a number in place of the validations", change(wholePolicy, `[{"expression":"false"}]`, `7`), pods, "Ignore", "spec.validations"},
		{"a number in place of the matchConstraints", change(wholePolicy, rules, `7`), all, "Ignore", "matchConstraints"},
		{"a number in place of the failurePolicy", change(wholePolicy, `"Ignore"`, `7`), pods, "Fail", "failurePolicy"},
		{"a number in place of the spec", change(wholePolicy, `"spec":{`, `"spec":7,"s":{`), all, "Fail", "spec"},
		{"two specs", change(wholePolicy, `"status":{}`, `"spec":{"failurePolicy":"Ignore"},"status":7`), all, "Fail", "status"},
		{"two failurePolicies", change(wholePolicy, `"failurePolicy":"Ignore"}`, `"failurePolicy":"Fail","failurePolicy":"Ignore"}`, `"a":"b"`, `"a":7`), pods, "Fail", "labels"},
		{"a failurePolicy in another case", change(wholePolicy, `"failurePolicy"`, `"FailurePolicy"`, `"a":"b"`, `"a":7`), pods, "Fail", "labels"},
		{"an unknown failurePolicy", change(wholePolicy, `"Ignore"`, `"Never"`, `"a":"b"`, `"a":7`), pods, "Fail", "labels"},
		{"an unknown field in the matchConstraints", change(wholePolicy, `{"resourceRules"`, `{"anyOf":[],"resourceRules"`, "v1alpha1", "v9"), all, "Ignore", "v9"},
		{"an unknown operation", change(wholePolicy, `"CREATE"`, `"WRITE"`, "v1alpha1", "v9"), all, "Ignore", "v9"},
		{"cut in the metadata", wholePolicy[:150], all, "Fail", ""},
		{"cut in the matchConstraints", wholePolicy[:strings.Index(wholePolicy, `"operations"`)], all, "Fail", ""},
		{"cut after the matchConstraints", wholePolicy[:strings.Index(wholePolicy, `"validations"`)], pods, "Fail", ""},
		{"cut before the status", wholePolicy[:strings.Index(wholePolicy, `,"status"`)], pods, "Ignore", "unexpected end of JSON input"},
		{"something after the end", wholePolicy + "}", pods, "Ignore", ""},
		{"nesting without end", strings.Repeat(`{"spec":`, 20_000), all, "Fail", ""},
		{"the name of another object", change(wholePolicy, `"name":"p"`, `"name":"q"`), pods, "Ignore", `its metadata names it "q", its key "p"`},
		{"a namespace", change(wholePolicy, `"name":"p"`, `"name":"p","namespace":"n"`), pods, "Ignore", "its metadata names it"},
		{"the mark of the storage", change(wholePolicy, `"labels"`, `"annotations":{"policy.portcullis.dev/undecodable":"x"},"labels"`), pods, "Ignore", "which no stored object has"},
	}
	s := newSalvager(t, validatingAdmissionPolicies())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj, same := s.read(t, "p", test.stored)
			p, ok := obj.(*policy.ValidatingAdmissionPolicy)
			if !ok || same {
				t.Fatalf("got a %T, as it is stored: %t", obj, same)
			}
			matches := all
			if match := p.Spec.MatchConstraints; match != nil {
				matches = match.ResourceRules[0].Resources[0]
				if match.MatchPolicy == nil || match.NamespaceSelector == nil {
					t.Errorf("the matchConstraints have no defaults: %+v", match)
				}
			}
			if matches != test.matches || p.Spec.FailurePolicy == nil || string(*p.Spec.FailurePolicy) != test.failure {
				t.Errorf("matches %s with failurePolicy %v, want %s and %s", matches, p.Spec.FailurePolicy, test.matches, test.failure)
			}
			wantDamage(t, p, test.says)
			if len(validatingAdmissionPolicies().Validate(p)) == 0 {
				t.Error("what can be read of the object passes for an object")
			}
			compiled := meta.FindStatusCondition(p.Status.Conditions, "Compiled")
			if compiled == nil || compiled.Status != metav1.ConditionFalse || compiled.Reason != "CannotDecode" || !strings.Contains(compiled.Message, test.says) {
				t.Errorf("condition Compiled is %+v", compiled)
			}
			ready := meta.FindStatusCondition(p.Status.Conditions, "Ready")
			if ready == nil || ready.Status != metav1.ConditionFalse || !strings.HasSuffix(ready.Message, "failurePolicy "+test.failure) {
				t.Errorf("condition Ready is %+v", ready)
			}
			if again, _ := s.read(t, "p", test.stored); !apiequality.Semantic.DeepEqual(again, obj) {
				t.Errorf("read again it is %+v, was %+v", again, obj)
			}
		})
	}
}

func TestSalvageBinding(t *testing.T) {
	tests := []struct {
		name, stored          string
		policyName            string
		hasParamRef, hasMatch bool
	}{
		{"garbage", "garbage", "", false, false},
		{"an unknown version", change(wholeBinding, "v1alpha1", "v9"), "p", true, true},
		{"a number in place of the actions", change(wholeBinding, `["Audit"]`, "7"), "p", true, true},
		{"a number in place of the policyName", change(wholeBinding, `"p"`, "7"), "", true, true},
		{"a policyName that is none", change(wholeBinding, `"p"`, `"P P"`, "v1alpha1", "v9"), "", true, true},
		{"a number in place of the paramRef", change(wholeBinding, `{"name":"c","parameterNotFoundAction":"Deny"}`, "7"), "p", false, true},
		{"an unknown operator in matchResources", change(wholeBinding, `"matchLabels":{"a":"b"}`, `"matchExpressions":[{"key":"a","operator":"Near"}]`, "v1alpha1", "v9"), "p", true, false},
		{"cut after the policyName", wholeBinding[:strings.Index(wholeBinding, `,"paramRef"`)], "p", false, false},
	}
	s := newSalvager(t, validatingAdmissionPolicyBindings())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj, same := s.read(t, "b", test.stored)
			b, ok := obj.(*policy.ValidatingAdmissionPolicyBinding)
			if !ok || same {
				t.Fatalf("got a %T, as it is stored: %t", obj, same)
			}
			if b.Spec.PolicyName != test.policyName || (b.Spec.ParamRef != nil) != test.hasParamRef || (b.Spec.MatchResources != nil) != test.hasMatch || b.Spec.ValidationActions != nil {
				t.Errorf("got %+v", b.Spec)
			}
			wantDamage(t, b, "")
			if len(validatingAdmissionPolicyBindings().Validate(b)) == 0 {
				t.Error("what can be read of the object passes for an object")
			}
		})
	}
}

func wantDamage(t *testing.T, obj runtime.Object, says string) {
	t.Helper()
	damage := Damage(obj)
	if damage == nil || !strings.HasPrefix(damage.Error(), "the stored object cannot be decoded: ") || !strings.Contains(damage.Error(), says) {
		t.Fatalf("the object says %v, want %q", damage, says)
	}
	if text := damage.Error(); len(text) > maxDamageText+len(undecodable) || strings.ContainsAny(text, "\x00\x1b") || !utf8.ValidString(text) {
		t.Errorf("the object says %q", text)
	}
}

// TestWholeObjectsStayAsTheyAre: not one byte of what can be decoded is touched.
func TestWholeObjectsStayAsTheyAre(t *testing.T) {
	if obj, same := newSalvager(t, validatingAdmissionPolicies()).read(t, "p", wholePolicy); !same || Damage(obj) != nil {
		t.Errorf("got %+v", obj)
	}
	s := newSalvager(t, validatingAdmissionPolicies())
	data, stale, err := s.TransformFromStorage(t.Context(), []byte("x"), value.DefaultContext("/elsewhere/p"))
	if err != nil || stale || string(data) != "x" {
		t.Errorf("a key of something else: %q, %t, %v", data, stale, err)
	}
	if data, err := s.TransformToStorage(t.Context(), []byte("x"), value.DefaultContext(s.root+"p")); err != nil || string(data) != "x" {
		t.Errorf("written is %q, %v", data, err)
	}
}

// panicking decodes nothing until it has been asked a number of times.
type panicking struct {
	runtime.Codec
	left int
}

func (p *panicking) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if p.left--; p.left >= 0 {
		panic("the decoder panics")
	}
	return p.Codec.Decode(data, defaults, into)
}

// TestSalvageContainsPanics: with the first panic the object is damaged, with the
// second nothing but its name is left.
func TestSalvageContainsPanics(t *testing.T) {
	for panics, kept := range map[int]bool{1: true, 2: false} {
		s := newSalvager(t, validatingAdmissionPolicies())
		whole := s.codec
		s.codec = &panicking{Codec: whole, left: panics}
		data, _, err := s.TransformFromStorage(t.Context(), []byte(wholePolicy), value.DefaultContext(s.root+"p"))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := runtime.Decode(whole, data)
		if err != nil {
			t.Fatal(err)
		}
		wantDamage(t, obj, "panic: the decoder panics")
		if p, ok := obj.(*policy.ValidatingAdmissionPolicy); !ok || (p.Spec.MatchConstraints != nil) != kept {
			t.Errorf("after %d panics: %+v", panics, obj)
		}
	}
}

// failing is a transformer that cannot read.
type failing struct{ value.Transformer }

var errNoKey = errors.New("no key")

func (failing) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, false, errNoKey
}

// TestEncryptionThatFailsIsNoDamage: its keys may come back.
func TestEncryptionThatFailsIsNoDamage(t *testing.T) {
	s := newSalvager(t, validatingAdmissionPolicies())
	s.next = failing{}
	if _, _, err := s.TransformFromStorage(t.Context(), []byte(wholePolicy), value.DefaultContext(s.root+"p")); !errors.Is(err, errNoKey) {
		t.Errorf("got %v, want %v", err, errNoKey)
	}
}
