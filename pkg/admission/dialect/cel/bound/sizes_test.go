// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

func TestMeasureIsQuantized(t *testing.T) {
	sizes := func(text string, entries int) bound.Sizes {
		return bound.Measure(map[string]any{"text": text, "list": make([]any, entries)})
	}
	if a, b := sizes(strings.Repeat("x", 33), 9), sizes(strings.Repeat("y", 40), 10); a != b {
		t.Errorf("objects of about one size measure %v and %v, want the same", a, b)
	}
	if a, b := sizes(strings.Repeat("x", 33), 9), sizes(strings.Repeat("x", 65), 9); a == b {
		t.Error("a text twice as long measures the same")
	}
	if a, b := sizes("x", 9), sizes("x", 17); a == b {
		t.Error("a list twice as long measures the same")
	}
}

func TestMeasureKnowsWhatIsJSON(t *testing.T) {
	deep := any("x")
	for range 1000 {
		deep = []any{deep}
	}
	for name, test := range map[string]struct {
		value any
		known bool
	}{
		"nil":              {nil, true},
		"scalars":          {map[string]any{"a": int64(1), "b": 1.5, "c": true, "d": nil, "e": "x"}, true},
		"lists of strings": {map[string]any{"a": []string{"x"}, "b": map[string]string{"x": "y"}}, true},
		"a struct":         {struct{ A, B string }{}, true},
		"a function":       {func() {}, false},
		"a channel within": {map[string]any{"a": []any{make(chan int)}}, false},
		"an error":         {errors.New("no data"), false},
		"nested too deep":  {deep, false},
	} {
		got := bound.Measure(test.value)
		if known := got != (bound.Sizes{}); known != test.known {
			t.Errorf("%s: measured: %v, want %v", name, known, test.known)
		}
	}
}

// TestTypedValuesMeasureNoLessThanTheirContent compares with the content as a map.
func TestTypedValuesMeasureNoLessThanTheirContent(t *testing.T) {
	now := metav1.Now()
	for name, object := range map[string]any{
		"request": &admissionv1.AdmissionRequest{
			UID: "x", Operation: admissionv1.Create, Name: strings.Repeat("n", 300), Resource: metav1.GroupVersionResource{Resource: "pods"},
			UserInfo: authenticationv1.UserInfo{Username: "u", Groups: make([]string, 40), Extra: map[string]authenticationv1.ExtraValue{"k": {"a", "b"}}},
			Options:  runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","dryRun":["` + strings.Repeat("a", 1000) + `"]}`)},
		},
		"pod": &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p", CreationTimestamp: now, DeletionTimestamp: &now, Labels: map[string]string{"a": strings.Repeat("x", 63)},
				ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a":{}}}}`)}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
		},
		"configuration": &corev1.ConfigMap{BinaryData: map[string][]byte{"k": make([]byte, 1000)}, Data: map[string]string{"x": "y"}},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatalf("convert the %s: %v", name, err)
		}
		typed := bound.Measure(object)
		if typed == (bound.Sizes{}) || typed.Max(bound.Measure(content)) != typed {
			t.Errorf("the %s measures %v, less than its content %v", name, typed, bound.Measure(content))
		}
		if got := bound.Measure(&unstructured.Unstructured{Object: content}); got != bound.Measure(content) {
			t.Errorf("the unstructured %s measures %v, want %v", name, got, bound.Measure(content))
		}
	}
}

func TestMax(t *testing.T) {
	texts := bound.Measure(strings.Repeat("x", 100))
	lists := bound.Measure(make([]any, 100))
	both := bound.Measure(strings.Repeat("x", 100), make([]any, 100))
	if got := texts.Max(lists); got != both || lists.Max(texts) != both {
		t.Errorf("the larger of both is %v, want %v", got, both)
	}
	if got := texts.Max(bound.Measure()); got != texts {
		t.Errorf("no data makes %v of %v", got, texts)
	}
	if got := texts.Max(bound.Sizes{}); got != (bound.Sizes{}) {
		t.Errorf("data of unknown size gives %v, want unknown", got)
	}
}
