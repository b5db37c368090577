// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package dialecttest_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

func toy(forbid any) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "toy"}, "forbid": forbid}}
}

func TestToy(t *testing.T) {
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dialecttest.Run(t, dialecttest.Suite{
		Dialect: dialecttest.Toy{},
		Request: func() *request.Request {
			return request.New(request.Fields{Name: "nginx", Operation: admission.Create})
		},
		View:       view,
		Allowing:   toy("zebra"),
		Denying:    toy("nginx"),
		Failing:    toy(""),
		Reading:    toy("read"),
		Exhausting: toy("exhaust"),
		Broken:     toy(1),
	})
}
